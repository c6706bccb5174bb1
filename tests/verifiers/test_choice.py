"""Multiple choice: letters in any dress, and options named by their text."""

from __future__ import annotations

from typing import Any

import pytest
from grading import grade
from hypothesis import given
from hypothesis import strategies as st

from rewarden.core.reasons import Reason
from rewarden.core.verdict import Outcome
from rewarden.verifiers.choice import ChoiceScorer

CITIES = ["London", "Berlin", "Paris"]
BY_TEXT = {"answer": "Paris", "options": CITIES}


@pytest.mark.parametrize(
    "completion",
    ["C", "(C)", "c", "C.", r"\boxed{C}", r"\boxed{\text{(C)}}", "<answer>C</answer>", "The answer is C.", "C. Paris",
     "**Answer: C**", "A is too small and B is too large, so the answer is (C).", "<think>A?</think>C"],
)  # fmt: skip
@pytest.mark.parametrize(
    "reference", ["C", "(C)", "c", " C. ", r"\boxed{C}", "C. Paris", "The answer is C", ["C"], {"answer": "C"}]
)
def test_a_letter_is_a_letter_in_any_dress(completion: str, reference: Any) -> None:
    """The dress of neither side matters."""
    assert grade(ChoiceScorer(), completion, reference).outcome is Outcome.CORRECT
    assert grade(ChoiceScorer(), completion, "D").outcome is Outcome.INCORRECT


@pytest.mark.parametrize(
    "completion",
    [
        "Paris",
        "paris.",
        r"\boxed{Paris}",
        r"\boxed{\text{Paris}}",
        "The answer is Paris.",
        "C",
        "C) Paris",
        "<answer>C. Paris</answer>",
    ],
)
@pytest.mark.parametrize(
    "reference",
    [
        BY_TEXT,
        {"answer": "C", "options": CITIES},
        {"answer": "(C)", "options": {"A": "London", "(B)": "Berlin", "c": "Paris"}},
        {"answer": "C. Paris", "options": CITIES},
        {"answer": ["A", "Paris"], "options": CITIES},
    ],
)
def test_an_options_text_stands_for_its_letter(completion: str, reference: Any) -> None:
    """Where the options are given, their texts name them, in the reference and in the answer."""
    assert grade(ChoiceScorer(), completion, reference).outcome is Outcome.CORRECT


@pytest.mark.parametrize(
    "completion", ["Berlin", "B", r"\boxed{Rome}", "Paris or Berlin, who knows", "E", r"A? No. \boxed{E}"]
)
def test_other_options_are_wrong(completion: str) -> None:
    """Another option, a text that is no option and a letter beyond the options are not rewarded."""
    assert grade(ChoiceScorer(), completion, BY_TEXT).reward == 0.0


@pytest.mark.parametrize(
    "completion",
    ["A, B, C, D", "A or C", r"\boxed{A}, \boxed{C}", r"\boxed{A} or \boxed{C}", "The answer is A or C",
     r"\boxed{C. London}", r"\boxed{Paris} or \boxed{London}"],
)  # fmt: skip
def test_listing_options_is_not_rewarded(completion: str) -> None:
    """Several letters at once, or a letter with the text of another option, is no choice."""
    verdict = grade(ChoiceScorer(), completion, BY_TEXT)
    assert verdict.reward == 0.0
    assert verdict.reason in (Reason.SEVERAL_ANSWERS, Reason.UNREADABLE_ANSWER, Reason.NO_ANSWER_FOUND)


@pytest.mark.parametrize(
    ("reference", "first_index", "letter"),
    [(2, 0, "C"), (2, 1, "B"), ("2", 1, "B"), (2.0, 0, "C"), ({"answer": 0, "options": CITIES}, 0, "A")],
)
def test_indices_count_as_configured(reference: Any, first_index: int, letter: str) -> None:
    """With `first_index` an integer is a place."""
    assert grade(ChoiceScorer(first_index=first_index), letter, reference).outcome is Outcome.CORRECT
    verdict = grade(ChoiceScorer(), letter, reference)
    assert verdict.reason is Reason.BAD_REFERENCE
    assert "first_index" in verdict.explanation


@pytest.mark.parametrize(
    "reference",
    [
        *("Vitamin C", "A cat", "AC", "A, B", "K", "42", "Paris", 1.5, -1, 99, "9" * 5000),
        {"answer": "Rome", "options": CITIES},
        {"answer": "E", "options": CITIES},
        {"options": CITIES},
        *({"answer": "C", "options": options} for options in ([], "ABC", [None] * 3, [""] * 3, ["x"] * 11)),
        *({"answer": "C", "options": options} for options in ({"A": "x", "a": "y"}, {"1": "x"}, {"AB": "x"})),
        {"answer": "C", "choices": CITIES},
    ],
)
def test_references_that_name_no_option_are_refused(reference: Any) -> None:
    """A reference that is not clearly one of the options gives no reward, even to a completion that repeats it."""
    for completion in ("C", str(reference)[:100]):
        verdict = grade(ChoiceScorer(first_index=0), completion, reference)
        assert verdict.reason is Reason.BAD_REFERENCE
        assert verdict.reward is None


def test_options_of_one_text_are_one_answer() -> None:
    """Where two options say the same, choosing either is right."""
    reference = {"answer": "A", "options": ["Paris", "Rome", "Paris."]}
    assert grade(ChoiceScorer(), "C", reference).outcome is Outcome.CORRECT
    assert grade(ChoiceScorer(), "B", reference).outcome is Outcome.INCORRECT


def test_case_counts_where_it_tells_options_apart() -> None:
    """`Mb` and `MB` are two options."""
    reference = {"answer": "MB", "options": ["Mb", "MB"]}
    assert grade(ChoiceScorer(), r"\boxed{MB}", reference).outcome is Outcome.CORRECT
    assert grade(ChoiceScorer(), r"\boxed{Mb}", reference).outcome is Outcome.INCORRECT


def test_brackets_tell_options_apart() -> None:
    """Options that differ by their brackets or signs alone are two options."""
    reference = {"answer": "B", "options": ["(0, 1)", "[0, 1]", "-1", "1"]}
    assert grade(ChoiceScorer(), "[0, 1]", reference).outcome is Outcome.CORRECT
    assert grade(ChoiceScorer(), "(0, 1)", reference).outcome is Outcome.INCORRECT
    assert grade(ChoiceScorer(), "[0,  1].", reference).outcome is Outcome.CORRECT


@pytest.mark.parametrize("form", ["{}", r"\boxed{{{}}}", r"\boxed{{\text{{{}}}}}", "<answer>{}</answer>", "Answer: {}"])
@pytest.mark.parametrize(
    "listing", ["A B C", "(A) (B) (C)", "(A)(B)(C)", "A. B. C.", "A, B, C", "A/B/C", "A & B & C", "A) x B) y C) z"]
)
def test_every_way_to_list_letters_is_not_rewarded(form: str, listing: str) -> None:
    """Letters side by side are several answers, whatever stands between them, and none of them is picked."""
    for gold in "ABC":
        assert grade(ChoiceScorer(), form.format(listing), gold).reward == 0.0, gold


def test_options_that_look_like_lists_are_options() -> None:
    """Where an option's own text is a list of letters, it is that option."""
    reference = {"answer": "D", "options": ["A only", "B only", "C only", "A and B"]}
    assert grade(ChoiceScorer(), r"\boxed{A and B}", reference).outcome is Outcome.CORRECT
    assert grade(ChoiceScorer(), r"\boxed{D. A and B}", reference).outcome is Outcome.CORRECT
    assert grade(ChoiceScorer(), r"\boxed{A only}", reference).outcome is Outcome.INCORRECT


@pytest.mark.parametrize("policy", ["strict", "last_boxed"])
def test_strict_policies_need_a_marker(policy: Any) -> None:
    """Prose chooses nothing under a strict policy, and a box does."""
    scorer = ChoiceScorer(policy=policy)
    assert grade(scorer, "The answer is C", "C").reason is Reason.NO_ANSWER_FOUND
    assert grade(scorer, r"\boxed{C}", "C").outcome is Outcome.CORRECT
    assert grade(scorer, r"\boxed{42}", "C").reason is Reason.UNREADABLE_ANSWER


@pytest.mark.parametrize(
    "options", [{"letters": "A"}, {"letters": "AA"}, {"letters": "A1"}, {"letters": ""}, {"first_index": 2}]
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    """A configuration that cannot work is an error at once."""
    with pytest.raises(ValueError, match="must be"):
        ChoiceScorer(**options)


@given(st.sampled_from("ABCDEFGHIJ"), st.sampled_from("ABCDEFGHIJ"))
def test_right_exactly_for_the_same_letter(said: str, gold: str) -> None:
    """Over all letters: rewarded when and only when they are the same."""
    for dress in ("{}", r"\boxed{{{}}}", "({})", "The correct option is {}."):
        assert grade(ChoiceScorer(), dress.format(said), gold).reward == float(said == gold)
