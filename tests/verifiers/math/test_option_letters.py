"""A letter with its option's text is that letter; two letters, or a letter taken back, are none."""

from __future__ import annotations

import pytest

from rewarden.verifiers.math import quick
from rewarden.verifiers.math.words import option_letter

OTHERS = {"A": "B", "B": "C", "C": "D", "D": "A", "E": "B"}


def meets(reference: str, answer: str) -> bool:
    """The verdict in process, with each as the reference."""
    match = quick(reference, answer)
    assert match is not None
    return match.equal is True


@pytest.mark.parametrize("letter", OTHERS)
@pytest.mark.parametrize(
    "spelling",
    ["({}) or ({other})", "{}. or {other}.", "{} Or {other}", "({}) ({other}) (E)",
     "({}) and ({other})", "{}. {other}.",
     "{}) incorrect", "{}. wrong", "({}) is wrong", "({}) is not right", "{}. Not", "{} Not", "{}. No, {other}",
     "{}) {other}) F)", "{}) 5 {other}) 7", "({}) 5 or ({other}) 7", "{}. 5; {other}. 7", "{}. Paris or {other}",
     "({}) Paris / ({other}) Rome", "{}. is ruled out", "{}: cannot be",
     "{}. Paris\n{other}. Rome",
     "\\text{{({}) or ({other})}}", "{} or {other}", "{}, {other}", "{}/{other}"],
)  # fmt: skip
def test_a_hedge_names_no_option(letter: str, spelling: str) -> None:
    """Every way to offer two options, or to reject the one that is named."""
    answer = spelling.format(letter, other=OTHERS[letter])
    assert not meets(letter, answer)
    assert not meets(OTHERS[letter], answer)


@pytest.mark.parametrize("letter", OTHERS)
@pytest.mark.parametrize(
    "spelling",
    ["({}) Alina", "{}. Paris", "{}) 42", "{}: x+1", "{} Cecile", "\\textbf{{({}) }} 7", "({}) \\frac12",
     "{}. None of the above", "{}. Both A and B", "{}. All of these", "{}. point A",
     "{}. it can't be F or G", "{}. Paris, not F", "({}) it cannot be (F)",
     "{}. A = 5",
     "{}. Notre Dame", "{}. No"],
)  # fmt: skip
def test_an_option_with_its_text_is_its_letter(letter: str, spelling: str) -> None:
    """The text beside the letter is of no account."""
    assert meets(letter, spelling.format(letter))


@pytest.mark.parametrize("text", ["x", "5", "ab", "", "Apple", "A", "(1, 2)", "I think", "A+B", "A B C"])
def test_no_letter_is_made_up(text: str) -> None:
    """What is not a letter beside a text has none."""
    assert option_letter(text) is None
