r"""The letter that a text chooses, for multiple choice: `C`, `(C)`, `**C**`, `C. Paris`, "I think it's B".

Covered: a short answer that is a letter, with or without the text of the option; English statements in prose; a last or
first line that opens with a letter; a letter left standing after negated ones ("it can't be A or B") are set aside.
Not covered: an option named by its text alone, which only a verifier that knows the options can match.
Time is bounded: statements are looked for in the last 16 kB, and the last resorts are the last 4,000 characters.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from .latex import WRAPPER

LETTERS = "ABCDEFGHIJ"
"""The letters that options have unless somebody says otherwise: ten are the most that is common (MMLU-Pro)."""

_WINDOW = 16_384
_TAIL = 4_000
_MAX_SHORT = 200

_DRESS = re.compile(WRAPPER + r"|\\[()\[\]]|[${}*_`\"'“”]")
_ARTICLE = re.compile(
    r"\s+(?!(?:or|and|is|was|are|because|since|as|which|would|for|but|so|with|it|must|fits|works)\b)[a-z]"
)
_PRONOUN = re.compile(r"\s+(?!(?:or|and|is|because|since|as|for|fits)\b)[a-z]|['’]")
_REJECTED_BEFORE = re.compile(
    r"(?:\bnot|n['’]t|\bcannot|\bnever|\bneither|\bnor|\brule[sd]? out|\beliminat\w+|\bexclud\w+|\breject\w*|\bif"
    r"|\bthan|\bunlike)\b[^.,;\n]{0,30}$",
    re.IGNORECASE,
)
_REJECTED_AFTER = re.compile(
    r"[).*:\s]*(?:fail(?:s|ed)?\b|(?:does|do|did) not\b|(?:isn|aren|can|doesn|don|didn)['’]t"
    r"|(?:is|are|was|were|can|could|must|seems?)\s(?:\w+\s)?(?:not\b|wrong|incorrect|false|invalid|out\b|ruled out"
    r"|eliminated|be (?:ruled|excluded|eliminated)))",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w+")
_MARKED = re.compile(r"(?<!\w)([A-Za-z])[).:](?=\s*\w)")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")


class _Patterns(NamedTuple):
    short: re.Pattern[str]
    options: re.Pattern[str]
    stated: re.Pattern[str]
    more: re.Pattern[str]
    line: re.Pattern[str]
    marked: re.Pattern[str]
    standing: re.Pattern[str]


@lru_cache(maxsize=32)
def _patterns(letters: str) -> _Patterns:
    one = f"[{re.escape(letters)}]"
    either = f"[{re.escape(letters + letters.lower())}]"
    option = rf"[(\[]?{one}[)\]]?"
    return _Patterns(
        re.compile(
            rf"(?i:(?:the\s+)?(?:correct\s+)?(?:answer|option|choice)\s*(?:is)?\s*:?\s*)?[(\[]?(?P<one>{one})"
            rf"(?:[)\].:,]+(?:\s+(?P<text>\S.*))?|\s+(?P<title>[^\W\d_].*))?|[(\[]?(?P<only>{either})[)\].:]*",
            re.DOTALL,
        ),
        re.compile(
            rf"(?:(?i:either|options?|answers?)\s+)?{option}(?:\s*(?:,|/|&|;|\||\b(?i:and|or)\b)+\s*{option})+\.?"
        ),
        re.compile(
            r"(?i:\b(?:answers?|options?|choices?|choose|chose|pick|select(?:ed)?|go(?:ing)? with|must be|has to be"
            r"|should be|i(?:['’]d)? (?:think|say|believe|guess)|therefore|thus|hence|so|conclude)\b"
            r"(?:\s*(?:[:=,]|\b(?:is|it['’]s|it|would|must|be|that|the|an?|option|choice|answer|letter|for sure"
            r"|definitely|clearly|correct|right|best|number|final|most likely|probably|with)\b)){0,7}+)"
            rf"[\s:*_(\[\"'$]*+(?:\\\(|\\(?:text|boxed|mathrm|textbf)\{{\(?)?(?P<one>{one})(?![\w'’])"
        ),
        re.compile(rf"[)\]*]*(?:\s*(?:/|\||\b(?i:or)\b)\s*[(\[*]*(?P<one>{one})(?![\w'’]))"),
        re.compile(
            rf"[\s*_>#(\[\"'$-]*+(?:(?i:option|choice|answer)\s*:?\s*)?[(\[*]*"
            rf"(?P<one>{one})(?P<rest>[)\].:*,]+|$|\s)"
        ),
        re.compile(rf"(?:\((?P<one>{one})\)|\*\*\(?(?P<two>{one})\)?[.:]?\*\*)"),
        re.compile(rf"(?<![\w'’\\=+*/^-])(?P<one>{one})(?![\w'’=+*/^])"),
    )


def listed_letters(text: str, letters: str) -> tuple[str, ...]:
    """The letters of a short text that lists them: nothing else (`A B C`, `(A) (B)`), or `A) x B) y` on one line."""
    if len(text) > _MAX_SHORT:
        return ()
    plain = _DRESS.sub(" ", text).strip()
    words = _WORD.findall(plain)
    if not all(len(word) == 1 and word in letters for word in words):
        one_line = "\n" not in plain and _MARKED.match(plain.lstrip("([ ")) is not None
        marked = _MARKED.findall(plain) if one_line else []
        words = [letter for letter in marked if letter in letters]
    return tuple(dict.fromkeys(words))


def short_letters(answer: str, letters: str) -> tuple[str, ...]:
    """The letter that a short answer is, several where it offers several, none where it is something else."""
    if len(answer) > _MAX_SHORT:
        return ()
    listed = listed_letters(answer, letters)
    if len(listed) > 1:
        return listed
    plain = _DRESS.sub(" ", answer).strip()
    patterns = _patterns(letters)
    if patterns.options.fullmatch(plain):
        return tuple(dict.fromkeys(found["one"] for found in patterns.standing.finditer(plain)))
    short = patterns.short.fullmatch(plain)
    if short is None:
        return ()
    if short["only"]:
        return (short["only"].upper(),)
    if short["title"] and _is_word(short["one"], plain, short.start("one")):
        return ()
    return (short["one"],)


def prose_letters(text: str, letters: str) -> tuple[str, ...]:
    """The letter that a running text chooses in the end; several where it cannot decide; none where it names none."""
    patterns = _patterns(letters)
    stated = _last_stated(text[-_WINDOW:], patterns)
    if stated:
        return stated
    tail = text[-_TAIL:].strip()
    lines = [line for line in tail.splitlines() if line.strip()]
    for line in (lines[-1:] + lines[:1]) if len(text) <= _MAX_SHORT else lines[-1:]:
        opened = patterns.line.match(line)
        if opened is None or _REJECTED_AFTER.match(line, opened.end("one")):
            continue
        if not (opened["rest"].isspace() and _is_word(opened["one"], line, opened.start("one"))):
            return (opened["one"],)
    for sentence in reversed(_SENTENCE.split(tail)):
        for pattern in (patterns.marked, patterns.standing):
            found = _standing(sentence, pattern)
            if found:
                return found
    return ()


def _last_stated(text: str, patterns: _Patterns) -> tuple[str, ...]:
    chosen: tuple[str, ...] = ()
    for found in patterns.stated.finditer(text):
        before = text[max(0, found.start() - 30) : found.start()]
        if _is_word(found["one"], text, found.start("one")) or _REJECTED_BEFORE.search(before):
            continue
        if _REJECTED_AFTER.match(text, found.end()):
            continue
        options = [found["one"]]
        at = found.end()
        while len(options) < 32 and (other := patterns.more.match(text, at)) is not None:
            options.append(other["one"])
            at = other.end()
        chosen = tuple(dict.fromkeys(options))
    return chosen


def _standing(sentence: str, pattern: re.Pattern[str]) -> tuple[str, ...]:
    """The letters of a sentence that stand alone and are not rejected there."""
    found: list[str] = []
    for match in pattern.finditer(sentence):
        group = "one" if match["one"] else "two"
        at = match.start(group)
        if pattern.groups == 1 and _is_word(match[group], sentence, at):
            continue
        if _REJECTED_BEFORE.search(sentence[max(0, at - 40) : match.start()]):
            continue
        if not _REJECTED_AFTER.match(sentence, match.end()):
            found.append(match[group])
    return tuple(dict.fromkeys(found))


def _is_word(letter: str, text: str, at: int) -> bool:
    """Whether a letter is the article "A" or the pronoun "I" in a sentence."""
    return (letter == "A" and _ARTICLE.match(text, at + 1) is not None) or (
        letter == "I" and _PRONOUN.match(text, at + 1) is not None
    )
