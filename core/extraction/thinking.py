"""What a completion shows its reader: the last assistant message, without thinking and without later turns.

Covered: text and chat messages (plain dicts or objects, content as text or as parts), `<think>` blocks and their
variants, complete, unopened (the opening tag was prefilled in the prompt) or unclosed (generation was cut), the Harmony
channels of gpt-oss, and end-of-turn tokens left in the text, after which nothing was said by the model in this turn.
Not covered: thinking without any tags ("Let me think..."), which no one can tell from an answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

_MAX_HEADERS = 16
_NAMES = r"think|thinking|thought|thoughts|reasoning"
_SOLUTION = r"<\|end_of_thought\|>(?:\s*+<\|begin_of_solution\|>)?"
_TAG = re.compile(rf"</?(?:{_NAMES})>|◁/?think▷|\[/?THINK\]|<\|begin_of_thought\|>|{_SOLUTION}")
_CLOSE = re.compile(rf"</(?:{_NAMES})>|◁/think▷|\[/THINK\]|{_SOLUTION}")
_TURN = re.compile(r"<\|(?!begin_of_|end_of_thought)[a-z][a-z_]{1,30}\|>|</s>|<｜[^｜\n]{1,40}｜>")
_TURN_HEADER = re.compile(r"assistant\b[ \t]*\n*|\s*+")
_HARMONY = "<|channel|>"
_HARMONY_FINAL = "<|channel|>final<|message|>"


class Visible(NamedTuple):
    """The text to grade. `offset` is where it starts in the model's text, or -1 where parts were put together."""

    text: str
    offset: int
    problem: str | None


def strip_thinking(text: str) -> tuple[str, str | None]:
    """Remove the thinking of a model's text.

    Returns the text outside complete thinking blocks, and None or `"unclosed_thinking"`. A closing tag without an
    opening one (prefilled in the prompt) makes all before it thinking. An opening tag that is never closed means that
    generation stopped inside the thinking: what follows it is removed and the problem says so. Text without tags comes
    back as it is. Time is linear in the length of the text.
    """
    shown = _outside_thinking(text, 0)
    return shown.text, shown.problem


def visible(completion: str | Sequence[Any]) -> Visible:
    """The answering part of a completion: last assistant message, first turn of its text, thinking removed.

    Problems: `"unclosed_thinking"` (see `strip_thinking`; also a last message with reasoning and nothing else) and
    `"empty"`. Offsets are into the completion, or into the last assistant message's text.
    """
    if isinstance(completion, str):
        text = completion
    else:
        found = _last_assistant_text(completion)
        if found is None:
            return Visible("", 0, "unclosed_thinking")
        text = found
    offset = 0
    if "<" in text and ("<|" in text or "</s>" in text or "<｜" in text):
        text, offset, unfinished = _first_turn(text)
        if unfinished:
            return Visible("", offset, "unclosed_thinking")
    shown = _outside_thinking(text, offset)
    if shown.problem is None and (not shown.text or shown.text.isspace()):
        return Visible("", shown.offset, "empty")
    return shown


def _outside_thinking(text: str, offset: int) -> Visible:
    if not _may_think(text):
        return Visible(text, offset, None)
    close = text.rfind("</think>")
    if close >= 0:
        # The usual shape, one block first and the answer after it, needs no scan of the thinking by the regex.
        tail = close + len("</think>")
        opened = text.find("<think>")
        head_blank = opened <= 0 or not text[:opened].strip()
        if head_blank and "<" not in text[tail:] and text.find("<think>", opened + 1, close) < 0:
            return Visible(text[tail:], offset + tail, None)
    parts: list[str] = []
    start, thinking = 0, False
    tag = _TAG.search(text)
    while tag is not None:
        if _CLOSE.match(tag[0]):
            if not thinking:
                parts.clear()
            start, thinking = tag.end(), False
            tag = _TAG.search(text, start)
        else:
            parts.append(text[start : tag.start()])
            thinking = True
            tag = _CLOSE.search(text, tag.end())
    if thinking:
        return Visible("".join(parts), -1, "unclosed_thinking")
    if any(part and not part.isspace() for part in parts):
        parts.append(text[start:])
        return Visible("".join(parts), -1, None)
    return Visible(text[start:], offset + start, None)


def _may_think(text: str) -> bool:
    if "<" in text and ("hink>" in text or "hinking>" in text or "hought" in text or "easoning>" in text):
        return True
    return "◁" in text or "THINK]" in text


def _first_turn(text: str) -> tuple[str, int, bool]:
    """Cut the text at the first end-of-turn token that follows anything; the flag says that only analysis is there."""
    if _HARMONY in text:
        final = text.rfind(_HARMONY_FINAL)
        if final < 0:
            return "", 0, True
        start = final + len(_HARMONY_FINAL)
        end = text.find("<|", start)
        return (text[start:] if end < 0 else text[start:end]), start, False
    start = 0
    for token in islice(_TURN.finditer(text), _MAX_HEADERS):
        said = text[start : token.start()]
        if said and not said.isspace():
            return said, start, False
        header = _TURN_HEADER.match(text, token.end())
        start = token.end() if header is None else header.end()
    return text[start:], start, False


def _field(message: Any, name: str) -> Any:
    return message.get(name) if isinstance(message, Mapping) else getattr(message, name, None)


def _last_assistant_text(messages: Sequence[Any]) -> str | None:
    """Text of the last assistant message that has any; None where the last one stopped in its reasoning."""
    for message in reversed(messages):
        role = _field(message, "role")
        if role not in (None, "assistant", "model"):
            continue
        text = "".join(_texts(_field(message, "content")))
        if text and not text.isspace():
            return text
        reasoning = _field(message, "reasoning_content") or _field(message, "thinking") or _field(message, "reasoning")
        if reasoning and not _field(message, "tool_calls"):
            return None
    return ""


def _texts(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, Sequence):
        for part in content:
            if isinstance(part, str):
                yield part
            elif _field(part, "type") in (None, "text", "output_text"):
                text = _field(part, "text")
                if isinstance(text, str):
                    yield text
