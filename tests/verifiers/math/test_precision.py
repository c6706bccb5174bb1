r"""Equality is claimed only where nothing can hide below the precision: terms, digits, arguments, nesting."""

from __future__ import annotations

import pytest

from rewarden.verifiers.math import compare, quick


@pytest.mark.parametrize("n", [10, 20, 40, 60, 100, 300, 900])
def test_functions_do_not_hide_their_arguments(n: int) -> None:
    """Functions that are flat somewhere, at arguments of every size, differ from the value that they approach."""
    pairs = [
        ("1", f"\\tanh({n})"), ("1", f"\\coth({n})"), ("1", f"\\cos(10^{{-{n}}})"), ("1", f"e^{{10^{{-{n}}}}}"),
        ("1", f"2^{{10^{{-{n}}}}}"), ("\\frac{\\pi}{2}", f"\\arctan(10^{{{n}}})"),
        ("\\frac{\\pi}{2}", f"\\arccos(10^{{-{n}}})"),
        (f"\\sinh({n})", f"\\frac{{e^{{{n}}}}}{{2}}"), (f"\\cosh({n})", f"\\frac{{e^{{{n}}}}}{{2}}"),
        (f"\\ln(10^{{{n}}}+1)", f"\\ln(10^{{{n}}})"), (f"\\sqrt{{10^{{{n}}}+1}}", f"\\sqrt{{10^{{{n}}}}}"),
        (f"\\ln({10**n + 1})", f"\\ln({10**n})"), ("\\pi", f"\\pi+10^{{-{n}}}"), ("0", f"\\sin(10^{{-{n}}})"),
        ("\\pi", f"\\pi\\cdot 1.{'0' * n}1"), ("x", f"x+\\sqrt{{2}}\\cdot10^{{-{n}}}"), ("x", f"x\\cos(10^{{-{n}}})"),
        ("1", f"\\sqrt[{n}]{{1+10^{{-{n}}}}}"), ("\\sqrt{2}", f"\\sqrt{{2}}\\tanh({n})"),
    ]  # fmt: skip
    for first, second in pairs:
        for match in (quick(first, second), quick(second, first)):
            assert match is not None
            assert match.equal is False, (first, second)


def test_nesting_does_not_hide_a_value() -> None:
    """Each of many roots brings a value nearer to one; none makes it one."""
    nested = "2"
    for _ in range(40):
        nested = f"\\sqrt[99999]{{{nested}}}"
        match = quick("1", nested)
        assert match is not None
        assert match.equal is False


def test_approximations_are_not_the_limit() -> None:
    """Newton's steps to a root double the digits with each level; no level is the root."""
    step = "1"
    for _ in range(6):
        step = f"\\frac{{1}}{{2}}({step}+\\frac{{2}}{{{step}}})"
        match = quick("\\sqrt{2}", step)
        assert match is not None
        assert not match.equal


@pytest.mark.parametrize(
    ("reference", "answer"),
    [("0", "\\sqrt2\\sqrt3-\\sqrt6"), ("7", "(\\sqrt2\\sqrt3-\\sqrt6)+7"), ("0", "10^{-100}(\\sqrt2\\sqrt3-\\sqrt6)"),
     ("\\sqrt{2}\\cdot10^{300}", "10^{299}\\cdot10\\sqrt2"), ("100!\\sqrt2", "99!\\cdot100\\sqrt2"),
     ("\\cosh 3", "\\frac{e^3+e^{-3}}{2}"), ("2e^{1000}", "e^{1000}+e^{1000}"), ("0", "\\sin\\pi+\\ln 1"),
     ("2", "2+\\sin(|\\pi|)"), ("1", "\\lfloor\\ln e\\rfloor"), ("4", "\\lceil\\pi\\rceil"),
     ("1", "\\lceil\\ln e\\rceil"),
     ("3", "\\lfloor\\sqrt{2}\\sqrt{8}-10^{-50}\\rfloor"), ("\\ln(10^{50})", "50\\ln 10"),
     ("1", "\\tanh(300)\\coth(300)"),
     ("10^{40}", "\\sqrt{10^{80}}"), ("x+y", "\\sqrt{2}\\frac{x+y}{\\sqrt{2}}"), ("\\sqrt{2}", "\\sqrt{2}+\\sin(\\pi)"),
     ("10^{10^{10}}\\sqrt{2}", "\\sqrt{2}\\cdot10^{10^{10}}")],
)  # fmt: skip
def test_equal_values_are_confirmed(reference: str, answer: str) -> None:
    """Cancelled terms, large factors and values on an integer are still equal."""
    match = quick(reference, answer)
    assert match is not None
    assert match.equal is True


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("n", [10, 50, 90, 200])
def test_algebra_does_not_round(n: int) -> None:
    """The last layer evaluates to as many digits as the numbers of a pair need."""
    assert compare("\\frac{\\pi^2}{6}", f"\\sum_{{n=1}}^{{\\infty}}\\frac{{1}}{{n^2}}+10^{{-{n}}}").equal is False
    assert compare("\\frac13", f"\\int_0^1 x^2 dx+10^{{-{n}}}").equal is False
    assert compare("1", f"\\int_0^1 \\tanh({n}) dx").equal is not True
