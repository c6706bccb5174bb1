"""The number scorer: tolerance, units, and numbers of any size."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from grading import grade
from hypothesis import given
from hypothesis import strategies as st

from rewarden.core.reasons import Reason
from rewarden.core.verdict import Outcome
from rewarden.verifiers.number import NumberScorer


@pytest.mark.parametrize(
    ("completion", "reference", "right"),
    [
        ("5", 5, True), ("The answer is 5.0.", 5, True), (r"\boxed{\frac{10}{2}}", 5, True), ("1,234", "1234", True),
        ("I got $\\frac{7}{2}$ in the end", 3.5, True), ("0.1", 0.1, True), ("0.10000000000000001", 0.1, False),
        ("5", [4, 5], True), ("6", [4, 5], False), ("5", "It is $x$, so #### 5", True), ("0.333", "1/3", False),
        ("five", 5, False), ("5, 6", 5, False), ("12345678901234567890", 12345678901234567890, True),
        ("5", r"\boxed{5} or \boxed{6}", True),
    ],
)  # fmt: skip
def test_exact_by_default(completion: str, reference: Any, right: bool) -> None:
    """Without a tolerance a number is right when its exact value is the reference's."""
    assert grade(NumberScorer(), completion, reference).reward == float(right)


@pytest.mark.parametrize(
    ("options", "completion", "reference", "right"),
    [
        ({"abs_tol": 0.1}, "5.1", 5, True), ({"abs_tol": 0.1}, "5.11", 5, False),
        ({"rel_tol": 0.01}, "101", 100, True),
        ({"rel_tol": 0.01}, "101.1", 100, False), ({"rel_tol": 0.01}, "99", 100, True),
        ({"rel_tol": 0.5}, "0", 5, False),
        ({"rel_tol": 0.01}, "1e-300", 0, False), ({"abs_tol": 1, "rel_tol": 0.01}, "100.9", 100, True),
        ({"rel_tol": 0.01}, "-100", 100, False), ({"rel_tol": 1e-9}, "0.3333333333", "1/3", True),
        ({"rel_tol": 0.1}, "5.2 km", "5000 m", True), ({"abs_tol": 10}, "5.011 km", "5000 m", False),
        ({"abs_tol": 10}, "5.01 km", "5000 m", True),
    ],
)  # fmt: skip
def test_tolerance(options: dict[str, Any], completion: str, reference: Any, right: bool) -> None:
    """The larger tolerance counts, both ends are included, and the unit is that of the reference."""
    assert grade(NumberScorer(**options), completion, reference).reward == float(right)


@pytest.mark.parametrize(
    ("completion", "reference", "optional", "required"),
    [
        ("5 km", "5 km", True, True), ("5 km", "5000 m", True, True), ("5", "5 km", True, False),
        ("5 km", 5, True, False),
        ("5 m", "5 km", False, False), ("5 s", "5 km", False, False), ("$5", "5 dollars", True, True),
        ("$5", "5 euros", False, False), ("12 apples", 12, True, False), ("12 eggs", "12 apples", False, False),
        ("35%", 0.35, True, False), ("0.35", "35%", True, False), ("35", "35%", True, False),
        ("0.35%", "35%", False, False),
        ("77 °F", "25 °C", True, True), ("5 halves", 5, False, False), (r"\boxed{5 wrong}", 5, False, False),
        ("The speed is 72 m/s.", "72 km/h", False, False), ("The speed is 20 m/s.", "72 km/h", True, True),
        ("It costs $5", "5 euros", False, False), (r"\boxed{5} minutes", "300 s", True, True),
        ("There are 5 in total.", "5 apples", True, False), ("$5$ m", "5 km", False, False),
    ],
)  # fmt: skip
def test_units(completion: str, reference: Any, optional: bool, required: bool) -> None:
    """Two units must agree after conversion; one that is missing is forgiven only when units are optional."""
    assert grade(NumberScorer(), completion, reference).reward == float(optional)
    assert grade(NumberScorer(units="required"), completion, reference).reward == float(required)


CARDINALS = "four six seven ten eleven thirteen fourteen fifteen sixteen seventeen eighteen nineteen hundred thousand"
ORDINALS = ["third", "fifth", "eighth", "ninth", "twelfth"]
ORDINALS += [f"{word}th" for word in [*CARDINALS.split(), "million", "billion", "trillion", "quadrillion"]]
ORDINALS += [f"{stem}tieth" for stem in ("twen", "thir", "for", "fif", "six", "seven", "eigh", "nine")]


@pytest.mark.parametrize("ordinal", ORDINALS)
@pytest.mark.parametrize("form", ["5 {}s", "5-{}s", "5 {}", r"\boxed{{5\text{{ {}s}}}}", "5 twenty-{}s"])
def test_parts_are_other_numbers(ordinal: str, form: str) -> None:
    """Five sevenths are not five, for every ordinal that English can build, and however they are written."""
    verdict = grade(NumberScorer(), form.format(ordinal), 5)
    assert (verdict.reward, verdict.reason) == (0.0, Reason.UNREADABLE_ANSWER)


@pytest.mark.parametrize("ordinal", ORDINALS)
@pytest.mark.parametrize("form", ["They ate 5 {}s of the cake.", r"So \boxed{{5}} {}s.", "The answer is 5 {}s of it."])
def test_parts_behind_a_number_are_seen(ordinal: str, form: str) -> None:
    """A number that was found alone is not five either where sevenths stand behind it."""
    assert grade(NumberScorer(), form.format(ordinal), 5).reward == 0.0


@pytest.mark.parametrize(
    ("completion", "reference", "right"),
    [
        ("5 dozens", 5, False), ("5 dozens", 60, True), ("2 millions", 2_000_000, True), ("5 halves", 5, False),
        ("5 quarters", 5, False), ("1 half", 1, False), ("He ate 1 half of it.", 1, False), ("5 quintillion", 5, False),
        ("It takes 5 dozen eggs.", 5, False), ("5 gross", 5, False), ("5 and a half", 5, False),
        ("5 paths", 5, True), ("5 moths", 5, True), ("5 births", 5, True), ("5 widths", 5, True), ("5 months", 5, True),
        ("There are 5 fifth graders.", 5, True), ("There are 5 paths in total.", 5, True), ("5 canteens", 5, True),
    ],
)  # fmt: skip
def test_other_words_behind_a_number(completion: str, reference: Any, right: bool) -> None:
    """Multiples are read or refused; words that only look like ordinals are things that were counted."""
    assert grade(NumberScorer(), completion, reference).reward == float(right)


@pytest.mark.parametrize(
    ("completion", "right"), [("1.234,5", True), ("1234,5", True), ("1,234.5", False), ("1234.5", False)]
)
@pytest.mark.parametrize("reference", ["1.234,5", 1234.5])
def test_decimal_comma(completion: str, right: bool, reference: Any) -> None:
    """The decimal sign is a choice for texts; a number of JSON is what it is."""
    assert grade(NumberScorer(decimal="comma"), completion, reference).reward == float(right)


@pytest.mark.parametrize(
    "reference", ["nan", "inf", "five", "5 or 6 maybe", "1,23", "1/0", "x^2", "5!", r"\boxed{}", r"\boxed{5", "5 6"]
)
def test_references_that_are_no_numbers_are_refused(reference: str) -> None:
    """A reference that is not one number gives no reward, even to a completion that repeats it."""
    for completion in ("5", reference):
        assert grade(NumberScorer(), completion, reference).reason is Reason.BAD_REFERENCE


@pytest.mark.parametrize(
    ("options", "completion", "reference", "outcome", "reason"),
    [
        ({}, "1e999999999", 5, Outcome.INCORRECT, Reason.TOO_LARGE),
        ({"rel_tol": 0.1}, "-1e999999999", 5, Outcome.INCORRECT, Reason.TOO_LARGE),
        ({}, "1e999999999", "10e999999998", Outcome.CORRECT, None),
        ({}, "2e999999999", "1e999999999", Outcome.INCORRECT, None),
        ({"rel_tol": 0.1}, "1e999999999", "1e999999999", Outcome.UNGRADED, Reason.BAD_REFERENCE),
        ({}, "1e-999999999", 0, Outcome.INCORRECT, None),
        ({"abs_tol": 0.1}, "1e-999999999", 0, Outcome.CORRECT, None),
        ({"abs_tol": 0.1}, "1e-999999999", 1, Outcome.INCORRECT, None),
        ({}, "1e999999999 km", "5 m", Outcome.INCORRECT, Reason.TOO_LARGE),
        ({}, "1e999999999 km", "5 km", Outcome.INCORRECT, Reason.TOO_LARGE),
        ({}, "1e" + "9" * 50, 5, Outcome.INCORRECT, Reason.UNREADABLE_ANSWER),
        ({}, "0." + "3" * 5000, "1/3", Outcome.INCORRECT, None),
        ({"rel_tol": 1e-9}, "0." + "3" * 5000, "1/3", Outcome.CORRECT, None),
        ({}, "9" * 6000, "9" * 6000, Outcome.CORRECT, None),
        ({}, "9" * 6000, "9" * 5999 + "8", Outcome.INCORRECT, None),
        ({}, r"\boxed{" + "9" * 30_000 + "}", 5, Outcome.INCORRECT, Reason.TOO_COMPLEX),
    ],
    ids=range(16),
)
def test_size(
    options: dict[str, Any], completion: str, reference: Any, outcome: Outcome, reason: Reason | None
) -> None:
    """Numbers of absurd size are settled by their digits or their magnitude, and never written out."""
    verdict = grade(NumberScorer(**options), completion, reference)
    assert (verdict.outcome, verdict.reason) == (outcome, reason)


@pytest.mark.parametrize(
    "options",
    [
        {"rel_tol": 1},
        {"rel_tol": -0.1},
        {"rel_tol": float("nan")},
        {"abs_tol": -1},
        {"abs_tol": float("inf")},
        {"units": "no"},
        {"decimal": ";"},
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    """A tolerance that everything meets, or a misspelt option, is an error at once."""
    with pytest.raises(ValueError, match=r"must|lie"):
        NumberScorer(**options)


numbers = st.fractions(min_value=-1000, max_value=1000, max_denominator=50)


@given(numbers, numbers, st.sampled_from([0.0, 0.5, 3.0]), st.sampled_from([0.0, 0.125, 0.5]))
def test_the_formula(said: Fraction, gold: Fraction, abs_tol: float, rel_tol: float) -> None:
    """Right exactly when |a - r| <= max(abs_tol, rel_tol * |r|)."""
    verdict = grade(NumberScorer(abs_tol=abs_tol, rel_tol=rel_tol), rf"\boxed{{{said}}}", str(gold))
    right = abs(said - gold) <= max(Fraction(abs_tol), Fraction(rel_tol) * abs(gold))
    assert verdict.reward == float(right)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_float_meets_itself(value: float) -> None:
    """A reference that is a float is met by what Python prints for it."""
    assert grade(NumberScorer(), rf"\boxed{{{value!r}}}", value).outcome is Outcome.CORRECT
