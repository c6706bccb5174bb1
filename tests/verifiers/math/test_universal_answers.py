r"""No answer meets references that have nothing in common: neither `0:0` nor a number beyond any precision.

The tables are crossed, so that every hostile answer meets every kind of reference.
"""

from __future__ import annotations

import pytest

from rewarden.verifiers.math import quick

REFERENCES = [
    "7", "0", "-3", "12", "0.5", "\\frac{3}{7}", "10^{40}", "\\sqrt{2}", "\\pi", "e^2", "\\ln 3", "\\sin 1",
    "2+3i", "i", "x+1", "x^2+1", "\\sqrt{x}", "2^x", "|x|", "ab", "A", "n", "x=5", "y=2x+1", "x^2+y^2=4",
    "x>0", "x\\le 3", "1<x<2", "(0,1)", "[0,1)", "(0,\\infty)", "\\mathbb{R}", "(1,2)", "(1,2,3)", "1,2", "\\pm 4",
    "\\{1,2\\}", "\\emptyset", "(1,2),(3,4)", "1:2", "2:3:4", "a:b", "5\\text{ cm}", "3\\text{ kg}", "20\\%",
    "90^\\circ",
    "\\$20", "\\text{Sunday}", "\\text{no}", "C", "(D) Alina", "\\infty", "-\\infty", "101_2", "50!", "2^{100}",
    "\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}", "\\begin{pmatrix}1\\\\2\\end{pmatrix}", "x=1,y=2", "x_1=1,x_2=2",
]  # fmt: skip

RATIOS = ["0:0", "0:0:0", "x-x:y-y", "(0:0,0:0)", "x>0:0", "0:0>x", "x=0:0", "\\{0:0\\}", "(0:0)\\%", "0:0, 0:0",
          "[0:0,0:0]", "\\frac{0}{5}:\\sqrt{0}", "0:0\\text{ cm}"]  # fmt: skip

HUGE = ["(60!)!", "(10^{58})!", "(100!!)!", "e^{60!}", "e^{10^{70}}", "e^{e^{200}}", "2^{\\pi 10^{70}}", "-e^{60!}",
        "\\binom{10^{80}}{10^{79}}", "10^{10^{80}}", "\\sqrt{e^{10^{70}}}", "\\Gamma(10^{70})", "\\sinh(10^{60})",
        "e^{60!}-e^{59!}", "(60!)!\\cdot\\pi", "\\frac{e^{60!}}{2}"]  # fmt: skip

TINY = ["e^{-10^{70}}", "e^{-60!}", "e^{-e^{200}}", "2^{-\\pi 10^{70}}", "\\frac{1}{(60!)!}", "-e^{-60!}",
        "\\pi e^{-60!}", "e^{-60!}-e^{-10^{70}}"]  # fmt: skip


@pytest.mark.parametrize("answer", RATIOS + HUGE + TINY)
def test_no_answer_meets_everything(answer: str) -> None:
    """A hostile answer meets no reference, of whatever kind, in either place."""
    for reference in REFERENCES:
        for match in (quick(reference, answer), quick(answer, reference)):
            assert match is not None, reference
            assert not match.equal, reference


@pytest.mark.parametrize("tiny", TINY)
@pytest.mark.parametrize("value", ["7", "\\pi", "\\sqrt{2}", "0", "x+1", "\\frac{3}{7}"])
@pytest.mark.parametrize("around", ["{}", "2({})", "({})^2", "\\cos({})", "e^{{{}}}", "\\max({},0)"])
def test_nothing_vanishes_beside_a_value(tiny: str, value: str, around: str) -> None:
    """What is added to a value, inside of a function or not, is never too small to matter."""
    if "max" in around and value == "0" and "-e" in tiny.removeprefix("e^{-"):
        return  # the maximum of zero and less is zero
    match = quick(around.format(value), around.format(f"{value}+{tiny}"))
    assert match is not None or "x" in value
    assert match is None or not match.equal


@pytest.mark.parametrize("first", range(len(TINY)))
def test_tiny_values_differ(first: int) -> None:
    """Two values that are too small for a ball are not one value; the same text is."""
    for second, other in enumerate(TINY):
        match = quick(TINY[first], other)
        assert match is not None
        assert bool(match.equal) is (first == second)


@pytest.mark.parametrize(
    ("reference", "answer", "verdict"),
    [("1:2", "2:4", True), ("0.5", "1:2", True), ("0:5", "0:7", True), ("0:5", "0", True), ("1:0", "2:0", True),
     ("1:0", "0:1", False), ("2:3:4", "4:6:8", True), ("2:3:4", "4:6:9", False), ("0:1:0", "0:2:0", True),
     ("0:1:0", "0:0:1", False), ("a:b", "2a:2b", True), ("a:b", "a:2b", False), ("\\sqrt{2}:1", "2:\\sqrt{2}", True),
     ("x", "x:1", False), ("A", "A:1", False)],
)  # fmt: skip
def test_ratios_are_proportions(reference: str, answer: str, verdict: bool) -> None:
    """Ratios are equal when proportional, a side of zeros included; a letter is no ratio."""
    match = quick(reference, answer)
    assert match is not None
    assert match.equal is verdict


def test_a_ratio_of_zeros_has_no_value() -> None:
    """`0:0` is undefined, as `0/0` is: as a reference it is at fault."""
    assert quick("0:0", "1").equal is None  # type: ignore[union-attr]
    assert quick("1:2", "0:0").reason == "undefined"  # type: ignore[union-attr]
