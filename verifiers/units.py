r"""Units of measure after a number: what is written, and exact conversion between units of one dimension.

Covered: SI units with prefixes, the usual others, products, quotients and powers (`kg*m/s^2`, `miles per hour`, `m²`),
percent, currencies (never converted into each other), counted things (`12 apples`). Definitions and factors are
pint's, as fractions; its names are looked up one by one and never evaluated as an expression, because pint computes
`10**10**10` when a unit says so. Which names count is decided here: pint also knows constants (`e`, `c`, `pi`) that
behind a number are no unit. Not covered: logarithmic units (`dB`, `pH`), and exchange rates.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any

_NAMES = frozenset(
    """meter gram second ampere kelvin mole candela liter hertz newton pascal joule watt coulomb volt farad ohm siemens
    weber tesla henry degree_Celsius degree_Fahrenheit lumen lux becquerel gray sievert katal molar
    minute hour day week month year century
    inch foot yard mile nautical_mile angstrom micron light_year parsec astronomical_unit
    acre hectare are gallon quart pint cup fluid_ounce tablespoon teaspoon barrel cubic_centimeter
    pound ounce stone ton metric_ton grain carat unified_atomic_mass_unit dalton
    mile_per_hour kilometer_per_hour knot
    calorie electron_volt erg british_thermal_unit watt_hour horsepower dyne force_pound force_kilogram
    bar standard_atmosphere torr meter_Hg pound_force_per_square_inch gauss curie
    degree radian arcminute arcsecond steradian turn revolutions_per_minute
    bit byte percent permille ppm""".split()
)
"""pint's names of the units that count as units."""
_SPELLED = {
    "°": "degree", "°C": "degree_Celsius", "°F": "degree_Fahrenheit", "℃": "degree_Celsius", "℉": "degree_Fahrenheit",
    "degC": "degree_Celsius", "degF": "degree_Fahrenheit", "%": "percent", "‰": "permille", "pct": "percent",
    "sec": "second", "secs": "second", "yrs": "year", "lbs": "pound", "kph": "kilometer_per_hour", "'": "arcminute",
    "KM": "km", "Km": "km", "KG": "kg", "Kg": "kg", "′": "arcminute", "″": "arcsecond", "centigrade": "degree_Celsius",
    "sq": "square", "cu": "cubic",
}  # fmt: skip
"""Spellings that pint does not have, or reads otherwise."""
_POWERS = {"square": 2, "squared": 2, "cubic": 3, "cubed": 3}
_CURRENCIES = {
    "$": "USD", "us$": "USD", "usd": "USD", "dollar": "USD", "dollars": "USD", "€": "EUR", "eur": "EUR", "euro": "EUR",
    "euros": "EUR", "£": "GBP", "gbp": "GBP", "¥": "JPY", "jpy": "JPY", "yen": "JPY", "cny": "CNY", "rmb": "CNY",
    "yuan": "CNY", "元": "CNY", "₹": "INR", "inr": "INR", "rupee": "INR", "rupees": "INR", "₩": "KRW", "krw": "KRW",
    "won": "KRW", "chf": "CHF", "₽": "RUB", "rub": "RUB", "ruble": "RUB", "rubles": "RUB", "₺": "TRY", "₪": "ILS",
    "₫": "VND", "฿": "THB", "₱": "PHP", "₦": "NGN", "₴": "UAH", "r$": "BRL", "brl": "BRL", "aud": "AUD", "cad": "CAD",
}  # fmt: skip
CURRENCY_SIGNS = "$€£¥₹₩₽₺₪₫฿₱₦₴"

_TEMPERATURES = frozenset(["degree_Celsius", "degree_Fahrenheit", "kelvin"])
"""Alone these convert with an offset; in `J/K` or `K/m` they are differences."""
_MAX_TEXT = 60
_MAX_POWER = 9
_TOKEN = re.compile(r"(?P<name>[°℃℉]?[^\W\d_]+|[°℃℉%‰'′″])|\^?\(?(?P<power>[-+]?\d{1,2})\)?|(?P<sign>[*/·⋅()])|\s+")
_DEGREES = re.compile(r"(?:°\s?|\bdeg(?:ree)?s?\s+)(?P<scale>c(?:elsius|entigrade)?|f(?:ahrenheit)?)\b", re.IGNORECASE)
_WORDS = re.compile(r"[^\W\d_]+(?:[ -][^\W\d_]+){0,3}")


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of measure, a currency or a counted thing, in a form that compares by value."""

    kind: str
    """`measure`, `currency` or `thing`."""
    parts: tuple[tuple[str, int], ...]
    """pint's names with prefix, and their powers; one name for the other kinds."""

    @property
    def ratio(self) -> Fraction | None:
        """The number that one of a plain ratio is (1/100 for percent); None for other units."""
        return _RATIOS.get(self.parts)


_RATIOS: dict[tuple[tuple[str, int], ...], Fraction] = {
    (("percent", 1),): Fraction(1, 100),
    (("permille", 1),): Fraction(1, 1000),
    (("ppm", 1),): Fraction(1, 10**6),
}


@lru_cache(maxsize=4096)
def read_unit(text: str) -> Unit | None:
    """The unit that a text names, or None. A few words that name no unit are a counted thing."""
    text = text.strip()
    if not text or len(text) > _MAX_TEXT:
        return None
    currency = _CURRENCIES.get(text.lower())
    if currency is not None:
        return Unit("currency", ((currency, 1),))
    parts = _measure(_DEGREES.sub(lambda found: " deg" + found["scale"][0].upper() + " ", text))
    if parts:
        return Unit("measure", parts)
    if _WORDS.fullmatch(text):
        return Unit("thing", ((_singular(text.casefold().replace("-", " ")), 1),))
    return None


def convert(value: Fraction, source: Unit, target: Unit) -> Fraction | None:
    """`value` in another unit, exactly; None where the two measure different things."""
    if source == target:
        return value
    if source.kind != "measure" or target.kind != "measure":
        return None
    if source.parts[0][0] in _TEMPERATURES and len(source.parts) == len(target.parts) == 1:
        powers = (source.parts[0][1], target.parts[0][1])
        if powers == (1, 1) and target.parts[0][0] in _TEMPERATURES:
            quantity = _registry().Quantity(value, source.parts[0][0])
            return Fraction(quantity.m_as(target.parts[0][0]))
    factor, roots = _root(source)
    other, other_roots = _root(target)
    return value * factor / other if roots == other_roots else None


def _root(unit: Unit) -> tuple[Fraction, dict[str, int]]:
    """The factor to root units, and their powers.

    Not pint's dimensions: it has none for radians and bits, and would turn 1 rad/s into 1 Hz. Only single names are
    asked of pint, which keeps every unit that it was ever asked for.
    """
    factor, roots = Fraction(1), dict[str, int]()
    for name, power in unit.parts:
        each, bases = _root_of_one(name)
        factor *= each**power
        for base, exponent in bases:
            roots[base] = roots.get(base, 0) + exponent * power
    return factor, {base: exponent for base, exponent in roots.items() if exponent}


@lru_cache(maxsize=4096)
def _root_of_one(name: str) -> tuple[Fraction, tuple[tuple[str, int], ...]]:
    registry = _registry()
    factor, roots = registry.get_root_units(registry.UnitsContainer({name: 1}))
    return Fraction(factor), tuple((str(base), int(power)) for base, power in roots._units.items())  # noqa: SLF001


def _measure(text: str) -> tuple[tuple[str, int], ...] | None:
    """The parts of a unit expression, or None where it holds anything else.

    Reads left to right; `/` holds for one factor or one pair of parentheses.
    """
    parts: dict[str, int] = {}
    at, sign, inside, last, pending = 0, 1, False, "", 1
    text = text.replace("**", "^")
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            return None
        at = token.end()
        if token["name"]:
            word = token["name"]
            if word.lower() == "per":
                sign, last = -1, ""
                continue
            power = _POWERS.get(_SPELLED.get(word, word).lower())
            if power is not None and not (word.lower().endswith("ed") and last):
                pending = power
                continue
            if power is not None:
                parts[last] += (power - 1) * (1 if parts[last] > 0 else -1)
                continue
            name = _canonical(word)
            if name is None:
                return None
            parts[name] = parts.get(name, 0) + sign * pending
            last, pending = name, 1
            if not inside:
                sign = 1
        elif token["power"]:
            power = int(token["power"])
            if not last or not 0 < abs(power) <= _MAX_POWER:
                return None
            parts[last] *= power
            last = ""
        elif token["sign"] == "/":
            sign, last = -1, ""
        elif token["sign"] == "(":
            inside = True
        elif token["sign"] == ")":
            inside, sign = False, 1
    if pending != 1:
        return None
    return tuple(sorted((name, power) for name, power in parts.items() if power)) or None


@lru_cache(maxsize=4096)
def _canonical(word: str) -> str | None:
    """The name that pint has for a unit, prefix, or None. Case counts, unless no unit is written so (`Meters`)."""
    spellings = [_SPELLED.get(word, word)]
    if word[1:].islower() and len(word) > 3:
        spellings.append(word.lower())
    for spelling in spellings:
        if spelling in _NAMES:
            return spelling
        if len(spelling) > 24:
            return None
        for prefix, name, _ in _registry().parse_unit_name(spelling):
            if name in _NAMES:
                return str(prefix + name)
    return None


def _singular(thing: str) -> str:
    """Without the English plural, which is all that differs in `1 apple` and `2 apples`."""
    return thing[:-1] if thing.endswith("s") and not thing.endswith("ss") else thing


@cache
def _registry() -> Any:
    import pint

    # Fractions, so that 1 in is 2.54 cm and not 2.5399999999999996.
    return pint.UnitRegistry(non_int_type=Fraction)
