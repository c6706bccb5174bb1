"""The table of units of measure: what each name measures, as an exact multiple of base units.

Covered: SI units with prefixes, bytes and bits with decimal and binary ones, the usual others of science and of US
customary measure, plain ratios (percent). Factors come from the definitions of the units; those of degrees, turns and
parsecs hold pi to 50 digits. Where a name means several units, the customary US one is meant (`pint`, `ton`), or none
(`barrel`). Not covered: reading products and powers (`units`), temperatures with their zero (likewise), logarithmic
units (`dB`, `pH`), and physical constants (`c`, `e`), which behind a number are no unit.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

_PI = Fraction("3.1415926535897932384626433832795028841971693993751")
_PREFIXED = """
m | meter metre | 1 | m
g | gram gramme | 1/1000 | kg
s sec | second | 1 | s
A | ampere amp | 1 | A
K | kelvin | 1 | K
mol | mole | 1 | mol
cd | candela | 1 | cd
rad | radian | 1 | rad
sr | steradian | 1 | rad^2
Hz | hertz | 1 | s^-1
N | newton | 1 | kg m s^-2
Pa | pascal | 1 | kg m^-1 s^-2
J | joule | 1 | kg m^2 s^-2
W | watt | 1 | kg m^2 s^-3
C | coulomb | 1 | A s
V | volt | 1 | kg m^2 s^-3 A^-1
F | farad | 1 | kg^-1 m^-2 s^4 A^2
Ω | ohm | 1 | kg m^2 s^-3 A^-2
S | siemens | 1 | kg^-1 m^-2 s^3 A^2
Wb | weber | 1 | kg m^2 s^-2 A^-1
T | tesla | 1 | kg s^-2 A^-1
H | henry | 1 | kg m^2 s^-2 A^-2
lm | lumen | 1 | cd rad^2
lx | lux | 1 | cd rad^2 m^-2
Bq | becquerel | 1 | decay s^-1
Gy | gray | 1 | m^2 s^-2
Sv | sievert | 1 | m^2 s^-2
kat | katal | 1 | mol s^-1
l L | liter litre | 1/1000 | m^3
M | molar | 1000 | mol m^-3
t | tonne | 1000 | kg
Da u amu | dalton | 1.66053906892e-27 | kg
eV | electronvolt | 1.602176634e-19 | kg m^2 s^-2
cal | calorie | 4.184 | kg m^2 s^-2
Wh | watthour | 3600 | kg m^2 s^-2
erg | erg | 1/10000000 | kg m^2 s^-2
dyn | dyne | 1/100000 | kg m s^-2
bar | bar | 100000 | kg m^-1 s^-2
torr | torr | 20265/152 | kg m^-1 s^-2
mHg | | 133322.387415 | kg m^-1 s^-2
G | gauss | 1/10000 | kg s^-2 A^-1
Ci | curie | 37000000000 | decay s^-1
pc | parsec | 30856775814913672.789139379577965 | m
yr | year | 31557600 | s
bit | bit | 1 | bit
B | byte | 8 | bit
"""
"""Symbols | words | factor | dimension, one unit a line. These take prefixes: symbols short ones, words long ones."""
_PLAIN = """
min | minute | 60 | s
h hr | hour | 3600 | s
d | day | 86400 | s
wk | week | 604800 | s
mo | month | 2629800 | s
| century | 3155760000 | s
in | inch | 127/5000 | m
ft | foot | 381/1250 | m
yd | yard | 1143/1250 | m
mi | mile | 201168/125 | m
nmi | nautical_mile | 1852 | m
Å | angstrom ångström | 1/10000000000 | m
μ | micron | 1/1000000 | m
ly | light_year lightyear | 9460730472580800 | m
au AU | astronomical_unit | 149597870700 | m
| are | 100 | m^2
ha | hectare | 10000 | m^2
| acre | 4046.8564224 | m^2
cc | | 1/1000000 | m^3
gal | gallon | 473176473/125000000000 | m^3
qt | quart | 473176473/500000000000 | m^3
pt | pint | 473176473/1000000000000 | m^3
| cup | 473176473/2000000000000 | m^3
floz | fluid_ounce | 473176473/16000000000000 | m^3
tbsp | tablespoon | 473176473/32000000000000 | m^3
tsp | teaspoon | 157725491/32000000000000 | m^3
lb | pound | 45359237/100000000 | kg
oz | ounce | 45359237/1600000000 | kg
st | stone | 317514659/50000000 | kg
| ton short_ton | 45359237/50000 | kg
| metric_ton | 1000 | kg
gr | grain | 6479891/100000000000 | kg
ct | carat | 1/5000 | kg
mph MPH | | 1397/3125 | m s^-1
kph kmh kmph KPH | | 5/18 | m s^-1
kn kt | knot | 463/900 | m s^-1
BTU Btu | | 1055.056 | kg m^2 s^-2
hp | horsepower | 37284993579113511/50000000000000 | kg m^2 s^-3
lbf | | 8896443230521/2000000000000 | kg m s^-2
kgf | | 9.80665 | kg m s^-2
psi | | 8896443230521/1290320000 | kg m^-1 s^-2
atm | atmosphere | 101325 | kg m^-1 s^-2
°C degC | celsius centigrade | 1 | K
°F degF | fahrenheit | 5/9 | K
° deg | degree | 1/180 pi | rad
′ ' arcmin | arcminute | 1/10800 pi | rad
″ arcsec | arcsecond | 1/648000 pi | rad
| turn revolution | 2 pi | rad
rpm | | 1/30 pi | rad s^-1
% pct | percent | 1/100 |
‰ | permille | 1/1000 |
ppm | | 1/1000000 |
ppb | | 1/1000000000 |
"""
_PREFIXES = """
Y yotta 24 | Z zetta 21 | E exa 18 | P peta 15 | T tera 12 | G giga 9 | M mega 6 | k kilo 3 | h hecto 2 | da deca 1
d deci -1 | c centi -2 | m milli -3 | μ micro -6 | u micro -6 | mc micro -6 | n nano -9 | p pico -12 | f femto -15
a atto -18 | z zepto -21 | y yocto -24
"""
_BINARY = {"Ki": "kibi", "Mi": "mebi", "Gi": "gibi", "Ti": "tebi", "Pi": "pebi"}
_SPELLED = {
    "KM": "km", "Km": "km", "KG": "kg", "Kg": "kg", "KB": "kB", "feet": "foot", "inches": "inch",
    "centuries": "century",
}  # fmt: skip
"""Common spellings that no rule gives."""
_MAX_WORD = 24

Dimension = tuple[tuple[str, int], ...]
"""Base units (kg, m, s, A, K, mol, cd, rad, bit, decay) and their powers, sorted, none 0; empty for plain ratios.

Angles, bits and decays are bases of their own, so that 1 rad/s is never 1 Hz, nor 1 Bq.
"""


class Measure(NamedTuple):
    """A unit as a multiple of base units: 1 km is 1000 of `m`."""

    factor: Fraction
    dimension: Dimension


class _Entry(NamedTuple):
    name: str
    measure: Measure


def _read(table: str) -> tuple[dict[str, _Entry], dict[str, _Entry]]:
    """The units of a table by symbol and by word."""
    symbols: dict[str, _Entry] = {}
    words: dict[str, _Entry] = {}
    for row in table.strip().splitlines():
        short, long, factor, dimension = (cell.split() for cell in row.split("|"))
        times = _PI if factor[-1] == "pi" else 1
        powers = sorted((base, int(power or 1)) for base, _, power in (part.partition("^") for part in dimension))
        entry = _Entry((short + long)[0], Measure(Fraction(factor[0]) * times, tuple(powers)))
        symbols.update(dict.fromkeys(short, entry))
        words.update(dict.fromkeys(long, entry))
    return symbols, words


_SYMBOLS, _WORDS = _read(_PREFIXED)
_ALL: dict[str, _Entry] = {}
for _units in (*_read(_PLAIN), _WORDS, _SYMBOLS):
    _ALL.update(_units)
_SHORT: dict[str, tuple[str, Fraction]] = {short: (short, Fraction(1024) ** (i + 1)) for i, short in enumerate(_BINARY)}
_LONG: dict[str, tuple[str, Fraction]] = {long: _SHORT[short] for short, long in _BINARY.items()}
for _prefix in _PREFIXES.replace("\n", "|").strip("|").split("|"):
    _short, _long, _power = _prefix.split()
    _LONG.setdefault(_long, (_short, Fraction(10) ** int(_power)))
    _SHORT[_short] = _LONG[_long]

PHRASES = tuple(name.replace("_", " ") for name in _ALL if "_" in name)
"""Units of two words (`nautical mile`), which `find` knows with `_` between them."""


@lru_cache(maxsize=4096)
def find(word: str) -> tuple[str, Measure] | None:
    """The unit that a word names, in the singular or plural: its name with prefix, and what it measures; or None.

    Case counts, unless no unit is written so (`Meters`). A name that was given back is found again.
    """
    if len(word) > _MAX_WORD:
        return None
    spellings = [_SPELLED.get(word, word)]
    if word[1:].islower() and len(word) > 3:
        spellings.append(word.lower())
    for spelling in spellings:
        found = _find(spelling) or (_find(spelling[:-1]) if spelling.endswith("s") and len(spelling) > 2 else None)
        if found is not None:
            return found
    return None


def _find(word: str) -> _Entry | None:
    entry = _ALL.get(word)
    if entry is not None:
        return entry
    for prefixes, units, longest in ((_SHORT, _SYMBOLS, 2), (_LONG, _WORDS, 5)):
        for length in range(1, min(longest, len(word) - 1) + 1):
            prefix, entry = prefixes.get(word[:length]), units.get(word[length:])
            if prefix is not None and entry is not None:
                short, factor = prefix
                return _Entry(short + entry.name, Measure(entry.measure.factor * factor, entry.measure.dimension))
    return None
