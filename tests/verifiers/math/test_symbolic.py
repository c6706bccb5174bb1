"""The last layer: computer algebra for what the others leave open."""

from __future__ import annotations

import pytest

from rewarden.verifiers.math import compare, quick
from rewarden.verifiers.math.symbolic import warm

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.mark.parametrize(
    ("reference", "answer", "verdict"),
    [("\\frac13", "\\int_0^1 x^2 dx", True), ("\\frac13", "\\int_0^1 x^3 dx", False),
     ("\\frac{\\pi^2}{6}", "\\sum_{n=1}^{\\infty}\\frac{1}{n^2}", True),
     ("1", "\\lim_{x\\to0}\\frac{\\sin x}{x}", True), ("\\int_0^x t dt", "\\frac{x^2}{2}", True)],
)  # fmt: skip
def test_algebra_settles_what_is_left_open(reference: str, answer: str, verdict: bool) -> None:
    """Integrals, infinite sums and limits are for the last layer, which says what it works on."""
    assert quick(reference, answer) is None
    stages: list[str] = []
    match = compare(reference, answer, stage=stages.append)
    assert match.equal is verdict
    assert match.layer == "symbolic"
    assert stages == ["reference", "answer", "compare"]


@pytest.mark.parametrize("answer", ["\\int_0^1 x = 1", "1 \\zzz", "\\sum_{", "\\int"])
def test_the_last_layer_reads_wholly_or_not(answer: str) -> None:
    """What the other parser cannot read either is not right."""
    assert compare("1", answer).equal is False


def test_a_reference_that_no_parser_reads_is_at_fault() -> None:
    """The blame stays with the reference."""
    match = compare("\\zzz{", "1")
    assert (match.equal, match.reason) == (None, "bad_reference")


def test_warming_twice_is_harmless() -> None:
    """Warming pays imports and tables; it changes no verdict."""
    warm()
    warm()
    assert compare("\\frac13", "\\int_0^1 x^2 dx").equal is True
