"""Statements of an answer in running text: `the answer is ...`, `Answer: ...`, `#### ...`.

Covered: English phrases and the usual ones of Chinese, French, German, Italian, Portuguese, Russian and Spanish, with
or without Markdown; statements in doubt ("if the answer is 8", "the answer is not 8") do not count. Not covered:
answers that a sentence only implies. Time is linear: a bounded piece of text around places found by plain searches.
"""

from __future__ import annotations

import re

from .last_value import JOINT, NUMBER, OR, Found, Span, distinct, is_bare, joined, last_value, span_at
from .latex import unwrap_text

_MAX_MENTIONS = 24
_MAX_STATEMENT = 400
_MAX_LIST = 64
_MAX_WORDS = 8

_ASCII_NEEDLES = ("nswer", "NSWER", "ntwort", "espuesta", "esposta", "isposta")
_NEEDLES = (*_ASCII_NEEDLES, "答案", "答え", "éponse", "твет")
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
    r"|approximately|about|surely|probably|either|option|choice|the|is)\s++[*_\"'`]*+){0,4}"
)
_SENTENCE_END = re.compile(r"[.?](?=[\s*_\"'”)\]}]|\\\"|$)|!(?=[*_\"'”]*(?:$|\n|\s+[A-Z]))|[。！？]|\*\*|</|\n|\|\|")
_CLAUSE = re.compile(
    r"(?:\s*,)?\s+(?:because|since|as|which|where|when|so|for|if|after|that|giving|using|due|hence|it|but"
    r"|and\s(?:the|so|thus|therefore|hence|we|this|it))\b|\s\((?=[a-z]{2})(?!mod)|[,;]\s(?=[a-z]{2})|\s[—–]\s",
    re.IGNORECASE,
)
_OUTRIGHT = re.compile(r"[\d\\=+^/*<>]|^\W*[A-Za-z]\W*$")
_MAX_HEDGE = 60
_HEDGE = re.compile(
    r"[\s$*_).,;:—–\\\]]*[\s(,;—–]+(?:\(\s*)?(?:(?:but|and)\s)?(?:(?:it\s)?(?:could|might|may)\s(?:also\s)?be"
    r"|or(?:\s(?:maybe|possibly|perhaps|else|even|it\s(?:is|could\sbe)))?|alternatively|maybe|perhaps|possibly)\b[\s,:]*",
    re.IGNORECASE,
)
"""What comes between an answer and another one that is offered beside it."""
_OTHER = re.compile(r"\$(?P<span>[^$\n]{1,40})\$|[*_(]*" + NUMBER.pattern.replace("(?<![\\w.,#])", ""))
_PLACEHOLDER = re.compile(
    r"\{\{[^{}]*[A-Za-z_]{3}[^{}]*\}\}|\.{2,}|…|\\l?dots|\?+|_+"
    r"|[<\[{]*\s*(?:your|final|the|insert|my)?[\s_]*(?:answer|reference|ground[ _]truth)(?:[\s_]*here)?\s*[>\]}]*",
    re.IGNORECASE,
)


def is_placeholder(answer: str) -> bool:
    """Whether an answer is residue of a template (`{{reference}}`, `...`, `your answer here`) and answers nothing."""
    if len(answer) > 60 or answer[-1].isdigit():
        return False
    return _PLACEHOLDER.fullmatch(unwrap_text(answer).strip()) is not None


def last_statement(text: str, start: int = 0, *, late: bool = False) -> Found | None:
    """The last place at or after `start` that states the answer ("the answer is 6"), with what it states.

    `late`: the statement comes after a box and replaces it, so that it must state a value outright (a number, an
    expression, a math span, a letter) and must not be in doubt ("if the answer is 8", "the first answer was 8").
    """
    mentions: list[int] = []
    for needle in _ASCII_NEEDLES if text.isascii() else _NEEDLES:
        at = len(text)
        for _ in range(_MAX_MENTIONS):
            at = text.rfind(needle, start, at)
            if at < 0:
                break
            mentions.append(at)
    mentions.sort(reverse=True)
    for at in mentions:
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
        if found is not None and (not late or _OUTRIGHT.search(found.answer)):
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
    clause = _CLAUSE.search(stated)
    head = (stated[: clause.start()].rstrip(" ,:") if clause else "") or stated
    options = tuple(part for part in OR.split(head) if part)
    if len(options) > 1 and all(len(option) <= 48 and is_bare(option) for option in options):
        if not any(bracket in head for bracket in "([{"):
            options = tuple(piece.strip() for option in options for piece in option.split(", "))
        return Found(head, at, at + len(head), "final_answer", distinct(options))
    if is_bare(head):
        made = _made(head, at)
        return made._replace(candidates=hedged(made.answer, text, made.end))
    number = NUMBER.match(head)
    if number is not None:
        several = NUMBER.search(head, number.end()) is not None and len(head.split()) <= _MAX_WORDS
        return _made(head if several else number[0], at)
    if late and (stop is None or not _is_strong(text, start)):
        return None
    value = last_value(stated)
    if value is not None and not value.candidates:
        return Found(value.answer, at + value.start, at + value.end, "final_answer")
    if late or len(stated.split()) > _MAX_WORDS:
        return None
    return Found(stated, at, at + len(stated), "final_answer")


def hedged(answer: str, text: str, at: int) -> tuple[str, ...]:
    """The answers of a hedge: `answer`, and the one that follows it at `at` as an alternative ("5 (or 6)")."""
    other = _HEDGE.match(text, at, at + _MAX_HEDGE)
    if other is None:
        return ()
    value = _OTHER.match(text, other.end(), other.end() + _MAX_HEDGE)
    return () if value is None else distinct((answer, value["span"] or value[0].strip()))


def _is_strong(text: str, start: int) -> bool:
    """Whether what stands before a statement is a final marker by itself, and not a passing "the answer is"."""
    before = text[max(0, start - 24) : start].lower()
    return "final" in before or before.rstrip("* \n").endswith(":")


def _made(answer: str, at: int) -> Found:
    end = at + len(answer)
    if answer[0] == "$" and answer[1:2].isdigit():
        answer = answer[1:]
    return Found(answer, at, end, "final_answer")


def _stated_spans(text: str, span: Span) -> Found:
    spans = [span]
    either = False
    while len(spans) < _MAX_LIST:
        joint = JOINT.match(text, spans[-1].end)
        following = span_at(text, joint.end()) if joint else None
        if joint is None or following is None:
            break
        either = either or OR.search(joint[0]) is not None
        spans.append(following)
    if len(spans) == 1:
        made = joined(text, spans, False, "final_answer")
        return made._replace(candidates=hedged(made.answer, text, made.end) or made.candidates)
    return joined(text, spans, either, "final_answer")
