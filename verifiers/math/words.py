"""Answers that are words: names, days, `no solution`, option letters with their text.

Words are compared whole after folding case, spaces and wrappers; nothing is stemmed or matched in part, so `odd` is
not `oddd`. A few fixed phrases with one meaning are spelled one way.
"""

from __future__ import annotations

import re

from ...core.extraction import listed_letters
from . import nodes, vocabulary
from .nodes import Node

_WRAPPER = re.compile(r"\\(?:" + "|".join(sorted(vocabulary.TRANSPARENT, key=len, reverse=True)) + r")(?![A-Za-z])")
_WRAPPED = re.compile(_WRAPPER.pattern + r"\s*\{([^{}]*)\}")
_SKIPPED = re.compile(
    r"\\(?:" + "|".join(sorted(vocabulary.SKIPPED, key=len, reverse=True)) + r")(?![A-Za-z])|\\[,;:!> ]|[~{}$]|\\\\"
)
_OPTION = re.compile(r"\s*(?:\(([A-Z])\)\s+(?=\S)|([A-Z])[.):]\s+(?=\S)|([A-Z])\s+(?=[A-Z][a-z]))")
_REJECTED = re.compile(
    r"(?:(?:it|that|this|which)\s+)?(?:(?:is|was|are|were|be|can|could|would|does|did|seems?)\s*(?:\w+\s+)?)?"
    r"(?:not|n['’]t|isn['’]t|cannot|never|wrong|incorrect|invalid|impossible|ruled|rejected|excluded|eliminated"
    r"|fails?|failed)\b",
    re.IGNORECASE,
)
"""An option's text that says that the option is not the answer."""

_HEDGED = re.compile(
    r"(?:^|[,;/|&.(]|\b(?i:or|and|nor|not|but|maybe|perhaps|to|than)\b)[\s(\[]{0,4}(?i:option\s)?[A-Z](?![\w'’+*/^(-]|\s*=)"
)
"""Another letter beside the first, as a second choice and not as part of a text (`both A and B` is a text)."""

_OTHERS_REJECTED = re.compile(
    r"(?:\b(?i:not|cannot|never|neither|rather than|instead of)|n['’]t)\s(?i:be\s)?(?i:option\s)?"
    r"\(?[A-Z]\b\)?(?:\s?(?:,|/|\b(?i:or|and|nor)\b)\s?\(?[A-Z]\b\)?){0,9}"
)
"""`it can't be A or B` leaves the letter before it standing."""

_ABOUT_LETTERS = re.compile(r"(?:both|all|neither|none|either|only)\b", re.IGNORECASE)
_SAME = {
    "dne": "does not exist", "doesn't exist": "does not exist", "none exist": "does not exist",
    "no solutions": "no solution", "there is no solution": "no solution", "there are no solutions": "no solution",
    "not defined": "undefined", "infinity": "infinite", "infinitely many": "infinitely many solutions",
    "cannot be determined": "not determined", "can't be determined": "not determined", "yes": "yes", "true": "true",
}  # fmt: skip

_CAPITALS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_REALS = r"(?:(?:all|every|any)(?: the)? real(?:s| [a-z]| numbers?| values?)?|reals|real numbers)(?: (?:of|for) [a-z])?"
_SETS = (
    (nodes.EMPTY, r"empty set|null set|none|no (?:such |real )*(?:solutions?|roots?|values?|numbers?)"),
    (Node("domain", (), "R"), rf"(?:[a-z] (?:is|can be) )?(?:set of )?{_REALS}"),
    (Node("domain", (), "Z"), r"(?:[a-z] (?:is|can be) )?(?:set of )?(?:(?:all|every|any) (?:the )?)?integers"),
)
_PHRASES = [(node, re.compile(pattern)) for node, pattern in _SETS]


def key(text: str) -> str:
    """The words of a normalised answer, folded for comparison; empty when it holds none."""
    text = _SKIPPED.sub(" ", _WRAPPER.sub(" ", text))
    text = " ".join(text.casefold().split()).strip(" .,;:!?\"'*")
    for pair in ("()", "[]"):
        if text.startswith(pair[0]) and text.endswith(pair[1]) and text.count(pair[0]) == 1:
            text = text[1:-1].strip()
    text = re.sub(r"^(?:the|an)\s+", "", text)
    return _SAME.get(text, text)


def as_set(text: str) -> Node | None:
    """The set that a phrase names (`all real numbers`, `no solution`); None for other words."""
    words = key(text)
    return next((node for node, pattern in _PHRASES if pattern.fullmatch(words)), None)


def squeezed(text: str) -> str:
    """An answer without wrappers and white space, case kept: two spellings of what no layer can read."""
    text = re.sub(r"\\[dt]frac(?![A-Za-z])", r"\\frac", _WRAPPER.sub("", _WRAPPED.sub(r"\1", text)))
    return re.sub(r"\\(?:left|right|displaystyle|big|Big)(?![A-Za-z])|\\[,;:!> ]|[\s~$]", "", text)


def bare(text: str) -> str:
    """The text without wrappers and style commands."""
    return _SKIPPED.sub(" ", _WRAPPER.sub(" ", text)).strip()


def is_words(text: str) -> bool:
    """Whether an answer is words rather than mathematics: letters, spaces and little punctuation, no operators."""
    if not text[:1].isalpha() and text[:1] not in "\\{":
        return False
    plain = bare(text)
    if not re.fullmatch(r"[^\W\d_][^\d_+*/^=<>|\\]*", plain):
        return False
    runs = re.findall(r"[^\W\d_]+", plain)
    return any(len(run) > 1 for run in runs)


def is_product(text: str) -> bool:
    """Whether a bare run of letters may be a product (`ab`, `xyz`) rather than a word (`on`, `no`)."""
    return (
        len(text) <= 4
        and text.isalpha()
        and text.isascii()
        and not set(text.lower()) & set("eiou")
        and text.lower() not in vocabulary.SMALL_WORDS
    )


def is_symbols(text: str) -> bool:
    """Whether letters may be mathematics, so that their case matters: `AB`, `Rr`, `sin A`, `log N`; not `Anna`."""
    return all(
        len(word) == 1
        or word in vocabulary.FUNCTIONS
        or (is_product(word) and not (len(word) > 2 and word.istitle() and "a" in word.lower()))
        for word in bare(text).split()
    )


def is_segment(text: str) -> bool:
    """Whether a text may name a segment by its ends (`EF`, `NO`), which only the other side can tell."""
    return len(text) == 2 and text.isupper() and text.isascii()


def option_letter(text: str) -> str | None:
    """`D` for `(D) Alina`, `C Cecile`, `B. 42`: one option named with its text.

    None where the text offers a second option (`C. or D.`), or says that the option is wrong.
    """
    plain = bare(text)
    if len(listed_letters(plain, _CAPITALS)) > 1:
        return None
    named = {letter for line in plain.splitlines() for letter in _named_options(line)}
    return named.pop() if len(named) == 1 else None


def _named_options(line: str) -> list[str]:
    """The letter that a line opens with, and `?` where what follows takes it back or offers another."""
    match = _OPTION.match(line)
    if match is None:
        return []
    letter = next(group for group in match.groups() if group)
    rest = _OTHERS_REJECTED.sub("", line[match.end() :])
    undecided = _REJECTED.match(rest) or (_HEDGED.search(rest) and not _ABOUT_LETTERS.match(rest))
    return [letter, "?"] if undecided else [letter]
