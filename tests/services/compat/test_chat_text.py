"""Laws of finding what the model wrote in a text that holds the prompt too."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewarden.services.compat.chat_text import OPENERS, last_turn, response_in, without_end_tokens


@pytest.mark.parametrize(
    "end",
    [
        "<|im_end|>",
        "<|im_end|>\n",
        "<|eot_id|>",
        "</s>",
        "<｜end▁of▁sentence｜>",
        "<end_of_turn>\n<eos>",
        "<pad>" * 40,
        "",
    ],
)
def test_end_tokens_go(end: str) -> None:
    """What a tokenizer puts behind an answer is not part of it."""
    assert without_end_tokens("so \\boxed{2}" + end) == "so \\boxed{2}"


@pytest.mark.parametrize("text", ["a < b", "x|>", "<|not a token|>", "<b>bold</b>", "f(x)|>2"])
def test_other_ends_stay(text: str) -> None:
    """Text that only looks a little like a token is kept."""
    assert without_end_tokens(text) == text


@given(st.text())
def test_only_the_end_is_taken(text: str) -> None:
    """What is left is a beginning of the text, and there is nothing more to take from it."""
    left = without_end_tokens(text)
    assert text.startswith(left)
    assert without_end_tokens(left) == left


@given(st.text(), st.text(alphabet=st.characters(exclude_categories=("Cs", "Zs", "Cc")), max_size=50).filter(str.strip))
def test_a_response_follows_its_prompt(prompt: str, response: str) -> None:
    """Whatever the prompt, the response is what comes behind it."""
    assert response_in(prompt + response, prompt) == without_end_tokens(response)


def test_a_cut_prompt_is_found() -> None:
    """A trainer that cuts the beginning of a long prompt, or puts a token before it, still gets its response graded."""
    prompt = "".join(f"line {i}\n" for i in range(200)) + "<|im_start|>assistant\n"
    assert response_in(prompt[700:] + "four<|im_end|>", prompt) == "four"
    assert response_in("<s>" + prompt + "four", prompt) == "four"


def test_a_prompt_that_repeats_itself_ends_at_its_end() -> None:
    """A conversation of equal turns is still a prompt as a whole."""
    prompt = "<|im_start|>user\nAgain.<|im_end|>\n<|im_start|>assistant\n" * 50
    assert response_in(prompt + "four<|im_end|>", prompt) == "four"


def test_a_response_that_repeats_its_prompt_hides_nothing() -> None:
    """The prompt is taken from the front: what the model wrote cannot move its end."""
    prompt = "<|im_start|>user\n1+1?<|im_end|>\n<|im_start|>assistant\n"
    assert response_in("<s>" + prompt + "3 " + prompt + "2", prompt) == f"3 {prompt}2"


def test_a_query_without_its_prompt_has_no_response() -> None:
    """Where the prompt is not in the query, nothing is guessed."""
    assert response_in("something else", "1+1?") is None


@pytest.mark.parametrize("opener", OPENERS)
def test_every_known_template_is_split(opener: str) -> None:
    """The last assistant turn is the completion, and all before it is the prompt."""
    turn = last_turn(f"question{opener}\nfirst</s>question{opener}\n\nsecond</s>\n")
    assert turn is not None
    assert turn.completion == "second"
    assert turn.prompt.endswith(opener)


def test_an_own_opener_is_used_alone() -> None:
    """A user's opener replaces the known ones; without any in the text there is no turn."""
    text = "Human: 1+1?\nAssistant: 2 <|im_start|>assistant\n3"
    turn = last_turn(text, "Assistant:")
    assert turn is not None
    assert turn.completion == "2 <|im_start|>assistant\n3"
    assert last_turn("Human: 1+1?\nAssistant: 2") is None


@pytest.mark.parametrize("piece", ["<pad>", "<|", "<|im_end|> ", " ", "</s", "<|im_start|>assistant"])
def test_long_ends_take_linear_time(piece: str) -> None:
    """Megabytes of what looks like tokens take well under the seconds that anything quadratic would take."""
    text = "a" + piece * 400_000
    started = time.monotonic()
    without_end_tokens(text)
    last_turn(text)
    response_in(text, text[:1000])
    assert time.monotonic() - started < 20
