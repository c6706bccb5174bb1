"""Answers that are words: names, days, `no solution`, option letters with their text.

Words are compared whole after folding case, spaces and wrappers; nothing is stemmed or matched in part, so `odd` is
not `oddd`. A few fixed phrases with one meaning are spelled one way.
"""

from __future__ import annotations

import re

from . import vocabulary

_WRAPPER = re.compile(r"\\(?:" + "|".join(sorted(vocabulary.TRANSPARENT, key=len, reverse=True)) + r")(?![A-Za-z])")
_WRAPPED = re.compile(_WRAPPER.pattern + r"\s*\{([^{}]*)\}")
_SKIPPED = re.compile(
    r"\\(?:" + "|".join(sorted(vocabulary.SKIPPED, key=len, reverse=True)) + r")(?![A-Za-z])|\\[,;:!> ]|[~{}$]|\\\\"
)
_OPTION = re.compile(r"\(([A-Z])\)\s+\S|([A-Z])[.):]\s+\S|([A-Z])\s+[A-Z][a-z]")
_SAME = {
    "dne": "does not exist", "doesn't exist": "does not exist", "none exist": "does not exist",
    "no solutions": "no solution", "there is no solution": "no solution", "there are no solutions": "no solution",
    "not defined": "undefined", "infinity": "infinite", "infinitely many": "infinitely many solutions",
    "cannot be determined": "not determined", "can't be determined": "not determined", "yes": "yes", "true": "true",
}  # fmt: skip

EMPTY = frozenset({"no solution", "empty set", "no real solution", "no real solutions"})
"""Phrases for the empty set."""

REALS = frozenset({"all real numbers", "all reals", "real numbers", "all real", "any real number", "all real x"})
"""Phrases for the whole line."""


def key(text: str) -> str:
    """The words of a normalised answer, folded for comparison; empty when it holds none."""
    text = _SKIPPED.sub(" ", _WRAPPER.sub(" ", text))
    text = " ".join(text.casefold().split()).strip(" .,;:!?\"'*")
    for pair in ("()", "[]"):
        if text.startswith(pair[0]) and text.endswith(pair[1]) and text.count(pair[0]) == 1:
            text = text[1:-1].strip()
    text = re.sub(r"^(?:the|an)\s+", "", text)
    return _SAME.get(text, text)


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


def option_letter(text: str) -> str | None:
    """`D` for `(D) Alina`, `C Cecile`, `B. 42`: an option named with its text."""
    text = bare(text)
    for line in reversed(text.splitlines() or [""]):
        match = _OPTION.match(line.strip())
        if match:
            return next(group for group in match.groups() if group)
    match = _OPTION.match(text.strip())
    return next(group for group in match.groups() if group) if match else None
