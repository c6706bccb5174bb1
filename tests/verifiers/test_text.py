"""Text answers: characters (`exact`) and words (`text`)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from grading import grade
from hypothesis import given
from hypothesis import strategies as st

from rewarden.core.reasons import Reason
from rewarden.core.verdict import Outcome
from rewarden.verifiers.text import ExactScorer, TextScorer, token_f1

FORMS = [
    "{}",
    r"\boxed{{{}}}",
    r"\boxed{{\text{{{}}}}}",
    "<answer>{}</answer>",
    "<think>no: Rome</think>\n{}\n",
    "The answer is {}.",
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("scorer", [ExactScorer(), TextScorer(), TextScorer(metric="f1")], ids=["exact", "text", "f1"])
def test_the_answer_is_found_in_any_dress(scorer: Any, form: str) -> None:
    """A marker holds the answer, and a text without one is the answer."""
    assert grade(scorer, form.format("New York"), "New York").reward == 1.0
    assert grade(scorer, form.format("Rome"), "New York").reward == 0.0


@pytest.mark.parametrize(
    ("options", "completion", "reference", "right"),
    [
        ({}, "Paris", "paris", False),
        ({"case": "fold"}, "STRASSE", "Straße", True),
        ({}, "a  b", "a b", False),
        ({"whitespace": "collapse"}, "a \n b", "a b", True),
        ({}, "cafe\u0301", "café", True),
        ({}, "  Paris\n", "Paris", True),
        ({}, "Room 101", "Room 101", True),
        ({}, "Room 101", "101", False),
        ({}, "42", 42, True),
        ({}, "0.1", 0.1, True),
        ({}, "no", ["yes", "no"], True),
        ({}, r"I say \boxed{no}", "no", True),
        ({"extract": False}, r"I say \boxed{no}", "no", False),
        ({"extract": False}, "<think>x</think> no ", "no", True),
        ({"policy": "strict"}, "no", "no", False),
    ],
)
def test_exact(options: dict[str, Any], completion: str, reference: Any, right: bool) -> None:
    """`exact` compares characters, but for what its options let differ and for canonically equivalent Unicode."""
    assert grade(ExactScorer(**options), completion, reference).reward == float(right)


@pytest.mark.parametrize(
    ("options", "completion", "reference", "right"),
    [
        ({}, "The Eiffel Tower!", "eiffel tower", True),
        ({"articles": "keep"}, "The Eiffel Tower!", "eiffel tower", False),
        ({}, "Tower Eiffel", "Eiffel Tower", False),
        ({}, "3.5", "35", False),
        ({}, "Paris and Rome", "Paris", False),
        ({}, "東京。", "東京", True),
        ({}, "b", ["a a", "b"], True),
    ],
)
def test_text(options: dict[str, Any], completion: str, reference: Any, right: bool) -> None:
    """`text` compares words in order."""
    assert grade(TextScorer(**options), completion, reference).reward == float(right)


def test_nothing_never_equals_nothing() -> None:
    """An answer of punctuation alone is no answer, and a reference of punctuation alone is no reference."""
    verdict = grade(TextScorer(), "***", "Paris")
    assert (verdict.outcome, verdict.reason) == (Outcome.NO_ANSWER, Reason.EMPTY)
    for completion in ("***", "?", "Paris"):
        assert grade(TextScorer(), completion, "?!").reason is Reason.BAD_REFERENCE


def test_f1_is_the_published_number() -> None:
    """Two of three words found, one word too many: precision 2/3, recall 2/3, F1 2/3."""
    verdict = grade(TextScorer(metric="f1"), "red big house", "big red barn")
    assert verdict.outcome is Outcome.PARTIAL
    assert verdict.reward == pytest.approx(2 / 3)
    assert verdict.evidence is not None
    assert verdict.evidence["f1"] == verdict.reward


def test_threshold_makes_f1_right_or_wrong() -> None:
    """With a threshold the reward is 1 at or above it and 0 below."""
    scorer = TextScorer(metric="f1", threshold=2 / 3)
    assert grade(scorer, "red big house", "big red barn").outcome is Outcome.CORRECT
    assert grade(scorer, "red tall house", "big red barn").outcome is Outcome.INCORRECT


def test_listing_everything_does_not_pay() -> None:
    """A list of many guesses has a lower F1 than any single right guess."""
    guesses = " ".join(f"guess{i}" for i in range(50)) + " Paris"
    reward = grade(TextScorer(metric="f1"), guesses, "Paris").reward
    assert reward is not None
    assert reward < 0.05


word_lists = st.lists(st.sampled_from("abcde"), max_size=8)


@given(word_lists, word_lists)
def test_f1_laws(one: list[str], other: list[str]) -> None:
    """F1 is symmetric, in [0, 1], and 1 exactly for the same words in any order."""
    score = token_f1(one, other)
    assert 0 <= score <= 1
    assert score == token_f1(other, one)
    assert (score == 1) is (Counter(one) == Counter(other) and bool(one))


@given(st.text(min_size=1, max_size=40))
def test_a_text_meets_itself(text: str) -> None:
    """Any reference is met by its own text when nothing has to be extracted."""
    exact = ExactScorer(extract=False)
    if text.strip() and not any(mark in text for mark in "<[◁"):
        assert exact.grade(text, exact.read_reference(text)).reward == 1.0


@pytest.mark.parametrize(
    "options", [{"threshold": 0.5}, {"metric": "f1", "threshold": 0}, {"metric": "f1", "threshold": 1.5}]
)
def test_thresholds_that_say_nothing_are_refused(options: dict[str, Any]) -> None:
    """A threshold needs F1, and lies in (0, 1]."""
    with pytest.raises(ValueError, match="threshold"):
        TextScorer(**options)
