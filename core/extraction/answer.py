r"""The one place that finds the answer in a model's completion, used by every verifier.

Three policies say what counts as an answer (thinking never does, under any of them):

* `strict`: what the last explicit marker holds: `\boxed{..}`, `\fbox{..}` or `<answer>..</answer>`.
* `last_boxed`: what the last box holds.
* `lenient`: the last of a box, an answer tag and a statement ("the answer is 6", "Answer: 6", `#### 6`); without any of
  these, the first of: the whole text where it is nothing but an expression, the output of the last program run, the
  last math span or number (that of the later sentence), the whole text where it is a few words.

What is offered last wins: a box followed by "wait, actually" and another box is a retraction. Neighbouring boxes that
form a list (`\boxed{3}, \boxed{5} and \boxed{7}`) are one list answer. Different answers offered as alternatives
(`\boxed{5} or \boxed{6}`) are no answer: the problem is `several_answers`, and `candidates` holds them, for a verifier
whose reference has several values itself, or that can show them to be one value in two forms.
An empty marker, one that was cut, and residue of a template are no answer either, whatever else the text holds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from .boxes import MAX_BOXES, BoxGroup, last_box, last_group
from .last_value import Found, distinct, is_bare, last_output, last_value, span_at
from .latex import unwrap_math, unwrap_text
from .letters import LETTERS, listed_letters, prose_letters, short_letters
from .statements import hedged, is_placeholder, last_hash, last_statement
from .tags import last_tag, offered_with
from .thinking import Visible, visible

Policy = Literal["strict", "last_boxed", "lenient"]

_MAX_WHOLE = 200
_MAX_WORDS = 8
_MIN_LATE = 10
_NOTHING = Visible("", -1, None)
_MARKDOWN = "*_`\"'“” \t\r\n"


@dataclass(frozen=True, slots=True)
class Extraction:
    """What was found in a text, and how.

    `answer` is None where there is no answer to grade; `problem` then says why: `empty` (nothing, or an empty marker),
    `unclosed_thinking`, `truncated` (the last marker never closes), `placeholder` (residue of a template),
    `several_answers`, `not_found`. `method` is the marker that decided: `boxed`, `answer_tag`, `final_answer`,
    `hash_marker`, `tool_output`, `math_span`, `last_number`, `whole_text`, `letter` (multiple choice, in prose) or
    `none`. `candidates` holds the different answers where several were offered as alternatives, else it is empty.
    `span` is where the answer stands (start, end) in `shown.text`, where that is known; `shown` is what of a completion
    was looked at, and says where that is in the completion. References have neither.
    """

    answer: str | None
    method: str
    candidates: tuple[str, ...] = ()
    problem: str | None = None
    span: tuple[int, int] | None = None
    shown: Visible = field(default=_NOTHING, compare=False, repr=False)


def extract(completion: str | Sequence[Any], policy: Policy = "lenient") -> Extraction:
    """Find the answer in a completion: text, or chat messages (dicts or objects), whose last assistant message counts.

    Linear in the length of the completion, whatever it holds. Never raises for anything that a model wrote.
    """
    shown = visible(completion)
    if shown.problem is not None:
        return Extraction(None, "none", problem=shown.problem, shown=shown)
    found = _extract(shown.text, policy)
    object.__setattr__(found, "shown", shown)  # just made, and nobody else's: a copy would cost more than the search
    return found


def _extract(text: str, policy: Policy) -> Extraction:
    group = last_group(text)
    if policy != "last_boxed":
        tagged = _from_tag(text, group.end if group is not None else 0)
        if tagged is not None:
            return tagged
    if group is not None:
        if policy == "lenient" and len(text) - group.end > _MIN_LATE:
            late = last_statement(text, group.end, late=True)
            if late is not None:
                return _from_found(late)
        found = _from_boxes(group)
        options = hedged(found.answer, text, group.end) if policy == "lenient" and found.answer is not None else ()
        return found if not options else Extraction(None, "boxed", options, "several_answers")
    return _from_prose(text) if policy == "lenient" else _missing()


def extract_reference(text: str) -> Extraction:
    r"""Find the answer in a reference: a bare gold answer, or a whole solution that ends in one.

    A text with a box counts by its last box or boxes (alternatives come joined by " or ": a reference may accept
    several), one with `#### ` by that. A bare gold answer comes back as it is, without the math delimiters around it.
    A longer text counts by its last statement, math span or number. Problems as in `Extraction`.
    """
    stripped = text.strip()
    if not stripped:
        return Extraction(None, "none", problem="empty")
    group = last_group(stripped)
    if group is not None:
        found = _from_boxes(group)
        if found.candidates:
            return Extraction(" or ".join(found.candidates), "boxed", found.candidates)
        return found
    hashed = last_hash(stripped) if "####" in stripped else None
    if hashed is not None:
        return _from_found(hashed)
    if len(stripped) <= _MAX_WHOLE and "\n\n" not in stripped:
        said = last_statement(stripped)
        if said is not None and not said.candidates and is_bare(said.answer):
            return _from_found(said)
        return Extraction(_without_delimiters(stripped), "whole_text")
    stated = last_statement(stripped) or last_value(stripped)
    if stated is not None:
        if stated.candidates:
            return Extraction(stated.answer, stated.method, stated.candidates)
        return _from_found(stated)
    return Extraction(stripped, "whole_text")


def choice_letter(completion: str | Sequence[Any], letters: str = LETTERS) -> Extraction:
    r"""Find the letter that a completion chooses among `letters` (capitals), as capital letter.

    A box or an answer tag decides where it holds a letter (`\boxed{\text{(C)}}`, `<answer>C. Paris</answer>`), unless a
    statement after it names another one; where it holds something else, or is not there, the prose decides. Letters
    offered together ("A or B") are `several_answers`. References such as `(C) Paris` are read by it too.
    """
    marked = extract(completion)
    shown = marked.shown
    if shown.problem is not None or (marked.answer is None and marked.method in ("boxed", "answer_tag")):
        return marked
    if marked.candidates and all(short_letters(candidate, letters) for candidate in marked.candidates):
        return marked
    chosen: tuple[str, ...] = ()
    if marked.answer is not None and marked.method in ("boxed", "answer_tag", "final_answer", "whole_text"):
        chosen = short_letters(marked.answer, letters)
    if chosen:
        found = Extraction(chosen[0], marked.method, span=marked.span, shown=shown)
    else:
        listed = listed_letters(shown.text, letters)
        chosen = listed if len(listed) > 1 else prose_letters(shown.text, letters)
        if not chosen:
            return replace(_missing(), shown=shown)
        found = Extraction(chosen[0], "letter", shown=shown)
    return found if len(chosen) == 1 else Extraction(None, found.method, chosen, "several_answers", shown=shown)


def reference_letter(reference: str, letters: str = LETTERS, *, titled: bool = False) -> str | None:
    r"""The letter that a reference is, in any dress (`C`, `(C)`, `\boxed{\text{C}}`, "the answer is C"), or None.

    `letters` count in the case given. `titled`: the letter may also be set off from the text of its option (`C. Paris`,
    `(C) Paris`); such a reference may as well be a name (`E. coli`), so that only who knows that there are options
    should ask for it. `Vitamin C` and `A cat` are none.
    """
    found = extract_reference(reference).answer if len(reference) > 1 else reference
    letter = _LETTER.fullmatch(unwrap_text(found or "").strip("*_$ "))
    if letter is None or letter["letter"] not in letters or (letter["title"] and not titled):
        return None
    return letter["letter"]


def _missing() -> Extraction:
    return Extraction(None, "none", problem="not_found")


def _answered(answer: str, method: str, start: int, end: int) -> Extraction:
    answer = answer.strip()
    if not answer:
        return Extraction(None, method, problem="empty")
    if is_placeholder(answer):
        return Extraction(None, method, problem="placeholder")
    return Extraction(answer, method, span=(start, end))


def _from_boxes(group: BoxGroup) -> Extraction:
    boxes = group.boxes
    if len(boxes) == 1:
        box = boxes[0]
        if not box.closed:
            return Extraction(None, "boxed", problem="truncated")
        return _answered(_unboxed(box.content), "boxed", box.inner, box.inner + len(box.content))
    contents = tuple(dict.fromkeys(_unboxed(each.content).strip() for each in boxes))
    if not all(contents):
        return Extraction(None, "boxed", problem="empty")
    if len(contents) > 1 and (group.alternatives or len(boxes) >= MAX_BOXES):
        return Extraction(None, "boxed", contents, "several_answers")
    return _answered(", ".join(contents), "boxed", boxes[0].start, boxes[-1].end)


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


def _from_tag(text: str, boxed_end: int) -> Extraction | None:
    """What the last answer tag holds, where it stands after the last box (which may be inside another tag)."""
    tag = last_tag(text, boxed_end)
    if tag is None or (tag.closed and boxed_end and tag.opening < boxed_end):
        return None
    if not tag.closed:
        return Extraction(None, "answer_tag", problem="truncated")
    content = text[tag.start : tag.end].strip()
    other = offered_with(text, tag)
    if other and other != content:
        return Extraction(None, "answer_tag", (other, content), "several_answers")
    bare = content.strip("*`").strip()
    return _answered(unwrap_math(bare) or bare, "answer_tag", tag.start, tag.end)


def _from_found(found: Found) -> Extraction:
    if found.candidates:
        return Extraction(None, found.method, found.candidates, "several_answers")
    return _answered(found.answer, found.method, found.start, found.end)


def _from_prose(text: str) -> Extraction:
    stated = last_statement(text)
    if "####" in text:
        hashed = last_hash(text)
        if hashed is not None and (stated is None or hashed.start > stated.start):
            stated = hashed
    if stated is not None:
        return _from_found(stated)
    whole = text.strip(_MARKDOWN) if len(text) <= 2 * _MAX_WHOLE else ""
    spanned = unwrap_math(whole)
    if spanned is not None:
        return _answered(spanned, "math_span", 0, len(text))
    if whole and "$" not in whole and is_bare(whole):
        return _answered(whole.rstrip(".").strip() or whole, "whole_text", 0, len(text))
    value = last_output(text) or last_value(text)
    if value is not None:
        before = text[max(0, value.start - 48) : value.start]
        if _is_rejected(before, text[value.end : value.end + 4]):
            return _missing()
        other = _OR_BEFORE.search(before)
        options = distinct((other["other"], value.answer)) if other is not None else ()
        return _from_found(value._replace(candidates=value.candidates or options))
    if whole and len(whole) <= _MAX_WHOLE and len(whole.split()) <= _MAX_WORDS:
        return _answered(whole.rstrip(".").strip() or whole, "whole_text", 0, len(text))
    return _missing()


_REJECTED = re.compile(
    r"(?:\b(?:not|never|cannot|wrong|incorrect|suppose|supposing|assume|assuming|unless|could it be|is it)\b|n['’]t\b)"
    r"[^\d.,;:\n]{0,24}[\s:*_$(]*$|[<>≠≤≥]\s*$",
    re.IGNORECASE,
)


def _is_rejected(before: str, after: str) -> bool:
    """Whether the text rejects the value between, bounds it, or asks about it ("not 5", "x > 5", "is it 5?")."""
    return _REJECTED.search(before) is not None or after.lstrip(" *_$")[:1] == "?"


_OR_BEFORE = re.compile(
    r"(?P<other>-?\d[\d.,]*)[\s$*_)]*,?\s+(?:or|alternatively)(?:,?\s(?:maybe|possibly|perhaps))?[\s$*_(]*$",
    re.IGNORECASE,
)


_LETTER = re.compile(
    r"(?i:(?:the )?(?:correct )?(?:answer|option|choice)(?: is)?:? *)?[(\[]?(?P<letter>[A-Za-z])"
    r"(?:[)\]]?[.:]?|(?P<title>(?:[)\]][.:]?|[.:])\s++\S.*))",
    re.DOTALL,
)
_DELIMITER = re.compile(r"\$|\\[(\[]")


def _without_delimiters(text: str) -> str:
    """A short gold answer without math delimiters: `$1$ and $2$` is `1 and 2`. Amounts of money stay as they are."""
    whole = unwrap_math(text)
    if whole is not None:
        return whole
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
