"""Units: reading them, converting exactly, and refusing what is none."""

from __future__ import annotations

from fractions import Fraction
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewarden.verifiers import measures
from rewarden.verifiers.units import Unit, convert, read_unit


def read(text: str) -> Unit:
    """The unit, which must be one."""
    unit = read_unit(text)
    assert unit is not None, text
    return unit


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("m/s", "m s^-1"), ("m/s", "meters per second"), ("kg*m/s^2", "kg m / s^2"), ("m^2", "square meters"),
        ("m^3", "cubic metres"), ("feet squared", "ft^2"), ("°C", "degrees Celsius"), ("°F", "deg F"), ("%", "percent"),
        ("Ω", "ohms"), ("μm", "µm"), ("lbs", "pounds"), ("KM", "km"), ("$", "dollars"), ("€", "EUR"),
        ("apple", "Apples"),
        ("J/(kg K)", "J/(kg*K)"), ("hr", "hours"), ("Meters", "m"),
    ],
)  # fmt: skip
def test_spellings_of_one_unit(one: str, other: str) -> None:
    """The same unit in other words is the same unit."""
    assert read(one).kind == read(other).kind
    assert convert(Fraction(7), read(one), read(other)) == 7


@pytest.mark.parametrize(
    ("value", "source", "target", "expected"),
    [
        (1, "in", "cm", "2.54"), (1, "mile", "km", "1.609344"), (36, "km/h", "m/s", "10"), (25, "°C", "K", "298.15"),
        (77, "°F", "°C", "25"), (1, "kWh", "J", "3600000"), (1, "L", "cm^3", "1000"), (1, "atm", "Pa", "101325"),
        (1, "kcal", "J", "4184"), (5, "mg/L", "µg/L", "5000"), (1, "N", "kg m/s^2", "1"), (1, "J/K", "J/°C", "1"),
        (50, "%", "ppm", "500000"), (2, "h", "min", "120"), (1, "lb", "kg", "0.45359237"), (1, "MB", "kB", "1000"),
    ],
)  # fmt: skip
def test_conversion_is_exact(value: int, source: str, target: str, expected: str) -> None:
    """Factors are fractions; temperatures alone convert with their offset, in quotients without."""
    assert convert(Fraction(value), read(source), read(target)) == Fraction(expected)
    assert convert(Fraction(expected), read(target), read(source)) == value


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("m", "s"),
        ("$", "€"),
        ("m", "m^2"),
        ("Hz", "rad/s"),
        ("apples", "oranges"),
        ("m", "apples"),
        ("°C", "°C/m"),
        ("$", "m"),
        ("g", "N"),
    ],
)
def test_other_dimensions_do_not_convert(one: str, other: str) -> None:
    """Currencies, counted things and other dimensions are never turned into each other."""
    assert convert(Fraction(1), read(one), read(other)) is None
    assert convert(Fraction(1), read(other), read(one)) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "5",
        "10**10**10",
        "m^99",
        "m^0",
        "^2",
        "m^2^2^2x!",
        "is not 6",
        "(",
        "square",
        "__class__",
        "m" * 100,
        "a+b",
    ],
)
def test_what_is_no_unit(text: str) -> None:
    """Anything but words and powers in a small range is no unit."""
    unit = read_unit(text)
    assert unit is None or unit.kind == "thing"


@pytest.mark.parametrize("text", ["e", "c", "pi", "k", "speed_of_light", "Cal"])
def test_constants_are_no_units(text: str) -> None:
    """Physical constants do not measure anything behind a number."""
    unit = read_unit(text)
    assert unit is None or unit.kind == "thing"


def test_the_table_has_no_name_twice() -> None:
    """No spelling is defined twice, and none is also a plural or has a prefix that would make it another unit."""
    written = [
        name
        for table in (measures._PREFIXED, measures._PLAIN)
        for row in table.strip().splitlines()
        for name in "|".join(row.split("|")[:2]).replace("|", " ").split()
    ]
    # The erg and the bar have one spelling as symbol and as word.
    assert sorted({name for name in written if written.count(name) > 1}) == ["bar", "bit", "erg", "torr"]
    for name in written:
        found = measures.find(name)
        assert found is not None
        assert measures.find(found[0]) == found


@pytest.mark.parametrize(
    ("derived", "base"),
    [
        ("N", "kg m/s^2"), ("Pa", "N/m^2"), ("J", "N m"), ("W", "J/s"), ("C", "A s"), ("V", "W/A"), ("F", "C/V"),
        ("Ω", "V/A"), ("S", "A/V"), ("Wb", "V s"), ("T", "Wb/m^2"), ("H", "Wb/A"), ("lx", "lm/m^2"), ("Gy", "J/kg"),
        ("kat", "mol/s"), ("Wh", "W h"), ("M", "mol/L"), ("sr", "rad^2"), ("lm", "cd sr"), ("cc", "cm^3"),
        ("mph", "mi/h"), ("km/h", "kph"), ("knot", "nmi/h"), ("psi", "lbf/in^2"), ("rpm", "turn/min"), ("t", "Mg"),
    ],
)  # fmt: skip
def test_derived_units_are_what_they_are_derived_from(derived: str, base: str) -> None:
    """Every derived unit of the table is exactly the expression that defines it."""
    assert read(derived).measure == read(base).measure


@pytest.mark.parametrize(
    ("value", "source", "target", "expected"),
    [
        (360, "°", "turn", "1"), (60, "arcmin", "degree", "1"), (60, "″", "′", "1"), (12, "in", "ft", "1"),
        (3, "ft", "yd", "1"), (1760, "yd", "mile", "1"), (4840, "yd^2", "acre", "1"), (4, "qt", "gal", "1"),
        (2, "pt", "qt", "1"), (2, "cups", "pt", "1"), (16, "floz", "pt", "1"), (3, "tsp", "tbsp", "1"),
        (231, "in^3", "gal", "1"), (16, "oz", "lb", "1"), (2000, "lb", "ton", "1"), (7000, "grains", "lb", "1"),
        (14, "lb", "stone", "1"), (760, "torr", "atm", "1"), (100, "years", "century", "1"), (12, "months", "yr", "1"),
        (1, "MiB", "KiB", "1024"), (8, "bits", "byte", "1"), (1, "light year", "km", "9460730472580.8"),
        (1, "μg", "mcg", "1"), (1, "(m/s)^2", "m^2/s^2", "1"), (1, "m m^2", "m^3", "1"), (1, "cm³", "mL", "1"),
    ],
)  # fmt: skip
def test_units_of_one_family(value: int, source: str, target: str, expected: str) -> None:
    """Units that are defined by each other convert so, exactly."""
    assert convert(Fraction(value), read(source), read(target)) == Fraction(expected)


names = st.sampled_from(
    [
        "m",
        "km",
        "in",
        "ft",
        "s",
        "min",
        "kg",
        "lb",
        "J",
        "eV",
        "Pa",
        "bar",
        "°C",
        "K",
        "%",
        "L",
        "mol",
        "V",
        "rad",
        "bit",
    ]
)
amounts = st.fractions(max_denominator=1000)


@given(amounts, names, names)
def test_conversion_there_and_back(value: Fraction, one: str, other: str) -> None:
    """What converts, converts back to the same fraction."""
    there = convert(value, read(one), read(other))
    assert there is None or convert(there, read(other), read(one)) == value


@given(st.text(max_size=30))
def test_reading_never_raises(text: str) -> None:
    """Any text is a unit or none."""
    read_unit(text)


def test_hostile_units_are_cheap() -> None:
    """Texts made to be dear cost nothing: powers are small, and none is computed before it is bounded."""
    start = perf_counter()
    for text in ("9**9**9**9", "m**9**9", "(" * 30, "m*" * 29, "(((m)))^9^9", "kilo" * 6, "(m^9)^9 " * 7):
        unit = read_unit(text)
        assert unit is None or unit.measure is None or len(str(unit.measure.factor)) < 1000
    for power in range(1, 10):
        for other in range(1, 10):
            convert(Fraction(1), read(f"m^{power} kg^{other} s"), read(f"cm^{power} g^{other} s"))
    assert perf_counter() - start < 5
