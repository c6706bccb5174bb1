r"""Functions with pieces agree only when every piece does, wherever the pieces end."""

from __future__ import annotations

import pytest

from rewarden.verifiers.math import compare, quick

NUMBERS = ["1", "3", "5", "10", "47", "1000", "12345", "0.2", "0.01", "\\pi", "e^{10}", "\\frac{22}{3}", "\\sqrt{300}"]


@pytest.mark.parametrize("a", NUMBERS)
@pytest.mark.parametrize("name", ["x", "t", "k", "\\theta"])
def test_one_piece_is_not_the_function(a: str, name: str) -> None:
    """An absolute value, a root of a square, a maximum or minimum, and the formula of one of its pieces."""
    pairs = [
        (f"|{name}-{a}|", f"{a}-{name}"), (f"|{name}-{a}|", f"{name}-{a}"), (f"|{name}+{a}|", f"{name}+{a}"),
        (f"\\sqrt{{({name}-{a})^2}}", f"{a}-{name}"), (f"\\sqrt{{({name}+{a})^2}}", f"{name}+{a}"),
        (f"|{name}^2-{a}|", f"{a}-{name}^2"), (f"|{name}^2-{a}|", f"{name}^2-{a}"),
        (a, f"\\max({name},{a})"), (name, f"\\min({name},{a})"), (name, f"\\max({name},-{a})"),
        (f"|{name}|+|{name}-{a}|", a), (f"(({name}-{a})^4)^{{\\frac14}}", f"{a}-{name}"),
    ]  # fmt: skip
    for first, second in pairs:
        for match in (quick(first, second), quick(second, first)):
            assert match is not None
            assert match.equal is False, (first, second)


@pytest.mark.parametrize("a", NUMBERS)
def test_two_forms_of_one_function(a: str) -> None:
    """The same function by other formulas is equal, pieces and all."""
    pairs = [
        (f"|x-{a}|", f"|{a}-x|"), (f"|x-{a}|", f"\\sqrt{{(x-{a})^2}}"),
        (f"\\max(x,{a})", f"\\frac{{x+{a}+|x-{a}|}}{{2}}"),
        (f"\\min(x,{a})", f"-\\max(-x,-{a})"), (f"|x-{a}||x+{a}|", f"|x^2-({a})^2|"),
        (f"|2x-{a}|", f"2|x-\\frac{{{a}}}{{2}}|"),
        (f"\\sqrt{{x-{a}}}", f"(x-{a})^{{1/2}}"), (f"|x-y-{a}|", f"|y-x+{a}|"),
    ]  # fmt: skip
    for first, second in pairs:
        match = quick(first, second)
        assert match is not None
        assert match.equal is True, (first, second)


@pytest.mark.parametrize(
    ("reference", "answer", "verdict"),
    [("x", "\\int_0^1 |x| dt", False), ("|x|", "\\int_0^1 |x| dt", True), ("x", "\\lim_{t\\to0}|x|", False),
     ("5-x", "\\int_0^1 |x-5| dt", False), ("x+5", "\\int_0^1 |x+5| dt", False)],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_algebra_looks_at_both_signs(reference: str, answer: str, verdict: bool) -> None:
    """The last layer compares at negative and large values too."""
    assert compare(reference, answer).equal is verdict
