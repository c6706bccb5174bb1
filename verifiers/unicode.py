"""Unicode normalisation forms in linear time, and the signs that numbers are written with in other scripts.

Covered: the four forms, for text that a model wrote. `unicodedata.normalize` sorts each run of combining marks by
insertion: a letter with 40,000 marks on it takes a second, and a megabyte of them minutes. Here every mark beyond the
30th of a run is dropped first, which no writing system needs (Unicode Standard Annex #15, "stream-safe text format").
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Literal

_MAX_MARKS = 30

NUMBER_SIGNS: dict[str, str] = {**dict.fromkeys("−–‐‑", "-"), **dict.fromkeys("⁄∕", "/"), "٫": ".", "٬": ","}
"""Minus signs (hyphens and dashes serve as such), fraction bars and separators that no normal form makes ASCII."""
TIMES_SIGNS: dict[str, str] = dict.fromkeys("×⋅·∙", "*")
"""Signs of multiplication; between words they are other signs."""


def normal_form(text: str, form: Literal["NFC", "NFD", "NFKC", "NFKD"]) -> str:
    """`text` in a normalisation form; of more than 30 combining marks in a row, the first 30."""
    if text.isascii():
        return text
    marks = "".join(sorted(char for char in set(text) if unicodedata.combining(char)))
    if marks:
        text = _excess(marks).sub(r"\1", text)
    return unicodedata.normalize(form, text)


@lru_cache(maxsize=64)
def _excess(marks: str) -> re.Pattern[str]:
    one = f"[{re.escape(marks)}]"
    return re.compile(f"({one}{{{_MAX_MARKS}}}){one}+")
