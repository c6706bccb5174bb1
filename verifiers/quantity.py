r"""A number as people and models write it, with the unit behind it.

Covered: integers, decimals, thousands (`1,234.5`, `1 234.5`, `12,34,567`; with a decimal comma `1.234,5`), scientific
notation (`1.2e5`, `1.2 \times 10^{5}`), fractions and mixed numbers (`-3/4`, `\frac{3}{4}`, `3 1/2`, `½`), percent,
currency, magnitudes (`1.2 million`), a name before it (`x = 5`), LaTeX dress, digits of every script. Values are exact.
Not covered: number words (`twelve`), surds and other expressions (the math verifier reads those), ranges, `nan`, `inf`.

Everything is bounded: no digit run and no exponent makes reading dearer than its length, and at most 4,000 digits of a
number are ever computed with.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from fractions import Fraction

from ..core.extraction import WRAPPER, unwrap_math
from .unicode import NUMBER_SIGNS, TIMES_SIGNS, normal_form
from .units import CURRENCY_SIGNS, Unit, read_unit

MAX_LENGTH = 20_000
"""Characters of an answer that are read."""
MAX_DIGITS = 4_000
"""Digits that are computed with, and the bound of exponents that are written out. Python refuses 4,300 digits."""
MAX_EXPONENT = 9_000
"""Numbers beyond 10^9000, or closer to 0 than 10^-9000, have no value but their digits: they compare by these."""

_SUPERSCRIPT = re.compile(r"[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻]+")
_SUPER = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "0123456789+-")
_VULGAR = re.compile(r"(?<=\d)(?=[¼½¾⅐-⅞↉])")
_SIGNS = str.maketrans({**NUMBER_SIGNS, **TIMES_SIGNS, "’": "'"})
_FRACTION = re.compile(r"(\d?)\s*\\[cdt]?frac\s*(?:\{\s*([^{}]*?)\s*\}\s*\{\s*([^{}]*?)\s*\}|(\d)\s*(\d))")
_WRAPPED = re.compile(WRAPPER + r"\s*+\{([^{}]*)\}")
_COMMANDS = (
    (re.compile(r"\^\s*\{?\s*\\(?:circ|degree)\s*\}?|\\degree"), "°"),
    (re.compile(r"\\(?:times|cdot)(?![A-Za-z])"), "*"),
    (re.compile(r"\\mu(?![A-Za-z])\s*"), "µ"),
    (re.compile(r"\\Omega(?![A-Za-z])"), "Ω"),
    (re.compile(r"\\approx(?![A-Za-z])"), "≈"),
    (re.compile(r"\\(?:left|right|displaystyle|[,;:! ])|~(?=[^\d])"), " "),
    (re.compile(r"\{,\}"), ","),
    (re.compile(r"\^\s*\{\s*([-+]?\d+)\s*\}"), r"^\1"),
    (re.compile(r"\\([%$#&])"), r"\1"),
)

_AMOUNT = (
    r"(?:\d{1,3}(?:,\d{3})+|\d{1,2}(?:,\d{2})+,\d{3}|\d{1,3}(?:\ \d{3})+|\d{1,3}(?:'\d{3})+|\d{1,3}(?:_\d{3})+|\d+)"
    r"(?!\d)(?:\.\d*)?|\.\d+"
)
_NUMBER = re.compile(
    rf"""
    (?:[^\W\d_]\w{{0,9}}\s*=\s*)?                                   # x =
    (?:[≈~=]\s*)?
    (?P<sign>[-+]?)\s*
    (?P<currency>(?:US|R|A|C)?[{CURRENCY_SIGNS}])?\s*
    (?P<inner>-?)
    (?:
        (?P<whole>\d{{1,12}})\ +(?P<part>\d{{1,12}})\s*/\s*(?P<parts>\d{{1,12}})(?![\d.,])
      | (?P<upper>{_AMOUNT})(?P<tenths>[eE][-+]?\d+|\s*[*xX]\s*10\s*\^\s*\(?(?P<tens>[-+]?\d+)\)?)?
        (?:\s*/\s*(?P<lower>{_AMOUNT}))?
    )
    (?![.,]?\d)(?P<unit>.*)
    """,
    re.VERBOSE | re.DOTALL,
)
_POWER_OF_TEN = re.compile(r"^(\s*[-+]?\s*)10\s*\^\s*\(?([-+]?\d+)\)?")
_MAGNITUDE = re.compile(r"\s*-?(hundred|thousand|million|billion|trillion|dozen)s?\b", re.IGNORECASE)
_MAGNITUDES = {
    "hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12, "dozen": 12,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number and its unit. Two numbers of equal `digits` are equal, whatever their size."""

    value: Fraction | None
    """None beyond `MAX_EXPONENT`."""
    exact: bool
    """False where digits beyond `MAX_DIGITS` were cut off `value`."""
    digits: tuple[bool, str, int] | None
    """Negative, digits without zeros at either end, power of ten; None for fractions."""
    unit: Unit | None
    text: str
    """The unit as written; empty without one."""

    @property
    def magnitude(self) -> int:
        """Of a number that has no value: the power of ten of its first digit."""
        assert self.digits is not None
        return self.digits[2] + len(self.digits[1])


def read_quantity(text: str, *, decimal_comma: bool = False) -> Quantity | None:
    """The quantity that a text is, or None where it is anything else. Linear in the length of the text.

    Texts longer than `MAX_LENGTH` are None. A unit that cannot be read makes the whole None, because what stands behind
    a number may change or deny it.
    """
    if len(text) > MAX_LENGTH:
        return None
    plain = _POWER_OF_TEN.sub(r"\g<1>1e\2", _plain(text))
    if decimal_comma:
        plain = plain.translate({ord(","): ".", ord("."): ","})
    found = _NUMBER.fullmatch(plain)
    if found is None or (found["sign"] and found["inner"]):
        return None
    negative = "-" in (found["sign"], found["inner"])
    rest, factor = found["unit"], 1
    magnitude = _MAGNITUDE.match(rest)
    if magnitude is not None:
        rest, factor = rest[magnitude.end() :], _MAGNITUDES[magnitude[1].lower()]
    written = (found["currency"] or "") + rest.strip()
    unit = None
    if written and (found["currency"] is None or not rest.strip()):
        unit = read_unit(written)
    if written and unit is None:
        return None
    if found["whole"]:
        if int(found["part"]) >= int(found["parts"]):
            return None  # `1 234/5` is 1234/5 or 1 + 234/5
        value = int(found["whole"]) + Fraction(int(found["part"]), int(found["parts"]))
        return Quantity((-value if negative else value) * factor, True, None, unit, written)
    number = _decimal(found["upper"], found["tens"] or (found["tenths"] or "e0")[1:], negative=negative)
    if number is None:
        return None
    if found["lower"] is None and factor == 1:
        return Quantity(*number, unit, written)
    upper, exact, _ = number
    lower = _decimal(found["lower"] or "1", "0", negative=False)
    if upper is None or lower is None or not lower[0]:
        return None
    return Quantity(upper / lower[0] * factor, exact and lower[1], None, unit, written)


def _decimal(amount: str, power: str, *, negative: bool) -> tuple[Fraction | None, bool, tuple[bool, str, int]] | None:
    """Value, whether it is exact, and digits of an amount times a power of ten; None for a power of absurd length."""
    whole, _, decimals = re.sub(r"[,' _]", "", amount).partition(".")
    significant = (whole + decimals).lstrip("0")
    if not significant:
        return Fraction(0), True, (False, "", 0)
    if len(power.lstrip("+-0")) > 18:
        return None
    digits = significant.rstrip("0")
    exponent = int(power) - len(decimals) + len(significant) - len(digits)
    written = (negative, digits, exponent)
    if abs(exponent + len(digits)) > MAX_EXPONENT:
        return None, False, written
    kept = digits[:MAX_DIGITS]
    scale = exponent + len(digits) - len(kept)
    value = Fraction(int(kept)) * (Fraction(10) ** scale)
    return -value if negative else value, len(kept) == len(digits), written


def _plain(text: str) -> str:
    """The text in ASCII as far as numbers go, without LaTeX."""
    text = text.strip()
    if not text.isascii():
        text = _SUPERSCRIPT.sub(lambda run: "^" + run[0].translate(_SUPER), text)
        text = normal_form(_VULGAR.sub(" ", text), "NFKC").translate(_SIGNS)
        if not text.isascii():
            text = "".join(str(unicodedata.decimal(char, char)) if char > "\x7f" else char for char in text)
    text = unwrap_math(text) or text
    if "\\" in text or "{" in text:
        text = _FRACTION.sub(_inline, _WRAPPED.sub(r" \1 ", text))
        for command, plain in _COMMANDS:
            text = command.sub(plain, text)
    return text.strip().rstrip(".").rstrip()


def _inline(fraction: re.Match[str]) -> str:
    upper, lower = (fraction[2], fraction[3]) if fraction[4] is None else (fraction[4], fraction[5])
    return f"{fraction[1]} {upper}/{lower}" if fraction[1] else f"{upper}/{lower}"
