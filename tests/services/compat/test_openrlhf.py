"""OpenRLHF's remote reward: its exact request, and the reading of the answer in openrlhf/trainer/ppo_utils."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from problem_document import problem
from service import Running, running_service

from rewarden.services import keys

PROMPT = "<|im_start|>user\nThe answer to 1+1 is not \\boxed{3}.<|im_end|>\n<|im_start|>assistant\n"


def ask(url: str, responses: list[str], labels: list[Any], prompt: str = PROMPT, **query: Any) -> httpx.Response:
    """The call that OpenRLHF makes: lists, and the query is the prompt with the response, tokens and all."""
    queries = [f"{prompt}{response}<|im_end|>" for response in responses]
    payload = {"query": queries, "prompts": [prompt] * len(responses), "labels": labels}
    return httpx.post(f"{url}/get_reward", params=query, json=payload)


def read(answer: httpx.Response) -> dict[str, Any]:
    """What OpenRLHF takes: reward, score and logs, each as the first number of its list."""
    answer.raise_for_status()
    assert answer.headers["content-type"] == "application/json"
    info = answer.json()
    score = info.get("scores")
    if score is None:
        score = info.get("rewards")
    numbers = {"reward": info.get("rewards"), "score": score} | (info.get("extra_logs") or {})
    assert all(math.isfinite(value) for values in numbers.values() for value in values)
    return {name: values[0] for name, values in numbers.items()}


@pytest.mark.parametrize(
    ("response", "label", "expected"),
    [
        ("It is \\boxed{2}.", "2", {"reward": 1, "score": 1, "graded": 1, "correct": 1, "no_answer": 0}),
        ("It is \\boxed{3}.", "2", {"reward": 0, "score": 0, "graded": 1, "correct": 0, "no_answer": 0}),
        ("", "2", {"reward": 0, "score": 0, "graded": 1, "correct": 0, "no_answer": 1}),
        ("\\boxed{2}", 2, {"reward": 1, "score": 1, "graded": 1, "correct": 1, "no_answer": 0}),
    ],
)
def test_one_sample(url: Running, response: str, label: Any, expected: dict[str, float]) -> None:
    """Only what the model wrote is graded: never the prompt, which may hold an answer too."""
    assert read(ask(url, [response], [label], recipe="math")) == expected


def test_an_answer_in_the_prompt_is_not_the_models(url: Running) -> None:
    """A model that says nothing is not paid for what the prompt says."""
    assert read(ask(url, ["Good question."], ["3"], recipe="math"))["reward"] == 0


def test_a_list_keeps_its_order(url: Running) -> None:
    """Several samples in one call have one entry each, in order; none at all has empty lists."""
    found = ask(url, ["\\boxed{2}", "\\boxed{3}", "\\boxed{2}"], ["2", "2", "3"], recipe="math").json()
    assert found["rewards"] == found["scores"] == found["extra_logs"]["correct"] == [1.0, 0.0, 0.0]
    empty = ask(url, [], [], recipe="math")  # what older versions send to all but one of several servers
    assert empty.status_code == 200
    assert empty.json() == {
        "rewards": [],
        "scores": [],
        "extra_logs": {"graded": [], "correct": [], "no_answer": []},
    }


def test_scores_stay_within_0_and_1(url: Running) -> None:
    """Dynamic filtering compares means of scores with shares, so right is 1 and wrong is 0 whatever they are paid."""
    found = ask(url, ["right", "wrong", "silent", "7.5", "-3", "0.25"], [None] * 6, recipe="named").json()
    assert found["rewards"] == [2.0, -1.0, -1.0, 7.5, -3.0, 0.25]
    assert found["scores"] == [1.0, 0.0, 0.0, 1.0, 0.0, 0.25]


def test_ungraded_fails_the_call_with_its_reason(url: Running) -> None:
    """A sample that cannot be graded is never a 0: the call fails, and names the place and the remedy."""
    document = problem(ask(url, ["\\boxed{2}", "\\boxed{2}"], ["2", ""], recipe="math"), 422, "ungraded")
    assert "bad_reference" in document["detail"]
    assert [fault["pointer"] for fault in document["errors"]] == ["/query/1"]
    answer = ask(url, ["judge_failed", "worker_lost"], [None, None], recipe="named")
    problem(answer, 503, "ungraded_for_now")
    assert int(answer.headers["retry-after"]) >= 1
    problem(ask(url, ["judge_failed", "no_consensus"], [None, None], recipe="named"), 422, "ungraded")


def test_a_stated_value_is_told_from_a_reward(url: Running) -> None:
    """With `?ungraded=` every sample has a number, and the logs, whose keys are the same, say which were graded."""
    found = ask(url, ["right", "judge_failed"], [None, None], recipe="named", ungraded=0.5).json()
    assert found["rewards"] == [2.0, 0.5]
    assert found["scores"] == [1.0, 0.5]
    assert found["extra_logs"] == {"graded": [1.0, 0.0], "correct": [1.0, 0.0], "no_answer": [0.0, 0.0]}


def test_a_query_without_its_prompt_is_not_guessed_at(url: Running) -> None:
    """Where the prompt is not in the query, nobody can tell what the model wrote."""
    payload = {"query": ["\\boxed{2}"], "prompts": ["1+1?"], "labels": ["2"]}
    answer = httpx.post(f"{url}/get_reward", params={"recipe": "math"}, json=payload)
    assert "bad_rollout" in problem(answer, 422, "ungraded")["detail"]


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"query": ["a"]},
        {"query": "a", "prompts": "a", "labels": "2"},
        {"query": ["a"], "prompts": ["a", "b"], "labels": ["2"]},
        {"query": ["a"], "prompts": ["a"], "labels": []},
        {"query": [["a"]], "prompts": ["a"], "labels": ["2"]},
        {"query": [None], "prompts": ["a"], "labels": ["2"]},
        {"query": [1], "prompts": ["a"], "labels": ["2"]},
    ],
)
def test_another_shape_is_refused(url: Running, payload: dict[str, Any]) -> None:
    """Lists of another length or type are refused as a whole."""
    problem(httpx.post(f"{url}/get_reward", json=payload), 422, "invalid_request")


def test_too_many_samples_are_refused(url: Running) -> None:
    """The limit on rollouts holds here too."""
    problem(ask(url, ["2"] * 101, ["2"] * 101), 413, "too_many_rollouts")


def test_rubbish_is_refused(url: Running, rubbish: bytes) -> None:
    """What is no request is a problem that says so, and no reward."""
    answer = httpx.post(f"{url}/get_reward", content=rubbish, headers={"content-type": "application/json"})
    assert answer.status_code in (400, 422)
    assert answer.json()["code"] in ("not_json", "invalid_request", "bad_request")


def test_a_key_in_the_address(tmp_path: Path) -> None:
    """OpenRLHF can be given nothing but an address, so the key may be the password in it."""
    text, key = keys.make("trainer", ("score",), created=datetime.now(UTC))
    keys.save(tmp_path / "keys.json", {key.id: key})
    with running_service(keys=tmp_path / "keys.json") as url:
        problem(ask(url, ["\\boxed{2}"], ["2"], recipe="math"), 401, "no_key")
        address = url.replace("://", f"://key:{text}@")
        assert read(ask(address, ["\\boxed{2}"], ["2"], recipe="math"))["reward"] == 1
