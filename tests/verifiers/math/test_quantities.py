r"""Numbers with units and with the names of what was counted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewarden.verifiers.math import DEFAULT, MathOptions, quick
from rewarden.verifiers.math.units import UNITS

LETTERS = sorted(name for name in UNITS if len(name) == 1)


def equal(reference: str, answer: str, options: MathOptions = DEFAULT) -> bool:
    """The verdict of the layers in process; a pair that they leave open fails the test."""
    match = quick(reference, answer, options)
    assert match is not None, (reference, answer)
    return match.equal is True


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize("amount", ["20", "1", "2.5", "\\frac{3}{4}", "2\\sqrt{3}", "-7"])
def test_a_letter_is_a_unit_beside_a_quantity_of_its_dimension(letter: str, amount: str) -> None:
    """`20 g` meets the marked `20 g` in either direction; a bare number or another dimension never makes it a unit."""
    marked = f"{amount}\\text{{ {letter}}}"
    for plain in (f"{amount}{letter}", f"{amount} {letter}", f"${amount}\\,{letter}$"):
        assert equal(marked, plain)
        assert equal(plain, marked)
        assert equal(plain, marked, MathOptions(units="required"))
        assert not equal(plain, f"3{amount}\\text{{ {letter}}}")
        assert not equal(plain, amount)
        assert not equal(amount, plain)
    for other in LETTERS:
        if UNITS[other].dimension != UNITS[letter].dimension:
            assert not equal(f"{amount}{letter}", f"{amount}\\text{{ {other}}}")


@pytest.mark.parametrize(
    ("marked", "plain", "wrong"),
    [("5 \\text{ km}", "5000 m", "500 m"), ("100 cm", "1 m", "2 m"), ("2\\text{ hours}", "7200 s", "120 s"),
     ("0.02\\text{ kg}", "20 g", "2 g"), ("36\\text{ km/h}", "10 m/s", "36 m/s"),
     ("9.8\\text{ m/s}^2", "9.8 m/s^2", "9.8 m/s"), ("3\\text{ cm}^2", "0.0003 m^2", "0.03 m^2"),
     ("2\\text{ cm}, 3\\text{ cm}", "0.02 m, 0.03 m", "0.02 m, 0.04 m"), ("x = 3\\text{ km}", "x = 3000 m", "x = 3 m")],
)  # fmt: skip
def test_letters_convert_as_units_do(marked: str, plain: str, wrong: str) -> None:
    """Within a dimension the letter is converted; another amount is another answer."""
    assert equal(marked, plain)
    assert equal(plain, marked)
    assert not equal(marked, wrong)
    assert not equal(wrong, marked)


@pytest.mark.parametrize("plain", ["20 g x", "20 x", "g^x", "20 g + 1", "20 g g", "m + s", "20/g"])
def test_other_expressions_are_no_quantities(plain: str) -> None:
    """Only a number times powers of letters of that dimension is read again."""
    assert not equal("20\\text{ g}", plain)
    assert not equal(plain, "20\\text{ g}")


THINGS = ["apple", "orange", "student", "box", "red marble", "child", "cherry", "vertex"]


@given(st.integers(1, 999), st.sampled_from(THINGS), st.sampled_from(THINGS))
def test_two_counted_things_must_be_one(number: int, first: str, second: str) -> None:
    """The name of what was counted may be left out; two names must be one, whatever the number."""
    reference, answer = f"{number}\\text{{ {first}}}", f"{number}\\text{{ {second}}}"
    assert equal(reference, answer) is (first == second)
    assert equal(reference, str(number))
    assert not equal(reference, f"{number + 1}\\text{{ {first}}}")


@pytest.mark.parametrize(
    ("reference", "answer", "verdict"),
    [("5\\text{ apples}", "5\\text{ apple}", True), ("3\\text{ boxes}", "3\\text{ box}", True),
     ("4\\text{ children}", "4\\text{ child}", True), ("17\\text{ red marbles}", "17\\text{ marbles}", True),
     ("17\\text{ marbles}", "17\\text{ blue marbles is wrong}", False), ("17\\text{ red marbles}", "17 marbles", True),
     ("6\\text{ ways}", "6\\text{ permutations}", True), ("8\\text{ vertices}", "8\\text{ vertex}", True),
     ("17\\text{ red marbles}", "17\\text{ blue marbles}", False), ("5\\text{ units}", "5\\text{ cm}", True),
     ("5\\text{ items}", "5\\text{ apples}", True), ("5\\text{ items}", "5\\text{ is wrong}", False),
     ("5\\text{ apples}", "5\\text{ cm}", False), ("5\\text{ cm}", "5\\text{ apples}", False), ("3 pm", "3 am", False),
     ("3\\text{ boys}", "3\\text{ girls}", False), ("3\\text{ units}", "3\\text{ or not}", False)],
)  # fmt: skip
def test_names_of_things(reference: str, answer: str, verdict: bool) -> None:
    """Number, adjectives that the answer leaves out and names for anything do not matter; another noun does."""
    assert equal(reference, answer) is verdict
