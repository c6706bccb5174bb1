"""slime's remote reward: the request and the reading of the answer as slime/rollout/rm_hub does them."""

from __future__ import annotations

import math
from typing import Any

import httpx
import pytest
from problem_document import problem
from service import Running


def ask(url: str, sample: dict[str, Any], **query: Any) -> httpx.Response:
    """The call that slime makes: one sample as JSON."""
    return httpx.post(f"{url}/remote_rm", params=query, json=sample)


def reward(answer: httpx.Response) -> Any:
    """What slime makes of the answer: an error for a status that is none of success, else the whole JSON.

    Its HTTP client reads no JSON from an answer of another type.
    """
    answer.raise_for_status()
    assert answer.headers["content-type"] == "application/json"
    return answer.json()


@pytest.mark.parametrize("prompt", ["1+1?", [{"role": "user", "content": "1+1?"}]], ids=["text", "messages"])
@pytest.mark.parametrize(
    ("response", "label", "expected"),
    [
        ("It is \\boxed{2}.", "2", 1.0),
        ("It is \\boxed{2}.<|im_end|>", 2, 1.0),
        ("It is \\boxed{3}.", "2", 0.0),
        ("I do not know.", "2", 0.0),
        ("", "2", 0.0),
    ],
)
def test_the_reward_is_a_bare_number(url: Running, prompt: Any, response: str, label: Any, expected: float) -> None:
    """Right and wrong are numbers, and nothing is around them."""
    found = reward(ask(url, {"prompt": prompt, "response": response, "label": label}, recipe="math"))
    assert isinstance(found, float)
    assert found == expected


def test_special_tokens_are_no_part_of_the_response(url: Running) -> None:
    """What the tokenizer puts behind a response is taken off, whatever the scorer."""
    sample = {"prompt": "?", "response": "right<|im_end|>\n<|endoftext|>", "label": None}
    assert reward(ask(url, sample, recipe="named")) == 2.0


def test_an_object_for_reward_key(url: Running) -> None:
    """With `?format=dict` the keys are the same for graded and ungraded, and every reward is a number."""
    samples = {"right": (2.0, 1), "wrong": (-1.0, 1), "no_consensus": (-0.5, 0)}
    for response, (value, graded) in samples.items():
        sample = {"prompt": "?", "response": response, "label": None}
        found = reward(ask(url, sample, recipe="named", format="dict", ungraded=-0.5))
        assert set(found) == {"reward", "graded", "outcome", "reason"}
        assert (found["reward"], found["graded"]) == (value, graded)


@pytest.mark.parametrize("label", [None, "", "  "])
def test_a_missing_label_is_no_reward(url: Running, label: Any) -> None:
    """Without a reference nothing is graded: the call fails and says which reason and what to do."""
    sample = {"prompt": "?", "response": "\\boxed{2}", "label": label}
    document = problem(ask(url, sample, recipe="math"), 422, "ungraded")
    assert "bad_reference" in document["detail"]
    assert "?ungraded=" in document["detail"]
    assert document["errors"][0]["pointer"] == "/response"
    assert not document["retryable"]
    assert reward(ask(url, sample, recipe="math", ungraded="-1e-3")) == -0.001
    # `auto` takes it as a rollout without a reference, not as one whose reference is blank.
    assert "no_consensus" in problem(ask(url, sample), 422, "ungraded")["detail"]


def test_what_may_pass_is_to_be_tried_again(url: Running) -> None:
    """A judge that failed is no verdict on the sample: 503, and when to come again."""
    answer = ask(url, {"prompt": "?", "response": "judge_failed", "label": None}, recipe="named")
    assert problem(answer, 503, "ungraded_for_now")["retryable"]
    assert int(answer.headers["retry-after"]) >= 1


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e999", "zero", ""])
def test_only_a_finite_number_stands_in(url: Running, value: str) -> None:
    """The value for ungraded rollouts is a finite number or the request is refused."""
    sample = {"prompt": "?", "response": "judge_failed", "label": None}
    problem(ask(url, sample, recipe="named", ungraded=value), 422, "invalid_request")


@pytest.mark.parametrize("recipe", ["nothing", "trainer_scorers:Named", "/etc/passwd", "../auto", "http://x/y.toml"])
def test_a_recipe_is_a_name_on_offer(url: Running, recipe: str) -> None:
    """What is not on offer is not found, whatever it looks like."""
    problem(ask(url, {"prompt": "?", "response": "2", "label": "2"}, recipe=recipe), 404, "unknown_recipe")
    problem(ask(url, {"prompt": "?", "response": "2", "label": "2"}, recipe="math@999"), 409, "other_version")


@pytest.mark.parametrize(
    "sample",
    [
        {},
        {"prompt": "?"},
        {"response": None},
        {"response": 7},
        {"response": ["\\boxed{2}"]},
        {"response": {"text": "2"}},
        {"response": "2", "prompt": 5},
        {"response": "2", "prompt": [{"content": "no role"}]},
    ],
)
def test_another_shape_is_refused(url: Running, sample: dict[str, Any]) -> None:
    """A field that is missing or of another type is named in the problem, and nothing is guessed."""
    document = problem(ask(url, sample), 422, "invalid_request")
    assert document["errors"][0]["pointer"].startswith("/")


@pytest.mark.parametrize(
    "label",
    [True, 10**40, -0.0, {"a": 1}, [[[[1]]]], "9^{9^{9^9}}", {"__class__": "os.system"}, "\\input{/etc/passwd}"],
)
def test_odd_labels_never_break_the_service(url: Running, label: Any) -> None:
    """Any JSON may be a label: it is graded, or the call says that it cannot be."""
    answer = ask(url, {"prompt": "?", "response": "\\boxed{2}", "label": label}, recipe="auto")
    if answer.status_code != 200:
        assert answer.json()["code"] in ("ungraded", "ungraded_for_now")
    else:
        assert math.isfinite(reward(answer))


def test_rubbish_is_refused(url: Running, rubbish: bytes) -> None:
    """What is no sample is a problem that says so, and no reward."""
    answer = httpx.post(f"{url}/remote_rm", content=rubbish, headers={"content-type": "application/json"})
    assert answer.status_code in (400, 422)
    assert answer.json()["code"] in ("not_json", "invalid_request", "bad_request")


def test_too_much_is_refused(url: Running) -> None:
    """A body over the limit of the service is refused as everywhere."""
    problem(ask(url, {"prompt": "?", "response": "a" * (1 << 20), "label": "2"}), 413, "too_large")


def test_what_a_later_version_adds_is_let_pass(url: Running) -> None:
    """The shape is slime's: a field that is new in it does not stop a run."""
    sample = {"prompt": "?", "response": "\\boxed{2}", "label": "2", "images": [], "metadata": {"rm_type": "x"}}
    assert reward(ask(url, sample)) == 1.0
