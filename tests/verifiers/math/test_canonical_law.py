"""Equal keys are equal answers: the law of `canonical`, over all pairs of a table of near misses."""

from __future__ import annotations

import itertools

import pytest

from rewarden.verifiers.math import canonical, quick

GROUPS = {
    "pieces": [
        "|x-5|",
        "5-x",
        "x-5",
        "|x+5|",
        "x+5",
        "\\sqrt{(x-4)^2}",
        "4-x",
        "\\max(x,5)",
        "5",
        "\\min(x,10)",
        "x",
        "|x^2-9|",
        "9-x^2",
        "\\max(x,-7)",
        "|x|",
        "\\sqrt{x^2}",
    ],
    "huge and tiny": [
        "e^{-10^{70}}",
        "e^{-60!}",
        "0",
        "7+e^{-60!}",
        "7",
        "e^{60!}",
        "(60!)!",
        "e^{e^{200}}",
        "1",
        "\\tanh(100)",
        "\\cos(10^{-40})",
        "e^{10^{-60}}",
        "\\arctan(10^{60})",
        "\\frac{\\pi}{2}",
        "0:0",
        "0:0:0",
    ],
    "statements": [
        "x=5",
        "|x|=5",
        "\\sin x=5",
        "\\lfloor x\\rfloor=5",
        "5",
        "y=5",
        "|y|=5",
        "S=5",
        "f(x)=5",
        "f'(x)=5",
        "x\\equiv 5\\pmod 7",
        "x\\equiv 5\\pmod 8",
        "5\\pmod 7",
        "5\\pmod 8",
        "12\\pmod 7",
        "7\\approx 8",
        "7",
    ],
    "systems": [
        "x=1,y=2",
        "y=1,x=2",
        "x=1 or y=2",
        "(1,2)",
        "(2,1)",
        "1,2",
        "1 or 2",
        "b=1,a=2",
        "x_1=1,x_2=2",
        "1:2",
        "1:0",
    ],
    "marks": [
        "0.5",
        "0.5\\%",
        "50\\%",
        "50",
        "5",
        "5^\\circ",
        "5\\text{ kg}",
        "\\$5",
        "5\\text{ apples}",
        "5\\%",
        "0.05",
        "5\\%\\%",
        "5 squared",
        "5 score",
        "\\cancel{5}",
        "0.005",
        "1\\%",
        "1",
        "100\\%",
    ],
    "letters": [
        "AB",
        "ab",
        "PV",
        "pv",
        "Rr",
        "RR",
        "sin A",
        "sin a",
        "log n",
        "log N",
        "A",
        "a",
        "f",
        "f'",
        "(x^2)'",
        "x^2",
        "(A) Paris",
        "A. Paris or B",
        "C. or D.",
        "C",
    ],
}


def left_out(text: str) -> bool:
    r"""Whether a mark may be left out of an answer: `5^\circ` and `\$5` share the key of the 5 that each meets."""
    return any(quick(number, text).equal for number in ("5", "50", "1"))  # type: ignore[union-attr]


@pytest.mark.parametrize("group", GROUPS)
def test_equal_keys_are_equal_answers(group: str) -> None:
    """No two answers of a table share a key unless they meet each other."""
    for first, second in itertools.combinations(GROUPS[group], 2):
        if canonical(first) == canonical(second) and not (group == "marks" and left_out(first) and left_out(second)):
            for match in (quick(first, second), quick(second, first)):
                assert match is not None
                assert match.equal is not False or match.reason is not None, (first, second)


def test_sign_and_shape_still_share_a_key() -> None:
    """Marks that may be left out, and other forms of a value, have its key."""
    for first, second in (("20\\%", "20"), ("\\$20", "20"), ("x=5", "5"), ("90^\\circ", "90"), ("|x-5|", "|5-x|")):
        assert canonical(first) == canonical(second)
