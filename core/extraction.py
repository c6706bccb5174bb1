r"""The one place that finds the answer in a model's completion, used by every verifier.

Three policies say what counts as an answer (thinking never does, under any of them):

| policy | an answer is |
|---|---|
| `strict` | what the last explicit marker holds: `\boxed{..}`, `\fbox{..}` or `<answer>..</answer>` |
| `last_boxed` | what the last box holds |
| `lenient` | the last of: a box, an answer tag, a statement ("the answer is 6", "Answer: 6", `#### 6`); where there is none of these, a text that is nothing but an expression, else the last math span or number, else a text of a few words |

What is offered last wins: a box followed by "wait, actually" and another box is a retraction. Neighbouring boxes that
form a list (`\boxed{3}, \boxed{5} and \boxed{7}`) are one list answer. Different answers offered as alternatives
(`\boxed{5} or \boxed{6}`) are no answer: the problem is `several_answers`, and `candidates` holds them, for a verifier
whose reference has several values itself, or that can show them to be one value in two forms.
An empty marker, one that was cut, and residue of a template are no answer either, whatever else the text holds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from .boxes import MAX_BOXES, Box, boxed_spans, last_box, last_group
from .prose import Found, is_bare, is_placeholder, last_hash, last_statement, last_value, span_at
from .thinking import strip_thinking, visible

__all__ = [
    "Box",
    "Extraction",
    "Policy",
    "boxed_spans",
    "extract",
    "extract_reference",
    "strip_thinking",
]

Policy = Literal["strict", "last_boxed", "lenient"]

_OPEN_TAG, _CLOSE_TAG = "<answer>", "</answer>"
_MAX_WHOLE = 200
_MAX_WORDS = 8
_MIN_LATE = 10
_MARKDOWN = "*_`\"'“” \t\r\n"


@dataclass(frozen=True, slots=True)
class Extraction:
    """What was found in a text, and how.

    `answer` is None where there is no answer to grade; `problem` then says why: `empty` (nothing, or an empty marker),
    `unclosed_thinking`, `truncated` (the last marker never closes), `placeholder` (residue of a template),
    `several_answers`, `not_found`. `method` is the marker that decided: `boxed`, `answer_tag`, `final_answer`,
    `hash_marker`, `math_span`, `last_number`, `whole_text`, `letter` (multiple choice) or `none`. `candidates` holds
    the different answers where several were offered as alternatives, else it is empty. `span` is where the answer
    stands (start, end; in characters of the completion, or of the last assistant message's text), where that is known.
    """

    answer: str | None
    method: str
    candidates: tuple[str, ...] = ()
    problem: str | None = None
    span: tuple[int, int] | None = None


def extract(completion: str | Sequence[Any], policy: Policy = "lenient") -> Extraction:
    """Find the answer in a completion: text, or chat messages (dicts or objects), whose last assistant message counts.

    Linear in the length of the completion, whatever it holds. Never raises for anything that a model wrote.
    """
    shown = visible(completion)
    if shown.problem is not None:
        return Extraction(None, "none", problem=shown.problem)
    text, offset = shown.text, shown.offset
    box = last_box(text)
    end = box.end if box is not None else 0
    if policy == "last_boxed":
        return _missing() if box is None else _from_boxes(text, box, offset)
    tag_close = text.rfind(_CLOSE_TAG, end)
    tag_open = text.rfind(_OPEN_TAG, 0 if tag_close >= 0 else end)
    if tag_close >= 0 and (box is None or tag_open > box.end):
        return _from_tag(text, tag_open, tag_close, offset)
    if tag_open >= end and tag_close < 0 and (box is None or box.closed):
        return Extraction(None, "answer_tag", problem="truncated")
    if policy == "strict":
        return _missing() if box is None else _from_boxes(text, box, offset)
    if box is not None:
        if box.closed and len(text) - end > _MIN_LATE:
            late = last_statement(text, end, late=True)
            if late is not None:
                return _from_found(late, offset)
        return _from_boxes(text, box, offset)
    return _from_prose(text, offset)


def extract_reference(text: str) -> Extraction:
    r"""Find the answer in a reference: a bare gold answer, or a whole solution that ends in one.

    A text with a box counts by its last box or boxes (alternatives come joined by " or ": a reference may accept
    several), one with `#### ` by that. A bare gold answer comes back as it is, without the math delimiters around it.
    A longer text counts by its last statement, math span or number. Problems as in `Extraction`.
    """
    stripped = text.strip()
    if not stripped:
        return Extraction(None, "none", problem="empty")
    box = last_box(stripped)
    if box is not None:
        found = _from_boxes(stripped, box, 0)
        if found.candidates:
            return Extraction(" or ".join(found.candidates), "boxed", found.candidates)
        return found
    hashed = last_hash(stripped) if "####" in stripped else None
    if hashed is not None:
        return _from_found(hashed, -1)
    if len(stripped) <= _MAX_WHOLE and "\n\n" not in stripped:
        return Extraction(_without_delimiters(stripped), "whole_text")
    stated = last_statement(stripped) or last_value(stripped)
    if stated is not None:
        if stated.candidates:
            return Extraction(stated.answer, stated.method, stated.candidates)
        return _from_found(stated, -1)
    return Extraction(stripped, "whole_text")


def _missing() -> Extraction:
    return Extraction(None, "none", problem="not_found")


def _answered(answer: str, method: str, start: int, end: int, offset: int) -> Extraction:
    answer = answer.strip()
    if not answer:
        return Extraction(None, method, problem="empty")
    if is_placeholder(answer):
        return Extraction(None, method, problem="placeholder")
    return Extraction(answer, method, span=(start + offset, end + offset) if offset >= 0 else None)


def _from_boxes(text: str, box: Box, offset: int) -> Extraction:
    if not box.closed:
        return Extraction(None, "boxed", problem="truncated")
    group = last_group(text, box)
    boxes = group.boxes
    if len(boxes) == 1:
        box = boxes[0]
        return _answered(_unboxed(box.content), "boxed", box.inner, box.inner + len(box.content), offset)
    contents = tuple(dict.fromkeys(_unboxed(each.content).strip() for each in boxes))
    if not all(contents):
        return Extraction(None, "boxed", problem="empty")
    if len(contents) > 1 and (group.alternatives or len(boxes) >= MAX_BOXES):
        return Extraction(None, "boxed", contents, "several_answers")
    return _answered(", ".join(contents), "boxed", boxes[0].start, boxes[-1].end, offset)


def _unboxed(content: str) -> str:
    """The content of a box without the box commands inside it."""
    if "boxed" not in content and "\\fbox" not in content:
        return content
    inner = content.strip()
    for _ in range(16):
        nested = last_box(inner)
        if nested is None or not nested.closed or nested.start != 0 or nested.end != len(inner):
            break
        inner = nested.content.strip()
    return inner.replace("\\boxed", "").replace("\\fbox", "") if "box" in inner else inner


def _from_tag(text: str, tag_open: int, tag_close: int, offset: int) -> Extraction:
    if tag_open < 0:
        # The opening tag was prefilled in the prompt, as thinking tags are.
        start = 0
    else:
        start = tag_open + len(_OPEN_TAG)
    content = text[start:tag_close]
    options = _tag_alternatives(text, tag_open)
    if options and options != content.strip():
        return Extraction(None, "answer_tag", (options, content.strip()), "several_answers")
    bare = content.strip().strip("*`").strip()
    span = span_at(bare, 0)
    if span is not None and span.end == len(bare):
        bare = span.content
    return _answered(bare, "answer_tag", start, tag_close, offset)


def _tag_alternatives(text: str, tag_open: int) -> str:
    """The content of an answer tag just before the last one that is offered with it, or an empty string."""
    before = text.rfind(_CLOSE_TAG, max(0, tag_open - 40), max(tag_open, 0))
    if before < 0:
        return ""
    gap = text[before + len(_CLOSE_TAG) : tag_open].strip(" \t\r\n,;.")
    if gap.lower() not in ("", "or", "and", "/", "|", "or maybe", "maybe"):
        return ""
    start = text.rfind(_OPEN_TAG, 0, before)
    return text[start + len(_OPEN_TAG) : before].strip() if start >= 0 else ""


def _from_found(found: Found, offset: int) -> Extraction:
    if found.candidates:
        return Extraction(None, found.method, found.candidates, "several_answers")
    return _answered(found.answer, found.method, found.start, found.end, offset)


def _from_prose(text: str, offset: int) -> Extraction:
    stated = last_statement(text)
    if "####" in text:
        hashed = last_hash(text)
        if hashed is not None and (stated is None or hashed.start > stated.start):
            stated = hashed
    if stated is not None:
        return _from_found(stated, offset)
    whole = text.strip(_MARKDOWN) if len(text) <= 2 * _MAX_WHOLE else ""
    span = span_at(whole, 0)
    if span is not None and span.end == len(whole):
        return _answered(span.content, "math_span", 0, len(text), offset)
    if whole and "$" not in whole and is_bare(whole):
        return _answered(whole.rstrip(".").strip() or whole, "whole_text", 0, len(text), offset)
    value = last_value(text)
    if value is not None:
        return _from_found(value, offset)
    if whole and len(whole) <= _MAX_WHOLE and len(whole.split()) <= _MAX_WORDS:
        return _answered(whole.rstrip(".").strip() or whole, "whole_text", 0, len(text), offset)
    return _missing()


_DELIMITER = re.compile(r"\$|\\[(\[]")


def _without_delimiters(text: str) -> str:
    """A short gold answer without math delimiters: `$1$ and $2$` is `1 and 2`. Amounts of money stay as they are."""
    parts: list[str] = []
    at = 0
    while (opening := _DELIMITER.search(text, at)) is not None:
        span = span_at(text, opening.start())
        if span is None:
            return text
        parts += [text[at : span.start], span.content]
        at = span.end
    parts.append(text[at:])
    return "".join(parts).strip()
