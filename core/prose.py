r"""Answers in running text: `the answer is ...`, `Answer: ...`, `#### ...`, math spans and numbers.

Covered: English phrases and the usual ones of Chinese, French, German, Italian, Portuguese, Russian and Spanish; the
four LaTeX math delimiters, told apart from amounts of money; numbers with sign, currency, thousands, decimals,
fractions, exponents and percent. Not covered: number words ("twelve"), and answers that a sentence only implies.

Everything here looks at a bounded piece of text around a place found by a plain search, so that time is linear.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_MAX_MENTIONS = 24
_MAX_SPAN = 2_000
_MAX_STATEMENT = 400
_MAX_LIST = 64
_WINDOW = 16_384
_NEAR = 512


class Found(NamedTuple):
    """An answer from `start` to `end` of the text. `candidates` is not empty where alternatives were offered."""

    answer: str
    start: int
    end: int
    method: str
    candidates: tuple[str, ...] = ()


# --- statements -------------------------------------------------------------------------------------------------

_NEEDLES = ("nswer", "NSWER", "答案", "答え", "éponse", "ntwort", "espuesta", "esposta", "isposta", "твет")
_COPULA = (
    r"(?:is|are|was|be|would be|should be|must be|will be|equals|lautet|ist|est|es|é|è|是|为|為|равен|—|–|->|=|:|：)"
)
_AFTER_NEEDLE = re.compile(
    r"(?:nswers?|NSWERS?|答案|答え|éponse|ntwort|espuesta|esposta|isposta|твет)"
    r"(?:\(s\))?(?:\s|[*_\"'`])*+"
    r"(?:(?:to|for|of|in)\s[^\n.:?=]{1,60}?\s)?(?:(?P<copula>" + _COPULA + r")(?![a-zà-ÿ])(?:\s*+[:：])?|(?=\n))"
)
_HEADING = re.compile(r"(?:^|\n)[#>*_\s\d.]*(?:(?:the|my|our|so|final|correct|right)\s)*[*_\s]*[Aa]?$", re.IGNORECASE)
_DOUBTED = re.compile(
    r"(?:\b(?:if|suppose|assum\w+|wrong|incorrect|previous|earlier|initial|first|whether|no|an?|any|that|what)\b|n['’]t)"
    r"[^.\n]{0,24}$",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"(?:\s|[*_\"'“”‘’`>:：]|\\\")*+"
    r"(?:(?:simply|just|therefore|thus|then|definitely|clearly|certainly|for sure|indeed|equal to|given by|exactly|now"
    r"|approximately|about|surely|probably|option|choice|the|is)\s++[*_\"'`]*+){0,4}"
)
_SENTENCE_END = re.compile(r"[.!?](?=[\s*_\"'”)\]}]|\\\"|$)|[。！？]|\*\*|</|\n|\|\|")
_CLAUSE = re.compile(
    r"(?:\s*,)?\s+(?:because|since|as|which|where|when|so|for|if|after|that|giving|using|by|due|hence|it|with|but|and"
    r"\s(?:the|so|thus|therefore|hence|we|this|it))\b|\s\(|;|\s[—–]\s|,\s(?=[a-z]{2})",
    re.IGNORECASE,
)
_OR = re.compile(r"\s*,?\s*(?:\bor\b|\boder\b|或者?|или)\s*", re.IGNORECASE)
_PLACEHOLDER = re.compile(
    r"\{\{[^{}]*[A-Za-z_]{3}[^{}]*\}\}|[<\[{]*\s*(?:your|final|the|insert|my)?[\s_]*(?:answer|reference|ground[ _]truth)"
    r"(?:[\s_]*here)?\s*[>\]}]*|\.{2,}|…|\\l?dots|\?+|_+",
    re.IGNORECASE,
)


def is_placeholder(answer: str) -> bool:
    """Whether an answer is residue of a template (`{{reference}}`, `...`, `your answer here`) and answers nothing."""
    if len(answer) > 60:
        return False
    if answer.startswith("\\text{") and answer.endswith("}"):
        answer = answer[6:-1]
    return _PLACEHOLDER.fullmatch(answer.strip()) is not None


def last_statement(text: str, start: int = 0, *, late: bool = False) -> Found | None:
    """The last place at or after `start` that states the answer ("the answer is 6"), with what it states.

    `late`: the statement comes after a box and replaces it, so that it must state a value outright (a number, an
    expression, a math span, a letter) and must not be in doubt ("if the answer is 8", "the first answer was 8").
    """
    mentions: list[int] = []
    for needle in _NEEDLES:
        at = len(text)
        for _ in range(_MAX_MENTIONS):
            at = text.rfind(needle, start, at)
            if at < 0:
                break
            mentions.append(at)
    for at in sorted(mentions, reverse=True):
        mark = _AFTER_NEEDLE.match(text, at)
        if mark is None:
            continue
        before = text[max(at - 40, start) : at]
        heading = _HEADING.search(before) is not None
        if (mark["copula"] is None or mark["copula"] == "—") and not heading:
            continue
        if not heading and _DOUBTED.search(before[:-1]) and (late or not before.rstrip("aA").endswith("the ")):
            continue
        found = _stated(text, mark.end(), late=late)
        if found is not None:
            return found
    return None


def last_hash(text: str) -> Found | None:
    """The value of the last `#### value` line of a text (the GSM8K form)."""
    at = len(text)
    for _ in range(_MAX_MENTIONS):
        at = text.rfind("####", 0, at)
        if at < 0:
            return None
        found = _stated(text, at + 4, late=True)
        if found is not None and "\n" not in text[at : found.start]:
            return found._replace(method="hash_marker")
    return None


def _stated(text: str, start: int, *, late: bool) -> Found | None:
    lead = _LEAD.match(text, start)
    at = start if lead is None else lead.end()
    span = span_at(text, at)
    if span is not None:
        return _stated_spans(text, span)
    limit = at + _MAX_STATEMENT
    stop = _SENTENCE_END.search(text, at, limit)
    end = stop.start() if stop else min(len(text), limit)
    raw = text[at:end]
    stated = raw.strip().strip("*_`\"'“”").rstrip(" ,;:\\").strip()
    if not stated or re.match(r"(?:not|n't|wrong|incorrect|correct|right)\b", stated, re.IGNORECASE):
        return None
    at += raw.find(stated)
    options = tuple(part for part in _OR.split(stated) if part)
    if len(options) > 1 and all(len(option) <= 48 and is_bare(option) for option in options):
        options = tuple(piece.strip() for option in options for piece in option.split(", "))
        return Found(stated, at, at + len(stated), "final_answer", _distinct(options))
    if is_bare(stated):
        return _made(text, stated, at)
    clause = _CLAUSE.search(stated)
    head = stated[: clause.start()].rstrip(" ,:") if clause else ""
    if head and is_bare(head):
        return _made(text, head, at)
    number = NUMBER.match(stated)
    if number is not None:
        return _made(text, number[0], at)
    if late and (stop is None or not _is_strong(text, start)):
        return None
    value = last_value(stated)
    if value is not None and not value.candidates:
        return Found(value.answer, at + value.start, at + value.end, "final_answer")
    if late or len(stated.split()) > 8:
        return None
    return Found(stated, at, at + len(stated), "final_answer")


def _is_strong(text: str, start: int) -> bool:
    """Whether what stands before a statement is a final marker by itself, and not a passing "the answer is"."""
    before = text[max(0, start - 24) : start].lower()
    return "final" in before or before.rstrip("* \n").endswith(":")


def _made(text: str, answer: str, at: int) -> Found:
    end = at + len(answer)
    if answer[0] == "$" and answer[1:2].isdigit():
        answer = answer[1:]
    return Found(answer, at, end, "final_answer")


def _stated_spans(text: str, span: Span) -> Found:
    spans = [span]
    either = False
    while len(spans) < _MAX_LIST:
        joint = _JOINT.match(text, spans[-1].end)
        following = span_at(text, joint.end()) if joint else None
        if joint is None or following is None:
            break
        either = either or _OR.search(joint[0]) is not None
        spans.append(following)
    return _joined(text, spans, either, "final_answer")


# --- math spans -------------------------------------------------------------------------------------------------

_JOINT = re.compile(r"\s*+(?:[,;，、]\s*+(?:(?:and|or|und|oder|et|ou|y|и|и́|или)\s++)?|(?:and|or|und|oder|et|ou|y|и|или)\s++"
                    r"|[和或与]\s*+)")
_PERCENT = re.compile(r"\s?(?:\\?%|percent\b|pct\b|per cent\b)")
_PROSE_WORD = re.compile(r"(?<![A-Za-z\\_^{])[A-Za-z]{2,}")
_GROUPED_TEXT = re.compile(r"\\(?:text\w*|mbox|mathrm|operatorname|begin|end|mathbf|mathit)\s*\{[^{}]*\}|\\[A-Za-z]+")
_SMALL_WORDS = frozenset(["and", "or", "the", "is", "are", "of", "to", "for", "so", "we", "in", "then", "thus", "has", "have", "if", "not", "by", "at", "be", "as", "it", "on", "its"])
_MATH_WORDS = frozenset(
    ["sin", "cos", "tan", "cot", "sec", "csc", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "log", "ln", "exp", "sqrt", "pi", "min", "max", "mod", "gcd", "lcm", "det", "lim", "inf", "infinity", "oo", "alpha", "beta", "theta", "rad", "abs", "floor", "ceil", "cm", "mm", "km", "kg", "mg", "ml", "ft", "mi", "hr", "min", "sec"]
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
    for _ in range(_MAX_MENTIONS):
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
    return Span(at, after, content.strip())


def _is_prose(content: str) -> bool:
    """Whether what stands between two dollar signs is running text: they are amounts of money, then, or mismatched."""
    words = _PROSE_WORD.findall(_GROUPED_TEXT.sub(" ", content))
    if not words:
        return False
    plain = sum(1 for word in words if word.lower() not in _MATH_WORDS)
    return plain > 2 or any(word in _SMALL_WORDS for word in words)


def _joined(text: str, spans: list[Span], either: bool, method: str) -> Found:
    contents = tuple(span.content for span in spans)
    end = spans[-1].end
    if len(spans) == 1:
        percent = _PERCENT.match(text, end)
        answer = contents[0] + percent[0] if percent else contents[0]
        return Found(answer, spans[0].start, percent.end() if percent else end, method)
    candidates = _distinct(contents) if either else ()
    return Found(", ".join(contents), spans[0].start, end, method, candidates)


# --- numbers and bare expressions -------------------------------------------------------------------------------

_AMOUNT = r"(?:\d{1,3}(?:[,'’\u00a0\u202f ]\d{3})+(?!\d)(?:\.\d+)?|\d+(?:[.,]\d+)?|\.\d+)"
NUMBER = re.compile(
    r"(?<![\w.,])(?:(?<![\w)\]}])[-+−–])?\s?(?:\\?[$€£¥₹])?\s?[-−]?" + _AMOUNT
    + r"(?:[eE][-+]?\d+|\s?(?:×|x|\*|\\times)\s?10\^\{?-?\d+\}?)?(?:\s?/\s?\d+)?(?:\s?(?:\\?%|percent\b|pct\b))?"
)
_NUMBER_EDGE = re.compile(r"\s*(?:\\?[$€£¥₹])?\s*")
_ITEM = re.compile(r"[.)]\s")
_STATES = re.compile(r"(?:\b(?:is|are|was|equals|equal to|be|gives|get|got|total of|total|of|has|have)|[=:≈])\s*[*_$]*$", re.IGNORECASE)
_PAUSE = re.compile(r"[.!?](?=\s)|[。！？]|\n")


def is_bare(text: str) -> bool:
    """Whether a text is an expression, a number with a unit, or a letter, and no sentence."""
    if len(text) > 300 or "\n" in text.strip():
        return False
    words = [word.lower() for word in _PROSE_WORD.findall(_GROUPED_TEXT.sub(" ", text))]
    plain = [word for word in words if word not in _MATH_WORDS]
    if not plain:
        return True
    if any(word in _SMALL_WORDS for word in plain) or len(plain) > 2:
        return False
    number = NUMBER.match(text)
    return number is not None and number.end() < len(text)


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
    between = text[span.end : number[0]]
    return _PAUSE.search(between) is not None or _STATES.search(between[-24:]) is not None


def _listed_numbers(text: str, places: list[tuple[int, int]]) -> Found:
    chosen = [places[-1]]
    either = False
    for start, end in reversed(places[-_MAX_LIST:-1]):
        joint = _JOINT.fullmatch(text, end, chosen[-1][0] + 1) or _JOINT.fullmatch(text, end, chosen[-1][0])
        if joint is None:
            break
        either = either or _OR.search(joint[0]) is not None
        chosen.append((start, end))
    chosen.reverse()
    values = tuple(_plain(text[start:end]) for start, end in chosen)
    candidates = _distinct(values) if either else ()
    return Found(", ".join(values), chosen[0][0], chosen[-1][1], "last_number", candidates)


def _plain(number: str) -> str:
    """A number without the currency sign and the blanks around it; its sign stays."""
    return re.sub(r"^([-+−–]?)\s?(?:\\?[$€£¥₹])?\s?", r"\1", number.strip())


def _listed_spans(text: str, span: Span, floor: int) -> Found:
    spans = [span]
    either = False
    while len(spans) < _MAX_LIST:
        before = last_span(text, spans[-1].start, floor)
        joint = _JOINT.fullmatch(text, before.end, spans[-1].start) if before else None
        if before is None or joint is None:
            break
        either = either or _OR.search(joint[0]) is not None
        spans.append(before)
    spans.reverse()
    return _joined(text, spans, either, "math_span")


def _distinct(values: tuple[str, ...]) -> tuple[str, ...]:
    """The different values, in order; none where all are the same."""
    different = tuple(dict.fromkeys(" ".join(value.split()) for value in values))
    return different if len(different) > 1 else ()
