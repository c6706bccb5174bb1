r"""A text as comparable words, in any language.

SQuAD's normalisation (lower case, no ASCII punctuation, no English articles; Rajpurkar et al. 2016) turns `3.5` into
`35`, `-5` into `5`, `C#` into `c`, and whole answers into the empty string, which then equals every other empty one.
Here: Unicode case folding and NFKC; punctuation of every script separates words, but what carries meaning stays
(decimal points, minus signs, `% # @ &`, currency and other symbols, as words of their own); scripts that are written
without spaces are compared by character. Not covered: stemming, synonyms, accents (`résumé` is not `resume`).
"""

from __future__ import annotations

import re
import unicodedata
from typing import Literal

from .unicode import NUMBER_SIGNS, normal_form

Articles = Literal["keep", "leading", "drop"]

_ARTICLES = frozenset(["a", "an", "the"])
_MEANINGFUL = frozenset("%‰#@&")
_JOINING = frozenset("'’‘ʼ＇`´")
_MARKED = ((0x0E00, 0x0FFF), (0x1000, 0x109F), (0x1780, 0x17FF))
"""Thai, Lao, Tibetan, Burmese, Khmer: written without spaces, with marks that stay with their letter."""
_UNSPACED = (
    (0x3005, 0x3007), (0x3040, 0x30FF), (0x31F0, 0x31FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF),
    (0x20000, 0x323AF),
)  # fmt: skip
"""Han and Japanese kana: written without spaces."""
_MAX_TABLE = 20_000

_SIGNS = str.maketrans(NUMBER_SIGNS)
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_DOT = re.compile(r"\.(?!\d)")
_APART = re.compile(r"-(?!\.?\d)|(?<=\w)-|(?<=[^\W\d])\.")


class _Table(dict[int, str]):
    """What becomes of each character, looked up once. Bounded, because a model chooses the characters."""

    def __missing__(self, code: int) -> str:
        replacement = _replacement(chr(code))
        if len(self) < _MAX_TABLE:
            self[code] = replacement
        return replacement


def _replacement(char: str) -> str:
    category = unicodedata.category(char)
    if char in ".-":
        return char
    if char in _JOINING or category in ("Cf", "Cs"):
        return ""
    if char in _MEANINGFUL or category in ("Sm", "Sc", "So"):
        return f" {char} "
    if category[0] in "PZCS":
        return " "
    if category == "Nd":
        return str(unicodedata.decimal(char))
    if category[0] == "L" and _within(char, _UNSPACED):
        return f" {char} "
    if category[0] == "L" and _within(char, _MARKED):
        return f" {char}"
    return char


def _within(char: str, ranges: tuple[tuple[int, int], ...]) -> bool:
    return any(first <= ord(char) <= last for first, last in ranges)


_TABLE = _Table()


def words(text: str, articles: Articles = "keep") -> list[str]:
    """The words of a text, in order; none when there is nothing but punctuation and white space.

    `articles`: English a, an and the are kept, dropped at the beginning, or dropped everywhere; never all there is.
    Linear in the length of the text.
    """
    folded = normal_form(normal_form(text, "NFKC").casefold(), "NFKC").translate(_SIGNS)
    folded = _APART.sub(" ", _DOT.sub("", _THOUSANDS.sub("", folded)))
    found = folded.translate(_TABLE).split()
    if articles == "leading" and len(found) > 1 and found[0] in _ARTICLES:
        return found[1:]
    if articles == "drop":
        return [word for word in found if word not in _ARTICLES] or found
    return found
