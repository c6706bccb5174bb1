r"""Values in running text: math spans, numbers, program output, and texts that are nothing but an expression.

Covered: the four LaTeX math delimiters, told apart from amounts of money; numbers with sign, currency, thousands,
decimals, fractions, exponents and percent; neighbours that form a list or alternatives. Not covered: number words.
Everything here looks at a bounded piece of text around a place found by a plain search, so that time is linear.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .latex import WRAPPER

_MAX_TRIES = 24
_MAX_SPAN = 2_000
_MAX_OUTPUT = 400
_MAX_LIST = 64
_WINDOW = 16_384
_NEAR = 512
_MAX_TOKEN = 64


class Found(NamedTuple):
    """An answer from `start` to `end` of the text. `candidates` is not empty where alternatives were offered."""

    answer: str
    start: int
    end: int
    method: str
    candidates: tuple[str, ...] = ()


OR = re.compile(r"\s*,?\s*(?:\bor\b|\boder\b|或者?|или)\s*", re.IGNORECASE)
JOINT = re.compile(
    r"\s*+(?:[,;，、]\s*+(?:(?:and|or|und|oder|et|ou|y|и|или)\s++)?|(?:and|or|und|oder|et|ou|y|и|или)\s++|[和或与]\s*+)"
)
_PERCENT = re.compile(r"\s?(?:\\?%|percent\b|pct\b|per cent\b)")
_PROSE_WORD = re.compile(r"(?<![A-Za-z\\_^{])[A-Za-z]{2,}")
_NO_PROSE = re.compile(
    rf"(?:{WRAPPER}|\\(?:begin|end))\s*+\{{[^{{}}]*\}}|\\[A-Za-z]+"
    r"|\b(?:(?:arc)?(?:sin|cos|tan|cot|sec|csc)h?|log|ln|exp|sqrt|pi|min|max|mod|gcd|lcm|det|lim|inf|infinity|oo|alpha"
    r"|beta|theta|abs|floor|ceil|rad|[cmk]?m|[km]?g|m?l|ft|mi|hr|sec)\b"
)
_SMALL_WORD = re.compile(
    r"\b(?:and|or|the|is|are|of|to|for|so|we|in|then|thus|has|have|if|not|by|at|be|as|it|on|its)\b", re.IGNORECASE
)


class Span(NamedTuple):
    """A math span from `start` to `end` with delimiters; `content` is what they enclose, stripped."""

    start: int
    end: int
    content: str


def span_at(text: str, at: int) -> Span | None:
    r"""The math span (`$..$`, `$$..$$`, `\(..\)`, `\[..\]`) that opens at a place, or None. Money opens none."""
    if text.startswith("$", at):
        mark = "$$" if text.startswith("$$", at) else "$"
        start = at + len(mark)
        end = start
        for _ in range(_MAX_LIST):
            end = text.find(mark, end, start + _MAX_SPAN)
            if end < 0:
                return None
            if text[end - 1] != "\\":
                break
            end += 1
        return _span(text, at, start, end, mark) if end > start else None
    if text.startswith(("\\(", "\\["), at):
        mark = "\\)" if text[at + 1] == "(" else "\\]"
        end = text.find(mark, at + 2, at + 2 + _MAX_SPAN)
        return _span(text, at, at + 2, end, mark) if end >= 0 else None
    return None


def last_span(text: str, before: int, floor: int = 0) -> Span | None:
    """The last math span that ends at or before a place, or None."""
    for _ in range(_MAX_TRIES):
        dollar = text.rfind("$", floor, before)
        round_, square = text.rfind("\\)", floor, before), text.rfind("\\]", floor, before)
        close = max(dollar, round_, square)
        if close < 0:
            return None
        before = close
        if close != dollar:
            mark = "\\)" if close == round_ else "\\]"
            start = text.rfind("\\(" if close == round_ else "\\[", max(floor, close - _MAX_SPAN), close)
            if start < 0:
                continue
            span = _span(text, start, start + 2, close, mark)
        else:
            mark = "$$" if close and text[close - 1] == "$" else "$"
            close -= len(mark) - 1
            before = close
            if close and text[close - 1] == "\\":
                continue
            start = text.rfind(mark, max(floor, close - _MAX_SPAN), close)
            while start > 0 and text[start - 1] == "\\":
                start = text.rfind(mark, max(floor, close - _MAX_SPAN), start)
            if start < 0:
                continue
            span = _span(text, start, start + len(mark), close, mark)
        if span is not None:
            return span
    return None


def _span(text: str, at: int, start: int, end: int, mark: str) -> Span | None:
    content = text[start:end]
    if not content or content.isspace() or "\n\n" in content:
        return None
    after = end + len(mark)
    if mark == "$" and (text[after : after + 1].isdigit() or _is_prose(content)):
        return None
    return Span(at, after, content.strip().rstrip(".,;"))


def _is_prose(content: str) -> bool:
    """Whether what stands between two dollar signs is running text: they are amounts of money, then, or mismatched."""
    plain = _NO_PROSE.sub(" ", content)
    return len(_PROSE_WORD.findall(plain)) > 2 or _SMALL_WORD.search(plain) is not None


def joined(text: str, spans: list[Span], either: bool, method: str) -> Found:
    """Neighbouring spans of a text as one answer: a list, or (`either`) candidates."""
    contents = tuple(span.content for span in spans)
    end = spans[-1].end
    if len(spans) == 1:
        percent = _PERCENT.match(text, end)
        answer = contents[0] + percent[0] if percent else contents[0]
        return Found(answer, spans[0].start, percent.end() if percent else end, method)
    candidates = distinct(contents) if either else ()
    return Found(", ".join(contents), spans[0].start, end, method, candidates)


_AMOUNT = r"(?:\d{1,3}(?:[,'’\u00a0\u202f ]\d{3})+(?!\d)(?:\.\d+)?|\d+(?:[.,]\d+)?|\.\d+)"
NUMBER = re.compile(
    r"(?<![\w.,#])(?:(?<![\w)\]}])[-+−–])?(?:\\?[$€£¥₹]\s?)?[-−]?"
    + _AMOUNT
    + r"(?:[eE][-+]?\d+|\s?(?:×|x|\*|\\times)\s?10\^\{?-?\d+\}?)?(?:\s?/\s?\d+)?(?:\s?(?:\\?%|percent\b|pct\b))?"
    r"(?:\s(?:thousand|million|billion|trillion)\b)?"
)
_GLUED_BEFORE = re.compile(r"(?:[\w)\]}][-+*/^×·]|\d:)$")
_GLUED_AFTER = re.compile(r"[abcdefijklnopqrtuvwxyz](?![A-Za-z²³])|[-+*/^×·(\\:](?=[\w{(\\])")
_TOKEN = re.compile(r"[^\s$]{0,160}[^\s$.,;:?!\"'*_]")
_ITEM = re.compile(r"[.)]\s")
_STATES = re.compile(
    r"(?:\b(?:is|are|was|equals|equal to|be|gives|get|got|total of|total|of|has|have)|[=:≈])\s*[*_$]*$", re.IGNORECASE
)
_PAUSE = re.compile(r"[.!?](?=[\s$\\])|[。！？]|\n")


def last_output(text: str) -> Found | None:
    """The output of the last program run in a text (a fenced block marked `output`), where it is one value."""
    start = text.rfind("```output\n")
    if start < 0:
        return None
    start += len("```output\n")
    end = text.find("```", start, start + _MAX_OUTPUT)
    output = text[start:end].strip() if end >= 0 else ""
    return Found(output, start, end, "tool_output") if output and is_bare(output) else None


def is_bare(text: str) -> bool:
    """Whether a text is an expression, a number with a unit, or a letter, and no sentence."""
    if len(text) > 300 or "\n" in text.strip():
        return False
    if " " not in text and len(text) <= 100:
        return True
    plain = _NO_PROSE.sub(" ", text)
    words = len(_PROSE_WORD.findall(plain))
    return not words or (words <= 2 and _SMALL_WORD.search(plain) is None and NUMBER.match(text) is not None)


def last_value(text: str) -> Found | None:
    """The last math span or number of a text: the later sentence wins, in one sentence a number only when stated.

    Neighbours joined by commas or "and" come back as one list, so that the last of them is never graded alone; joined
    by "or" they are candidates. Only the last 16 kB are looked at.
    """
    for reach in (_NEAR, _WINDOW):
        floor = _window_start(text, reach)
        span = last_span(text, len(text), floor)
        numbers = _numbers(text, span.end if span else floor)
        if numbers and (span is None or _number_wins(text, span, numbers[-1])):
            return _listed_numbers(text, numbers)
        if span is not None:
            return _listed_spans(text, span, floor)
        if floor == 0:
            return None
    return None


def _window_start(text: str, reach: int) -> int:
    """A place about `reach` characters before the end where no number or word is cut."""
    floor = len(text) - reach
    if floor <= 0:
        return 0
    line = text.find("\n", floor)
    if 0 <= line < len(text) - reach // 2:
        return line
    space = text.find(" ", floor)
    return space if space >= 0 else len(text)


def _numbers(text: str, floor: int) -> list[tuple[int, int]]:
    """Places of the numbers from `floor` on, without the numbers of list items and headings."""
    places = []
    for number in NUMBER.finditer(text, floor):
        start, end = number.span()
        line_start = text.rfind("\n", max(0, start - 8), start) + 1 if start else 0
        if (line_start or start < 8) and not text[line_start:start].strip(" #*") and _ITEM.match(text, end):
            continue
        places.append((start, end))
    return places


def _number_wins(text: str, span: Span, number: tuple[int, int]) -> bool:
    between = text[span.end - 3 : number[0]]
    return _PAUSE.search(between) is not None or _STATES.search(between[-24:]) is not None


def _listed_numbers(text: str, places: list[tuple[int, int]]) -> Found:
    chosen = [_whole_token(text, *places[-1])]
    either = False
    for start, end in reversed(places[-_MAX_LIST:-1]):
        joint = JOINT.fullmatch(text, end, chosen[-1][0] + 1) or JOINT.fullmatch(text, end, chosen[-1][0])
        if joint is None:
            break
        either = either or OR.search(joint[0]) is not None
        chosen.append((start, end))
    chosen.reverse()
    values = tuple(_plain(text[start:end]) for start, end in chosen)
    candidates = distinct(values) if either else ()
    return Found(", ".join(values), chosen[0][0], chosen[-1][1], "last_number", candidates)


def _whole_token(text: str, start: int, end: int) -> tuple[int, int]:
    """A number, or the expression without blanks that it is a part of: the 3 of `5-3` or the 5 of `5x` is no answer."""
    first = start + len(text[start:end]) - len(text[start:end].lstrip())
    glued = _GLUED_BEFORE.search(text, max(0, first - _MAX_TOKEN), first) is not None
    if not glued and _GLUED_AFTER.match(text, end) is None:
        return start, end
    opening = max(text.rfind(blank, max(0, first - _MAX_TOKEN), first) for blank in " \n$") + 1
    token = _TOKEN.match(text, opening)
    return (opening, token.end()) if token is not None and token.end() >= end else (start, end)


def _plain(number: str) -> str:
    """A number without the currency sign and the blanks around it; its sign stays."""
    return re.sub(r"^([-+−–]?)\s?(?:\\?[$€£¥₹])?\s?", r"\1", number.strip())


def _listed_spans(text: str, span: Span, floor: int) -> Found:
    spans = [span]
    either = False
    while len(spans) < _MAX_LIST:
        before = last_span(text, spans[-1].start, floor)
        joint = JOINT.fullmatch(text, before.end, spans[-1].start) if before else None
        if before is None or joint is None:
            break
        either = either or OR.search(joint[0]) is not None
        spans.append(before)
    spans.reverse()
    return joined(text, spans, either, "math_span")


def distinct(values: tuple[str, ...]) -> tuple[str, ...]:
    """The different values, in order; none where all are the same."""
    different = tuple(dict.fromkeys(" ".join(value.split()) for value in values))
    return different if len(different) > 1 else ()
