"""vLLM's shapes: what verl sends to a reward model there and how it reads the answer, and the pairs of `/score`."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from problem_document import problem
from service import Running

import rewarden
from rewarden.services.compat.vllm import VLLMClassifyRequest, classify_items

QWEN = "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n{}<|im_end|>\n"


def verl(address: str, text: str, model: str = "/models/some-reward-model", **more: Any) -> float:
    """The reward that verl gets: its router's address takes no query, and its model is a path.

    It reads the last value of the last entry, and raises for a status that is none of success.
    """
    payload = {"model": model, "input": text, "use_activation": False, **more}
    answer = httpx.post(f"http://{address}/classify", json=payload)
    answer.raise_for_status()
    assert answer.headers["content-type"] == "application/json"
    reward: float = answer.json()["data"][-1]["probs"][-1]
    return reward


def test_verl_gets_the_raw_reward(url: Running) -> None:
    """The recipe stands in the path of the address; rewards come as they are, also outside [0, 1]."""
    address = url.removeprefix("http://") + "/recipes/named"
    assert verl(address, QWEN.format("wrong", "right")) == 2.0
    assert verl(address, QWEN.format("right", "wrong")) == -1.0
    assert verl(address, QWEN.format("", "silent")) == -1.0
    assert verl(address, QWEN.format("", "-37.5"), activation=False) == -37.5


def test_verl_hears_of_ungraded(url: Running) -> None:
    """It never gets a number for what was not graded: 422 is not tried again there, 503 is."""
    address = url.removeprefix("http://") + "/recipes/named"
    for said, status in {"no_consensus": 422, "judge_failed": 503}.items():
        with pytest.raises(httpx.HTTPStatusError) as caught:
            verl(address, QWEN.format("", said))
        assert caught.value.response.status_code == status
    with pytest.raises(httpx.HTTPStatusError) as caught:
        verl(url.removeprefix("http://"), QWEN.format("", "right"))  # its model is no recipe
    problem(caught.value.response, 404, "unknown_recipe")


def classify(url: str, payload: dict[str, Any], **query: Any) -> httpx.Response:
    """A call of `/classify`."""
    return httpx.post(f"{url}/classify", params=query, json=payload)


def test_the_answer_has_the_whole_shape(url: Running) -> None:
    """Everything that vLLM's answer has is there, with one value in `probs`."""
    texts = [QWEN.format("", "right"), QWEN.format("", "no_consensus")]
    found = classify(url, {"model": "named", "input": texts}, ungraded=0).json()
    assert found["id"].startswith("classify-")
    assert isinstance(found["created"], int)
    assert (found["object"], found["model"]) == ("list", "named")
    assert found["usage"]["prompt_tokens"] == found["usage"]["total_tokens"] == 0
    assert found["data"] == [
        {"index": 0, "label": "correct", "probs": [2.0], "num_classes": 1},
        {"index": 1, "label": "ungraded", "probs": [0.0], "num_classes": 1},
    ]


def test_a_text_without_a_template_is_the_response(url: Running) -> None:
    """Where no template opens a turn, the text is what the model wrote, unless the URL says what opens it."""
    assert classify(url, {"model": "named", "input": "right"}).json()["data"][0]["probs"] == [2.0]
    text = "Human: wrong\nAssistant: right"
    found = classify(url, {"input": text}, recipe="named", assistant="Assistant:")
    assert found.json()["data"][0]["probs"] == [2.0]
    problem(classify(url, {"model": "named", "input": "right"}, assistant="Assistant:"), 422, "ungraded")


def test_a_conversation(url: Running) -> None:
    """What follows the last message of anybody else is what the model wrote; without any there is nothing to grade."""
    said = [
        {"role": "system", "content": "wrong"},
        {"role": "user", "content": "wrong"},
        {"role": "assistant", "content": None, "tool_calls": [{"type": "function"}]},
        {"role": "tool", "content": "wrong"},
        {"role": "assistant", "content": "right"},
    ]
    found = classify(url, {"model": "named", "messages": said}).json()["data"]
    assert [one["probs"] for one in found] == [[2.0]]
    [item] = classify_items(VLLMClassifyRequest.model_validate({"messages": said}))
    assert isinstance(item, rewarden.Rollout)
    assert [len(part) for part in (item.prompt or (), item.completion)] == [2, 3]
    document = problem(classify(url, {"model": "named", "messages": said[:2]}), 422, "ungraded")
    assert document["errors"][0]["pointer"] == "/messages"
    problem(classify(url, {"model": "named", "messages": []}), 422, "ungraded")


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"input": None},
        {"input": [1, 2, 3]},
        {"input": [[1, 2], [3]]},
        {"input": "a", "messages": [{"role": "assistant", "content": "a"}]},
        {"messages": [{"content": "a"}]},
        {"messages": "a"},
        {"input": "a", "use_activation": True},
        {"input": "a", "activation": True},
        {"input": "a", "use_activation": "no"},
        {"input": "a", "model": 5},
    ],
)
def test_what_is_not_done_here_is_refused(url: Running, payload: dict[str, Any]) -> None:
    """Token ids, an activation, and both or neither of input and messages are refused, not passed over."""
    problem(classify(url, payload), 422, "invalid_request")


@pytest.mark.parametrize("model", ["x" * 10_000, "../auto", "trainer_scorers:Named", "math@", "math@" + "9" * 500, " "])
def test_a_model_is_a_recipe_on_offer(url: Running, model: str) -> None:
    """What is called a model cannot name anything but a recipe."""
    answer = classify(url, {"model": model, "input": "right"})
    if model == "math@":
        assert answer.status_code in (404, 409, 422)
    else:
        assert answer.status_code in (404, 409), answer.text


def score(url: str, payload: dict[str, Any], **query: Any) -> httpx.Response:
    """A call of `/score`."""
    return httpx.post(f"{url}/score", params=query, json=payload)


@pytest.mark.parametrize(
    "names", [("text_1", "text_2"), ("queries", "documents"), ("queries", "items"), ("data_1", "data_2")]
)
def test_pairs(url: Running, names: tuple[str, str]) -> None:
    """1 to 1, 1 to N and N to N, under every pair of names that vLLM takes."""

    def scores(first: Any, second: Any) -> list[float]:
        found = score(url, dict(zip(names, (first, second), strict=True)), recipe="math", **{"as": "reference"}).json()
        assert [one["index"] for one in found["data"]] == list(range(len(found["data"])))
        assert all(one["object"] == "score" for one in found["data"])
        assert found["model"] == "math"
        return [one["score"] for one in found["data"]]

    assert scores("2", "\\boxed{2}") == [1.0]
    assert scores("2", ["\\boxed{2}", "\\boxed{3}<|im_end|>", "\\boxed{4/2}"]) == [1.0, 0.0, 1.0]
    assert scores(["2"], ["\\boxed{2}", "\\boxed{3}"]) == [1.0, 0.0]
    assert scores(["2", "3"], ["\\boxed{2}", "\\boxed{2}"]) == [1.0, 0.0]


def test_the_first_text_is_the_prompt(url: Running) -> None:
    """Unless it is said to be the reference, it is none: math then has nothing to compare with."""
    assert score(url, {"model": "named", "text_1": "wrong", "text_2": "right"}).json()["data"][0]["score"] == 2.0
    problem(score(url, {"model": "math", "text_1": "2", "text_2": "\\boxed{2}"}), 422, "ungraded")
    found = httpx.post(f"{url}/recipes/named/score", json={"model": "x", "text_1": "a", "text_2": ["right", "wrong"]})
    assert [one["score"] for one in found.json()["data"]] == [2.0, -1.0]


def test_a_pair_that_cannot_be_graded(url: Running) -> None:
    """The call fails, or has the value that the URL states."""
    payload = {"model": "named", "text_1": "?", "text_2": ["right", "bad_reference"]}
    assert problem(score(url, payload), 422, "ungraded")["errors"][0]["pointer"] == "/text_2/1"
    alone = {"model": "named", "queries": "?", "documents": "bad_reference"}
    assert problem(score(url, alone), 422, "ungraded")["errors"][0]["pointer"] == "/documents"
    assert [one["score"] for one in score(url, payload, ungraded=0.5).json()["data"]] == [2.0, 0.5]
    problem(score(url, {**payload, "text_2": "worker_lost"}), 503, "ungraded_for_now")


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"text_1": "a"},
        {"text_1": "a", "documents": "b"},
        {"text_1": [], "text_2": ["b"]},
        {"text_1": "a", "text_2": []},
        {"text_1": ["a", "b"], "text_2": ["c"]},
        {"text_1": ["a", "b"], "text_2": "c"},
        {"text_1": {"content": [{"type": "text", "text": "a"}]}, "text_2": "b"},
        {"text_1": 1, "text_2": 2},
        {"text_1": "a", "text_2": "b", "use_activation": True},
    ],
)
def test_other_pairs_are_refused(url: Running, payload: dict[str, Any]) -> None:
    """Sides that do not fit, other types and an activation are refused."""
    problem(score(url, payload), 422, "invalid_request")


def test_as_is_one_of_two(url: Running) -> None:
    """The first text is the prompt or the reference, and nothing else."""
    payload = {"model": "named", "text_1": "a", "text_2": "right"}
    problem(score(url, payload, **{"as": "gold"}), 422, "invalid_request")


@pytest.mark.parametrize("path", ["classify", "score"])
def test_rubbish_is_refused(url: Running, rubbish: bytes, path: str) -> None:
    """What is no request is a problem that says so, and no reward."""
    answer = httpx.post(f"{url}/{path}", content=rubbish, headers={"content-type": "application/json"})
    assert answer.status_code in (400, 422)
    assert answer.json()["code"] in ("not_json", "invalid_request", "bad_request")
