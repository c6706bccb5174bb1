"""NeMo Gym's resources server: the requests of its agents, and the reading of the answer by it and by NeMo RL."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from problem_document import problem
from service import Running

from rewarden.services.compat.nemo_gym import completion_of

REASONING = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "\\boxed{9}"}]}
CALL = {"type": "function_call", "name": "add", "arguments": '{"a": 1, "b": 1}', "call_id": "c1"}
CALLED = {"type": "function_call_output", "call_id": "c1", "output": "\\boxed{9}"}


def message(*texts: str) -> dict[str, Any]:
    """What an assistant says, as the Responses API has it."""
    content = [{"type": "output_text", "text": text, "annotations": []} for text in texts]
    return {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": content}


def request(*output: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """What an agent sends: the task's row, with the model's response."""
    return {
        "responses_create_params": {"input": [{"role": "user", "content": "1+1?", "type": "message"}], "tools": []},
        "response": {
            "id": "resp_1",
            "created_at": 1.5,
            "model": "policy",
            "object": "response",
            "output": list(output),
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
        },
        **fields,
    }


def verify(url: str, body: dict[str, Any], **query: Any) -> dict[str, Any]:
    """The row that the agent gets back. It raises for a status that is none of success, and needs a reward."""
    answer = httpx.post(f"{url}/verify", params=query, json=body)
    answer.raise_for_status()
    row: dict[str, Any] = answer.json()
    assert isinstance(row["reward"], float)
    assert isinstance(row["mask_sample"], bool)
    return row


def learned(row: dict[str, Any]) -> float | None:
    """The reward that NeMo RL learns from, in the versions that look at either place; None when it is masked."""
    nested = (row.get("instance_config") or {}).get("mask_sample", False)
    assert row["mask_sample"] == nested or not nested
    return None if row["mask_sample"] else row["reward"]


@pytest.mark.parametrize("field", ["expected_answer", "ground_truth", "answer", "reference"])
@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ([message("It is \\boxed{2}.")], 1.0),
        ([message("It is \\boxed{3}.")], 0.0),
        ([REASONING, message("It is \\boxed{2}.<|im_end|>")], 1.0),
        ([message("It is ", "\\boxed{2}.")], 1.0),
        ([message("It is \\boxed{2}."), message("Do you need more?")], 1.0),
        ([message("\\boxed{9}"), CALL, CALLED, message("So it is \\boxed{2}.")], 1.0),
        ([REASONING], 0.0),
        ([CALL], 0.0),
        ([], 0.0),
    ],
    ids=["right", "wrong", "reasoned", "parts", "two messages", "tools", "only reasoning", "only a call", "nothing"],
)
def test_the_last_words_are_graded(url: Running, field: str, output: list[dict[str, Any]], expected: float) -> None:
    """What the model says last counts: not its reasoning, its tools' outputs, or what it said before them."""
    row = verify(url, request(*output, **{field: "2"}), recipe="math")
    assert learned(row) == expected
    assert (row["failure_kind"], row["failure_reason"]) == (None, None)


def test_the_request_comes_back_whole(url: Running) -> None:
    """All that was sent is in the answer as it was, with the verdict beside it, and the same numbers every time."""
    sent = request(message("\\boxed{2}"), expected_answer="2", _ng_task_index=7, agent_ref={"name": "a"}, n=10**30)
    row = verify(url, sent, recipe="math")
    assert {key: row[key] for key in sent} == sent
    numbers = {"rewarden_graded": 1.0, "rewarden_correct": 1.0, "rewarden_no_answer": 0.0}
    assert {key: row[key] for key in numbers} == numbers
    other = verify(url, request(message("judge_failed")), recipe="named")
    assert {key for key, value in other.items() if isinstance(value, float)} >= {*numbers, "reward"}


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("judge_failed", "judge_failed"),
        ("incomplete_group", "cohort_incomplete"),
        ("no_consensus", "rewarden:no_consensus"),
    ],
)
def test_ungraded_is_masked(url: Running, reason: str, kind: str) -> None:
    """What was not graded is masked in both places, with a kind that NeMo Gym can count and a reason for people."""
    row = verify(url, request(message(reason), instance_config={"image": "x"}), recipe="named")
    assert learned(row) is None
    assert row["instance_config"] == {"image": "x", "mask_sample": True}
    assert row["reward"] == 0.0
    assert row["failure_kind"] == kind
    assert row["failure_reason"].startswith(f"{reason}: ")
    assert row["rewarden_graded"] == 0.0


def test_what_may_pass_goes_to_the_failures(url: Running) -> None:
    """What another try may cure is routed to the failures file, for the next attempt; what it cannot cure is not."""
    assert verify(url, request(message("deadline")), recipe="named")["_ng_failure_class"] == "rewarden:deadline"
    assert "_ng_failure_class" not in verify(url, request(message("no_consensus")), recipe="named")


def test_a_missing_reference_is_masked(url: Running) -> None:
    """A task without a reference is not a wrong answer."""
    row = verify(url, request(message("\\boxed{2}"), expected_answer=""), recipe="math")
    assert learned(row) is None
    assert row["failure_kind"] == "rewarden:bad_reference"


def test_a_second_verification_replaces_the_first(url: Running) -> None:
    """A row that was masked here and is verified again with a reference loses its mask."""
    first = verify(url, request(message("\\boxed{2}")), recipe="math")
    assert learned(first) is None
    again = verify(url, first | {"expected_answer": "2"}, recipe="math")
    assert learned(again) == 1.0
    assert again["instance_config"]["mask_sample"] is False
    retried = verify(url, request(message("deadline")), recipe="named")
    retried["response"]["output"] = [message("right")]
    assert "_ng_failure_class" not in verify(url, retried, recipe="named")


def test_a_mask_of_the_environment_stays(url: Running) -> None:
    """What others masked for their own reasons is not taken off."""
    row = verify(url, request(message("right"), instance_config={"mask_sample": True}), recipe="named")
    assert row["instance_config"] == {"mask_sample": True}


def test_the_reference_may_lie_elsewhere(url: Running) -> None:
    """`?reference=` names the field, with dots into objects; a path that leads nowhere is no reference."""
    body = request(message("\\boxed{2}"), expected_answer="3", verifier_metadata={"gold": {"value": "2"}})
    assert learned(verify(url, body, recipe="math", reference="verifier_metadata.gold.value")) == 1.0
    assert learned(verify(url, body, recipe="math")) == 0.0
    body["responses_create_params"]["metadata"] = {"gold": "2"}
    assert learned(verify(url, body, recipe="math", reference="responses_create_params.metadata.gold")) == 1.0
    for path in (
        "response.output",
        "verifier_metadata.nothing",
        "__class__",
        "verifier_metadata.gold.value.upper",
        ".",
    ):
        row = verify(url, body, recipe="math", reference=path)
        assert learned(row) is None
        assert row["failure_reason"] == "bad_reference: the reference is missing"


def test_the_items_become_messages_in_order() -> None:
    """Scorers that look at every turn see who said what, and when."""
    said = completion_of([REASONING, message("a"), message("b"), CALL, CALLED, message("c")])
    assert [(one.role, one.content) for one in said] == [
        ("assistant", None),
        ("assistant", "ab"),
        ("assistant", None),
        ("tool", "\\boxed{9}"),
        ("assistant", "c"),
    ]
    assert said[0].reasoning_content == "\\boxed{9}"
    assert said[2].tool_calls == [{"type": "function", "function": {"name": "add", "arguments": '{"a": 1, "b": 1}'}}]


def test_the_prompt_may_be_text(url: Running) -> None:
    """The input of the model is text, or items of which some are no messages."""
    for given in ("1+1?", [], [CALL, CALLED, {"role": "user", "content": [{"type": "input_text", "text": "1+1?"}]}]):
        body = request(message("\\boxed{2}"), expected_answer="2")
        body["responses_create_params"]["input"] = given
        assert learned(verify(url, body, recipe="math")) == 1.0


@pytest.mark.parametrize(
    "output",
    [
        [{}],
        [{"type": "message"}],
        [{"type": 5}],
        [{"type": "message", "content": 5}],
        [{"type": "message", "content": [5, {"text": 5}, {"text": None}, None]}],
        [{"type": "message", "role": "user", "content": "\\boxed{2}"}],
        [{"type": "function_call", "name": {"a": 1}, "arguments": None}],
        [{"type": "mystery", "content": "\\boxed{2}"}],
    ],
)
def test_odd_items_are_no_answer(url: Running, output: list[dict[str, Any]]) -> None:
    """Items that hold no text of the assistant hold no answer, and break nothing."""
    row = verify(url, request(*output, expected_answer="2"), recipe="math")
    assert (row["reward"], row["rewarden_no_answer"], row["mask_sample"]) == (0.0, 1.0, False)


@pytest.mark.parametrize(
    "change",
    [
        {"response": None},
        {"response": {}},
        {"response": {"output": "\\boxed{2}"}},
        {"response": {"output": ["\\boxed{2}"]}},
        {"response": {"output": [], "incomplete_details": "cut"}},
        {"responses_create_params": {}},
        {"responses_create_params": {"input": 5}},
        {"responses_create_params": {"input": ["1+1?"]}},
    ],
)
def test_another_shape_is_refused(url: Running, change: dict[str, Any]) -> None:
    """Without a response there is nothing to verify: the request is refused, not graded as wrong."""
    answer = httpx.post(f"{url}/verify", json=request(message("2")) | change)
    problem(answer, 422, "invalid_request")


def test_rubbish_is_refused(url: Running, rubbish: bytes) -> None:
    """What is no request is a problem that says so, and no row."""
    for path in ("verify", "seed_session"):
        answer = httpx.post(f"{url}/{path}", content=rubbish, headers={"content-type": "application/json"})
        assert answer.status_code in (400, 422) or (path == "seed_session" and b"label" in rubbish), path
        assert answer.json().get("code") in ("not_json", "invalid_request", "bad_request", None)


def test_an_agent_can_seed_its_session(url: Running) -> None:
    """NeMo Gym's simple agent begins a session with its own body, then verifies; environments name the session."""
    body = {"responses_create_params": {"input": "1+1?"}, "expected_answer": "2"}
    seeded = httpx.post(f"{url}/seed_session", json=body)
    assert (seeded.status_code, seeded.json()) == (200, {})
    named = {"resources_session_id": "s", "episode_id": "e", "task_id": "t", "task_data": {}}
    for path in ("seed_session", "close_session"):
        assert httpx.post(f"{url}/{path}", json=named).json() == {"resources_session_id": "s"}
    answer = httpx.post(f"{url}/seed_session", json={"resources_session_id": 5})
    problem(answer, 422, "invalid_request")


def test_long_outputs_take_linear_time(url: Running) -> None:
    """Ten thousands of items are put together at once, not one by one."""
    body = request(*[{"type": "message", "content": "a "}] * 20_000, message("\\boxed{2}"), expected_answer="2")
    assert len(json.dumps(body)) < 1 << 20
    assert learned(verify(url, body, recipe="math")) == 1.0
