r"""Boxes in LaTeX: `\boxed{...}`, `\fbox{...}` and `\boxed x`, with balanced braces.

Covered: nesting (the outermost box counts), escaped braces, boxes that never close, and groups of boxes at the end of a
text that belong together: a list, or alternatives. Not covered: other frames (`\framebox`, `\colorbox`).
All functions take time linear in the length of the text.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .latex import WRAPPER, closing_brace

MAX_BOXES = 256
"""Boxes of one group that are looked at: a list answer is far shorter, a hostile text is longer."""

_MAX_NESTING = 16
_REACH = 2_000
_MAX_GAP = 90

_BOX = re.compile(r"\\(?:boxed|fbox)(?![A-Za-z])")
_OPEN = re.compile(r"\s*+\{")
_BARE = re.compile(r"[ \t]*+((?:\\(?!boxed|fbox)[A-Za-z]+|\{[^{}\n]{0,200}\}|[^\s$\\{}]++){0,64}+)")
_TOKEN = re.compile(r"\\(?:boxed|fbox)(?![A-Za-z])(?:\s*+\{)?|\\.|[{}]", re.DOTALL)

_NOISE = re.compile(WRAPPER + r"|\\(?:qquad|quad|displaystyle|newline)(?![A-Za-z])|\\[,;:! ()\[\]\\\n]|[${}*~`\s]+")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?|\\[A-Za-z]+|[^\w\s]")
_AND = frozenset({",", ";", "、", "，", "；", "&", "and", "und", "et", "y", "и", "和", "与", "及"})
_OR = frozenset({"or", "oder", "ou", "или", "或", "或者", "/", "|", "maybe", "perhaps", "possibly", "alternatively"})
_APPROXIMATELY = frozenset({"\\approx", "≈", "approximately", "\\sim", "\\simeq"})
_OTHERWISE = frozenset(
    {
        *(".", "!", "?", "。", "no", "not", "nope", "wait", "hmm", "actually", "but", "however", "so", "thus", "hence"),
        *("therefore", "then", "which", "wrong", "incorrect", "mistake", "error", "instead", "sorry", "oops", "rather"),
        *("correction", "corrected", "correcting", "correctly", "simplify", "simplifies", "simplified", "simplifying"),
        *("gives", "giving", "get", "becomes", "equals", "means", "implies", "since", "because", "final", "answer"),
        *("\\implies", "\\rightarrow", "\\to", "→", "⇒", "\\Rightarrow", "recheck", "checking", "reconsider", "let"),
    }
)


class Box(NamedTuple):
    """A box from `start` to `end` (exclusive), its content from `inner` on; `closed` is false where braces never do."""

    start: int
    end: int
    inner: int
    content: str
    closed: bool


class BoxGroup(NamedTuple):
    """Boxes at the end of a text that are offered together: `alternatives` or else (two or more) a list.

    `end` is where the last box command of the text ends.
    """

    boxes: tuple[Box, ...]
    alternatives: bool
    end: int


def boxed_spans(text: str) -> list[Box]:
    """All outermost boxes of a text, in order, and the last of those that never close (up to the end of the text).

    An unclosed box does not hide the closed ones after it: a derivation goes on after a slip.
    """
    found: list[Box] = []
    stack: list[tuple[int, int]] = []
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if mark == "{":
            stack.append((-1, -1))
        elif mark == "}":
            if not stack:
                continue
            start, inner = stack.pop()
            if start >= 0:
                _put_outermost(found, Box(start, token.end(), inner, text[inner : token.start()], True))
        elif len(mark) > 2:
            if mark.endswith("{"):
                stack.append((token.start(), token.end()))
            else:
                _put_outermost(found, _bare_box(text, token.start(), token.end()))
    unclosed = next((place for place in reversed(stack) if place[0] >= 0), None)
    if unclosed is not None:
        start, inner = unclosed
        found.append(Box(start, len(text), inner, text[inner:], False))
        found.sort()
    return found


def last_box(text: str) -> Box | None:
    """The outermost box around the last box command of a text, or None. It may be unclosed."""
    return _previous_box(text, len(text), 0)


def last_group(text: str) -> BoxGroup | None:
    r"""The last box of a text and the boxes before it that are offered together with it, or None without a box.

    Boxes joined by nothing, a comma or "and" (units and labels between them allowed) form a list; "or" makes them
    alternatives. Any other text between two boxes means that the later one replaces the earlier one. A box that only
    approximates the one before it (`\boxed{1/3} \approx \boxed{0.33}`) gives way to it.
    """
    at = _previous_command(text, len(text), 0)
    if at < 0:
        return None
    last = _read_box(text, at)
    if last is not None and _previous_command(text, at, at - _REACH) < 0:
        # The usual case: one box, and none near it that could be around it or beside it.
        return BoxGroup((last,), False, last.end)
    last = _previous_box(text, len(text), 0)
    if last is None:
        return None
    boxes = [last]
    alternatives = False
    at = last.start
    while last.closed and len(boxes) < MAX_BOXES:
        before = _previous_box(text, at, at - _REACH)
        if before is None or not before.closed or at - before.end > _MAX_GAP:
            break
        link = _link(text[before.end : at])
        if link == "approximately":
            boxes[-1] = before
        elif link == "none":
            break
        else:
            alternatives = alternatives or link == "or"
            boxes.append(before)
        at = before.start
    return BoxGroup(tuple(reversed(boxes)), alternatives, last.end)


def _put_outermost(found: list[Box], box: Box) -> None:
    while found and found[-1].start > box.start:
        found.pop()
    found.append(box)


def _bare_box(text: str, start: int, after: int) -> Box:
    bare = _BARE.match(text, after)
    content = bare[1].rstrip(".,;:") if bare else ""
    inner = bare.start(1) if bare else after
    return Box(start, inner + len(content), inner, content, True)


def _read_box(text: str, start: int) -> Box | None:
    command = _BOX.match(text, start)
    if command is None:
        return None
    inner = command.end()
    if text.startswith("{", inner):
        inner += 1
    else:
        opening = _OPEN.match(text, inner)
        if opening is None:
            return _bare_box(text, start, inner)
        inner = opening.end()
    end = closing_brace(text, inner)
    if end < 0:
        return Box(start, len(text), inner, text[inner:], False)
    return Box(start, end + 1, inner, text[inner:end], True)


def _outermost_at(text: str, start: int) -> Box | None:
    box = _read_box(text, start)
    if box is None:
        return None
    at = start
    for _ in range(_MAX_NESTING):
        at = _previous_command(text, at, start - _REACH)
        if at < 0:
            break
        around = _read_box(text, at)
        if around is None or not around.closed:
            continue
        if around.end < box.end:
            break
        box = around
    return box


def _previous_command(text: str, before: int, floor: int) -> int:
    boxed = text.rfind("\\boxed", max(floor, 0), before)
    return max(boxed, text.rfind("\\fbox", max(boxed, floor, 0), before))


def _previous_box(text: str, before: int, floor: int) -> Box | None:
    at = before
    for _ in range(_MAX_NESTING):
        at = _previous_command(text, at, floor)
        if at < 0:
            return None
        box = _outermost_at(text, at)
        if box is not None:
            return box
    return None


def _link(gap: str) -> str:
    """What joins two neighbouring boxes: `list`, `or`, `approximately` or `none`."""
    words = [word.lower() for word in _WORD.findall(_NOISE.sub(" ", gap))]
    if not words:
        return "list"
    if not _OTHERWISE.isdisjoint(words):
        return "none"
    if not _OR.isdisjoint(words):
        return "or"
    if not _APPROXIMATELY.isdisjoint(words):
        return "approximately"
    joints = [i for i, word in enumerate(words) if word in _AND]
    if not joints:
        return "none"
    units, label = words[: joints[0]], words[joints[-1] + 1 :]
    labelled = not label or label[-1] in ("=", "is", "are", ":", "\\in")
    return "list" if len(units) <= 6 and (len(label) <= 2 or (labelled and len(label) <= 8)) else "none"
