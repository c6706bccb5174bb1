"""Numbers as they are written: their exact value, their unit, and bounded work for any text."""

from __future__ import annotations

from fractions import Fraction
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewarden.verifiers.quantity import MAX_LENGTH, read_quantity


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", "5"), ("-5", "-5"), ("+5", "5"), ("−5", "-5"), ("5.", "5"), (".5", "1/2"), ("007", "7"), ("-0", "0"),
        ("1,234.5", "1234.5"), ("1 234", "1234"), ("1\u202f234", "1234"), ("1'234", "1234"), ("1_000", "1000"),
        ("12,34,567", "1234567"), ("1{,}234", "1234"), ("1.2e5", "120000"), ("1.2E-3", "0.0012"),
        (r"1.2 \times 10^{5}", "120000"), ("1.2×10⁵", "120000"), ("1.2*10^-3", "0.0012"), ("10^5", "100000"),
        ("-10^{-2}", "-0.01"), ("3/4", "3/4"), (r"-\frac{3}{4}", "-3/4"), (r"\dfrac34", "3/4"), ("3 1/2", "7/2"),
        (r"3\frac{1}{2}", "7/2"), ("½", "1/2"), ("3½", "7/2"), ("1.5/2", "3/4"), ("1.2 million", "1200000"),
        ("2 dozen", "24"), ("x = 5", "5"), ("≈ 5", "5"), ("$5$", "5"), (r"\(5\)", "5"), (r"\text{5}", "5"),
        ("٣٫٥", "3.5"), ("１２", "12"), ("१२", "12"),
    ],
)  # fmt: skip
def test_value(text: str, value: str) -> None:
    """Every usual way to write a number has its exact value."""
    quantity = read_quantity(text)
    assert quantity is not None
    assert quantity.value == Fraction(value)
    assert quantity.exact
    assert quantity.unit is None


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("5 km", 5, "km"), ("5km", 5, "km"), (r"5\text{ km}", 5, "km"), (r"5\,\mathrm{m/s}", 5, "m/s"),
        ("5 m²", 5, "m^2"),
        ("50%", 50, "%"), (r"50\%", 50, "%"), ("$5", 5, "$"), ("-$5", -5, "$"), ("$-5", -5, "$"), (r"\$5", 5, "$"),
        ("5 €", 5, "€"), ("US$ 5", 5, "US$"), ("$1.2 million", 1_200_000, "$"), (r"90^\circ", 90, "°"),
        ("25 °C", 25, "°C"),
        ("12 apples", 12, "apples"),
    ],
)  # fmt: skip
def test_unit(text: str, value: int, unit: str) -> None:
    """The unit stands behind the number, or before it for a currency."""
    quantity = read_quantity(text)
    assert quantity is not None
    assert quantity.unit is not None
    assert (quantity.value, quantity.text) == (Fraction(value), unit)


@pytest.mark.parametrize(
    "text",
    ["", "x", "nan", "inf", "-inf", "Infinity", "twelve", "1,23", "1,234,56", "1.234.567", "5 or 6", "5-7",
     "5, 6", "5 5", "1/0", "0/0", "--5", "+-5", "1.5e3e3", "1e5.5", "0x10", "12:30", "5!", "2^10", "5 (6)", "1 234/5",
     "3 5/2",
     "1e" + "9" * 30,
     "$5 km", r"\frac{1}{}", r"\frac{1}{2}{3}", "5 6/7 8", "²", "5?"],
)  # fmt: skip
def test_what_is_no_number(text: str) -> None:
    """Lists, ranges, expressions, words, wrong grouping and anything ambiguous are not read as a number."""
    assert read_quantity(text) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [("1.234,5", "1234.5"), ("1,5", "1.5"), ("1 234,5", "1234.5"), ("1.234", "1234"), ("1.5", None), ("1,234.5", None)],
)
def test_decimal_comma(text: str, value: str | None) -> None:
    """With a decimal comma the point groups thousands, and nothing else."""
    quantity = read_quantity(text, decimal_comma=True)
    assert (quantity and quantity.value) == (value and Fraction(value))


def test_size_does_not_matter_for_digits() -> None:
    """Numbers too large to be written out still have digits to compare by."""
    one, other = read_quantity("1e999999999"), read_quantity("10.00e999999998")
    assert one is not None
    assert other is not None
    assert one.value is None
    assert one.digits == other.digits


def test_long_numbers_are_cut_and_say_so() -> None:
    """Beyond 4,000 digits the value is cut, which `exact` tells."""
    quantity = read_quantity("0." + "3" * 6000)
    assert quantity is not None
    assert quantity.value is not None
    assert not quantity.exact
    assert abs(quantity.value - Fraction(1, 3)) < Fraction(1, 10**3999)


@given(st.fractions())
def test_fractions_are_read_back(value: Fraction) -> None:
    """Any fraction is read as itself, in plain and in LaTeX form."""
    sign = "-" if value < 0 else ""
    for text in (
        f"{value.numerator}/{value.denominator}",
        rf"{sign}\frac{{{abs(value.numerator)}}}{{{value.denominator}}}",
    ):
        quantity = read_quantity(text)
        assert quantity is not None
        assert quantity.value == value


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**30), max_value=10**30))
def test_decimals_are_read_back(value: object) -> None:
    """Any decimal is read as itself, in plain, grouped and scientific form."""
    for text in (f"{value:f}", f"{value:,f}", f"{value:e}"):
        quantity = read_quantity(text)
        assert quantity is not None, text
        assert quantity.value == Fraction(str(value))


@given(st.text(max_size=30) | st.text(alphabet="0123456789.,+-eE/ $%\\{}^frac", max_size=30))
def test_reading_never_raises(text: str) -> None:
    """Any text is a quantity or none."""
    read_quantity(text)
    read_quantity(text, decimal_comma=True)


PIECES = [
    "9",
    "1,",
    "1 ",
    "1'000",
    r"\frac{",
    r"\frac ",
    "{",
    "1/",
    " ",
    "-",
    "1e",
    "1.2*",
    "\\",
    r"\text{",
    "^{ ",
    "\u0301\u0316",
    "½",
    "⁹",
    "x",
    "$",
    "5 m",
    "٣",
]


@pytest.mark.parametrize("piece", PIECES, ids=repr)
@pytest.mark.parametrize("form", ["{}", "5 {}", "{} 5", r"1\frac{{1{}"], ids=repr)
def test_any_text_is_cheap(piece: str, form: str) -> None:
    """The longest text that is read costs milliseconds; the test allows seconds, for a busy machine."""
    start = perf_counter()
    read_quantity(form.format(piece * (MAX_LENGTH // len(piece) - 20)))
    assert perf_counter() - start < 2


def test_longer_texts_are_not_read() -> None:
    """Beyond the bound a text is no number, whatever it holds."""
    assert read_quantity("9" * (MAX_LENGTH + 1)) is None
