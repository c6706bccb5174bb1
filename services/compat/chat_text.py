"""Which part of a text the model wrote, where a trainer sends prompt and response as one text with special tokens.

Covered: a response after a known prompt (also where the trainer cut the prompt's beginning or put a token before it),
the last assistant turn of the chat templates in `OPENERS`, special tokens and padding at the end. Not covered: other
templates, unless the caller says what opens the assistant's turn.

What a model can write must not decide whether it is graded: the prompt is looked for from the front, where it always
stands, and a response that imitates a template is graded on what follows its imitation.
"""

from __future__ import annotations

import re
from typing import NamedTuple

OPENERS = (
    "<|im_start|>assistant",  # ChatML: Qwen and many others
    "<|start_header_id|>assistant<|end_header_id|>",  # Llama 3
    "<|header_start|>assistant<|header_end|>",  # Llama 4
    "<start_of_turn>model",  # Gemma
    "<｜Assistant｜>",  # DeepSeek
    "<|assistant|>",  # Phi, Zephyr, GLM
    "<|start|>assistant",  # gpt-oss
    "[/INST]",  # Llama 2, Mistral
)
"""What opens the assistant's turn in each chat template that is known here."""

_TAIL_OF_PROMPT = 256
"""Characters of a prompt's end that are enough to find where it ends."""

_TOKEN_AT_END = re.compile(
    r"(?:<\|[^<>|\s]{1,40}\|>|<｜[^<>｜\n]{1,40}｜>|</?s>|<(?:bos|eos|pad|unk|end_of_turn|start_of_turn)>"
    r"|\[(?:PAD|EOS|SEP|CLS)\])$"
)
_LONGEST_TOKEN = 48


class Turn(NamedTuple):
    """A text in two: what the model was given, and what it wrote."""

    prompt: str
    completion: str


def without_end_tokens(text: str) -> str:
    """The text without the special tokens, padding and white space at its end. Linear in what is taken away."""
    end = len(text.rstrip())
    while (token := _TOKEN_AT_END.search(text[max(0, end - _LONGEST_TOKEN) : end])) is not None:
        end -= len(token[0])
        while end > 0 and text[end - 1].isspace():
            end -= 1
    return text[:end]


def response_in(query: str, prompt: str) -> str | None:
    """What follows the prompt in the query, without the tokens at its end; None when the prompt is not in it."""
    if query.startswith(prompt):
        return without_end_tokens(query[len(prompt) :])
    tail = prompt[-_TAIL_OF_PROMPT:]
    start = query.find(tail)
    return None if start < 0 else without_end_tokens(query[start + len(tail) :])


def last_turn(text: str, opener: str | None = None) -> Turn | None:
    """The text at its last assistant turn; None when nothing opens one.

    `opener`: what opens the assistant's turn instead of `OPENERS`.
    """
    ends = [start + len(o) for o in ((opener,) if opener else OPENERS) if (start := text.rfind(o)) >= 0]
    if not ends:
        return None
    return Turn(text[: max(ends)], without_end_tokens(text[max(ends) :].lstrip()))
