"""Units: reading them, converting exactly, and refusing what is none."""

from __future__ import annotations

from fractions import Fraction
from time import perf_counter
from typing import Any

import pint
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewarden.verifiers import units
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
    """Physical constants, which pint also knows, do not measure anything behind a number."""
    unit = read_unit(text)
    assert unit is None or unit.kind == "thing"


def test_every_name_is_pints() -> None:
    """Each unit that counts is defined by pint under this very name."""
    registry: Any = pint.UnitRegistry()
    for name in units._NAMES - {"standard_atmosphere"}:
        assert registry.parse_unit_name(name)[0][1] == name
    assert set(units._RATIOS) <= {((name, 1),) for name in units._NAMES}


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
    """Texts made to be dear for pint's own parser cost nothing, and leave nothing behind in pint."""
    registry = units._registry()
    start = perf_counter()
    for text in ("9**9**9**9", "m**9**9", "(" * 30, "m*" * 29, "(((m)))^9^9", "kilo" * 6):
        read_unit(text)
    known = len(registry._cache.root_units)
    for power in range(1, 10):
        for other in range(1, 10):
            convert(Fraction(1), read(f"m^{power} kg^{other} s"), read(f"cm^{power} g^{other} s"))
    assert len(registry._cache.root_units) <= known + 10
    assert perf_counter() - start < 5
