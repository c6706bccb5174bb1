"""LLaMA-Factory's reward server: the request and the reading of the answer as its PPO trainer does them."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from problem_document import problem
from service import Running

TEMPLATES = {
    "qwen": "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n{}<|im_end|>",
    "llama3": "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\n{}<|eot_id|>"
    "<|start_header_id|>assistant<|end_header_id|>\n\n{}<|eot_id|>",
    "gemma": "<bos><start_of_turn>user\n{}<end_of_turn>\n<start_of_turn>model\n{}<end_of_turn>",
    "deepseek3": "<｜begin▁of▁sentence｜><｜User｜>{}<｜Assistant｜>{}<｜end▁of▁sentence｜>",
    "mistral": "<s>[INST] {} [/INST] {}</s>",
    "phi": "<|user|>\n{}<|end|>\n<|assistant|>\n{}<|end|>",
}


def ask(url: str, texts: list[Any], **query: Any) -> httpx.Response:
    """The call that LLaMA-Factory makes."""
    payload = {"model": "model", "messages": texts}
    headers = {"Content-Type": "application/json"}
    return httpx.post(f"{url}/v1/score/evaluation", params=query, content=json.dumps(payload), headers=headers)


def scores(answer: httpx.Response) -> list[float]:
    """What LLaMA-Factory makes of the answer. It looks at no status, and stops where there are no scores."""
    found: list[float] = json.loads(answer.text)["scores"]
    assert all(isinstance(score, float) for score in found)
    return found


@pytest.mark.parametrize("template", TEMPLATES)
def test_the_response_of_each_template_is_scored(url: Running, template: str) -> None:
    """The response is found behind the prompt, whose words do not count, and comes without special tokens."""
    texts = [TEMPLATES[template].format(prompt, said) for prompt, said in [("wrong", "right"), ("right", "wrong")]]
    answer = ask(url, texts, recipe="named")
    assert scores(answer) == [2.0, -1.0]
    assert answer.json()["object"] == "score.evaluation"
    assert answer.json()["model"] == "named"


def test_the_last_turn_counts(url: Running) -> None:
    """Earlier turns of a conversation are its prompt."""
    turn = TEMPLATES["qwen"]
    assert scores(ask(url, [turn.format("a", "wrong") + "\n" + turn.format("b", "right")], recipe="named")) == [2.0]


def test_padding_and_silence(url: Running) -> None:
    """Padding at the end is no part of the response, and a response that is empty is the model's fault."""
    padded = TEMPLATES["qwen"].format("a", "right") + "<|endoftext|>" * 100
    assert scores(ask(url, [padded], recipe="named")) == [2.0]


def test_another_template_is_said_in_the_address(url: Running) -> None:
    """Without a known template nothing is graded, and the problem names the parameter that helps."""
    text = "### Instruction:\nwrong\n\n### Response:\nright</s>"
    document = problem(ask(url, [text], recipe="named"), 422, "ungraded")
    assert "?assistant=" in document["detail"]
    assert scores(ask(url, [text], recipe="named", assistant="### Response:")) == [2.0]


def test_ungraded_stops_training(url: Running) -> None:
    """Nothing here can say "not graded", so there are no scores at all, unless the address states a value."""
    texts = [TEMPLATES["qwen"].format("a", said) for said in ("right", "no_consensus")]
    answer = ask(url, texts, recipe="named")
    assert [fault["pointer"] for fault in problem(answer, 422, "ungraded")["errors"]] == ["/messages/1"]
    with pytest.raises(KeyError):
        scores(answer)
    assert scores(ask(url, texts, recipe="named", ungraded=-2)) == [2.0, -2.0]
    problem(ask(url, [TEMPLATES["qwen"].format("a", "deadline")], recipe="named"), 503, "ungraded_for_now")


def test_a_recipe_that_needs_a_reference_says_so(url: Running) -> None:
    """This shape has no reference; a recipe that needs one does not make up a score."""
    text = TEMPLATES["qwen"].format("1+1?", "\\boxed{2}")
    assert "reference" in problem(ask(url, [text], recipe="math"), 422, "ungraded")["detail"]
    assert "?recipe=" in problem(ask(url, [text]), 422, "ungraded")["detail"]


@pytest.mark.parametrize(
    "payload", [{}, {"messages": "text"}, {"messages": [1]}, {"messages": [None]}, {"messages": {}}]
)
def test_another_shape_is_refused(url: Running, payload: dict[str, Any]) -> None:
    """The texts are a list of texts."""
    problem(httpx.post(f"{url}/v1/score/evaluation", json=payload), 422, "invalid_request")


def test_chat_messages_are_refused(url: Running) -> None:
    """`messages` is a list of texts here, whatever the name suggests."""
    problem(ask(url, [{"role": "user", "content": "1+1?"}]), 422, "invalid_request")


def test_rubbish_is_refused(url: Running, rubbish: bytes) -> None:
    """What is no request is a problem that says so, and no score."""
    headers = {"content-type": "application/json"}
    answer = httpx.post(f"{url}/v1/score/evaluation", content=rubbish, headers=headers)
    assert answer.status_code in (400, 422)
    with pytest.raises(KeyError):
        scores(answer)
