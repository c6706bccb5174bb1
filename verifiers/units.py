r"""Units of measure after a number: what is written, and exact conversion between units of one dimension.

Covered: the units of `measures`, their products, quotients and powers (`kg*m/s^2`, `miles per hour`, `m²`),
temperatures, percent, currencies (never converted into each other), counted things (`12 apples`). Not covered: exchange
rates, and units written before a number other than currencies.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from .measures import PHRASES, Measure, find
from .unicode import NUMBER_SIGNS, TIMES_SIGNS, normal_form

_POWERS = {"square": 2, "sq": 2, "squared": 2, "cubic": 3, "cu": 3, "cubed": 3}
_CURRENCIES = {
    "$": "USD", "us$": "USD", "usd": "USD", "dollar": "USD", "dollars": "USD", "€": "EUR", "eur": "EUR", "euro": "EUR",
    "euros": "EUR", "£": "GBP", "gbp": "GBP", "¥": "JPY", "jpy": "JPY", "yen": "JPY", "cny": "CNY", "rmb": "CNY",
    "yuan": "CNY", "元": "CNY", "₹": "INR", "inr": "INR", "rupee": "INR", "rupees": "INR", "₩": "KRW", "krw": "KRW",
    "won": "KRW", "chf": "CHF", "₽": "RUB", "rub": "RUB", "ruble": "RUB", "rubles": "RUB", "₺": "TRY", "₪": "ILS",
    "₫": "VND", "฿": "THB", "₱": "PHP", "₦": "NGN", "₴": "UAH", "r$": "BRL", "brl": "BRL", "aud": "AUD", "cad": "CAD",
}  # fmt: skip
CURRENCY_SIGNS = "$€£¥₹₩₽₺₪₫฿₱₦₴"


_ZERO = {"°C": Fraction("273.15"), "°F": Fraction("459.67") * Fraction(5, 9), "K": Fraction(0)}
"""Kelvins at zero. Alone, temperatures convert with this offset; in `J/K` or `K/m` they are differences."""
_MAX_TEXT = 60
_MAX_POWER = 9
_SIGNS = str.maketrans({**NUMBER_SIGNS, **TIMES_SIGNS})
_TOKEN = re.compile(
    r"(?P<name>°?[^\W\d_]+(?:_[^\W\d_]+)*|[°%‰'′″])|\^?\(?(?P<power>[-+]?\d{1,2})\)?|(?P<sign>[*/()])|\s+"
)
_DEGREES = re.compile(r"(?:°\s?|\bdeg(?:ree)?s?\s+)(?P<scale>c(?:elsius|entigrade)?|f(?:ahrenheit)?)\b", re.IGNORECASE)
_PHRASE = re.compile("|".join(rf"\b{phrase.replace(' ', '[ -]')}(?=s?\b)" for phrase in PHRASES), re.IGNORECASE)
_WORDS = re.compile(r"[^\W\d_]+(?:[ -][^\W\d_]+){0,3}")


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of measure, a currency or a counted thing, in a form that compares by value."""

    kind: str
    """`measure`, `currency` or `thing`."""
    parts: tuple[tuple[str, int], ...]
    """Names of `measures` with prefix, and their powers; one name for the other kinds."""

    @property
    def measure(self) -> Measure | None:
        """What one of it is in base units; None for currencies and counted things."""
        return _measure(self.parts) if self.kind == "measure" else None

    @property
    def ratio(self) -> Fraction | None:
        """The number that one of a plain ratio is (1/100 for percent); None for other units."""
        measure = self.measure
        return measure.factor if measure is not None and not measure.dimension else None


@lru_cache(maxsize=4096)
def read_unit(text: str) -> Unit | None:
    """The unit that a text names, or None. A few words that name no unit are a counted thing."""
    text = text.strip()
    if not text or len(text) > _MAX_TEXT:
        return None
    # NFKC takes the sign of the second apart.
    text = normal_form(text, "NFKC").translate(_SIGNS).replace("′′", "″")
    currency = _CURRENCIES.get(text.lower())
    if currency is not None:
        return Unit("currency", ((currency, 1),))
    written = _PHRASE.sub(lambda found: found[0].lower().replace(" ", "_").replace("-", "_"), text)
    parts = _parts(_DEGREES.sub(lambda found: " deg" + found["scale"][0].upper() + " ", written))
    if parts:
        return Unit("measure", parts)
    if _WORDS.fullmatch(text):
        return Unit("thing", ((_singular(text.casefold().replace("-", " ")), 1),))
    return None


def convert(value: Fraction, source: Unit, target: Unit) -> Fraction | None:
    """`value` in another unit, exactly; None where the two measure different things."""
    if source == target:
        return value
    one, other = source.measure, target.measure
    if one is None or other is None or one.dimension != other.dimension:
        return None
    zero, other_zero = (_ZERO.get(unit.parts[0][0]) if _is_single(unit) else None for unit in (source, target))
    if zero is None or other_zero is None:
        zero = other_zero = Fraction(0)
    return (value * one.factor + zero - other_zero) / other.factor


def _is_single(unit: Unit) -> bool:
    return len(unit.parts) == 1 and unit.parts[0][1] == 1


@lru_cache(maxsize=4096)
def _measure(parts: tuple[tuple[str, int], ...]) -> Measure:
    factor, bases = Fraction(1), dict[str, int]()
    for name, power in parts:
        found = find(name)
        assert found is not None
        factor *= found[1].factor ** power
        for base, exponent in found[1].dimension:
            bases[base] = bases.get(base, 0) + exponent * power
    return Measure(factor, tuple(sorted((base, power) for base, power in bases.items() if power)))


def _parts(text: str) -> tuple[tuple[str, int], ...] | None:
    """The names and powers of a unit expression, or None where it holds anything else.

    Reads left to right; `/` and `per` hold for one factor or one pair of parentheses, and so does a power.
    """
    factors: list[tuple[str, int]] = []
    at, sign, pending = 0, 1, 1
    last: int | None = None  # where the factors begin that a power would be of
    group, before_group = None, 1
    text = text.replace("**", "^")
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            return None
        at = token.end()
        word, mark = token["name"], token["sign"]
        power = _POWERS.get(word.lower()) if word else int(token["power"]) if token["power"] else None
        if word and power is not None and (last is None or not word.lower().endswith("ed")):
            pending = power
        elif power is not None:
            if last is None or not 0 < abs(power) <= _MAX_POWER:
                return None
            factors[last:] = [(name, each * power) for name, each in factors[last:]]
            last = None
        elif word and word.lower() == "per":
            sign, last = -1, None
        elif word:
            found = find(word)
            if found is None:
                return None
            last = len(factors)
            factors.append((found[0], sign * pending))
            sign = pending = 1
        elif mark == "(" and group is None:
            group, before_group, sign, last = len(factors), sign, 1, None
        elif mark == ")" and group is not None:
            factors[group:] = [(name, each * before_group) for name, each in factors[group:]]
            group, last, sign = None, group, 1
        elif mark in ("*", "/"):
            sign, last = -1 if mark == "/" else 1, None
        elif mark:
            return None
    if pending != 1 or group is not None:
        return None
    powers: dict[str, int] = {}
    for name, each in factors:
        powers[name] = powers.get(name, 0) + each
    return tuple(sorted((name, each) for name, each in powers.items() if each)) or None


def _singular(thing: str) -> str:
    """Without the English plural, which is all that differs in `1 apple` and `2 apples`."""
    return thing[:-1] if thing.endswith("s") and not thing.endswith("ss") else thing
