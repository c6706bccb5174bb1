"""What the small verifiers share: references that may be broken, answers that may be missing or several."""

from __future__ import annotations

import pickle
from time import perf_counter
from typing import Any

import orjson
import pytest
from completions import UNITS
from grading import grade
from hypothesis import given
from hypothesis import strategies as st

from rewarden import RecipeError
from rewarden.core import extras
from rewarden.core.reasons import Reason
from rewarden.core.registry import create
from rewarden.core.verdict import Outcome
from rewarden.verifiers.answer import BadReferenceError, shown
from rewarden.verifiers.choice import ChoiceScorer
from rewarden.verifiers.number import NumberScorer
from rewarden.verifiers.text import ExactScorer, TextScorer

SCORERS = [ChoiceScorer(), ExactScorer(), TextScorer(), NumberScorer()]
by_name = pytest.mark.parametrize("scorer", SCORERS, ids=lambda scorer: scorer.name)

BROKEN: list[Any] = [
    None, "", "  \n", [], [""], ["C", None], [None], {}, [[]], [{}], True, False, ["C", True],
    float("nan"), float("inf"), [float("-inf")], 10**5000, [10**5000],
]  # fmt: skip

PROBLEMS = {
    "": Reason.EMPTY,
    " \n ": Reason.EMPTY,
    r"\boxed{}": Reason.EMPTY,
    "<answer> </answer>": Reason.EMPTY,
    "<think>C, that is 5": Reason.UNFINISHED_THINKING,
    r"It is \boxed{5": Reason.TRUNCATED,
    "<answer>5": Reason.TRUNCATED,
    r"\boxed{...}": Reason.NO_ANSWER_FOUND,
}


@by_name
@pytest.mark.parametrize("reference", BROKEN, ids=[str(i) for i in range(len(BROKEN))])
def test_broken_references_are_never_graded(scorer: Any, reference: Any) -> None:
    """A reference that cannot be used gives no reward and says why, whatever the completion is."""
    for completion in ("C", "5", "", "<think>", r"\boxed{C} or \boxed{D}", r"\boxed{"):
        verdict = grade(scorer, completion, reference)
        assert (verdict.outcome, verdict.reward, verdict.reason) == (Outcome.UNGRADED, None, Reason.BAD_REFERENCE)
        assert verdict.explanation


@by_name
@pytest.mark.parametrize(("completion", "reason"), PROBLEMS.items(), ids=repr)
def test_missing_answers_are_the_models_fault(scorer: Any, completion: str, reason: Reason) -> None:
    """A completion without an answer is graded 0, with what is missing as the reason."""
    verdict = grade(scorer, completion, "C" if scorer.name == "choice" else "5")
    assert (verdict.outcome, verdict.reward, verdict.reason) == (Outcome.NO_ANSWER, 0.0, reason)


@by_name
def test_several_answers_are_not_rewarded(scorer: Any) -> None:
    """Offering the right answer among others is wrong, in any order; unless all of them are accepted."""
    right, wrong = ("C", "B") if scorer.name == "choice" else ("5", "6")
    for offer in (rf"\boxed{{{right}}} or \boxed{{{wrong}}}", rf"\boxed{{{wrong}}} or \boxed{{{right}}}"):
        verdict = grade(scorer, offer, right)
        assert (verdict.outcome, verdict.reward, verdict.reason) == (Outcome.INCORRECT, 0.0, Reason.SEVERAL_ANSWERS)
        assert verdict.evidence is not None
        assert set(verdict.evidence["candidates"]) == {right, wrong}
        assert grade(scorer, offer, [right, wrong]).outcome is Outcome.CORRECT


@by_name
def test_chat_messages_count_by_the_last_one(scorer: Any) -> None:
    """A chat completion is graded by its last assistant message, without its thinking."""
    right = "C" if scorer.name == "choice" else "5"
    chat = [
        {"role": "assistant", "content": r"\boxed{6}"},
        {"role": "user", "content": r"\boxed{7}"},
        {"role": "assistant", "content": rf"<think>\boxed{{8}}</think>\boxed{{{right}}}"},
    ]
    assert grade(scorer, chat, right).outcome is Outcome.CORRECT


@by_name
def test_evidence_says_what_and_how(scorer: Any) -> None:
    """Evidence names the extracted answer and the marker that it was found by, and stays small."""
    right = "C" if scorer.name == "choice" else "5"
    verdict = grade(scorer, rf"so \boxed{{{right}}}", right)
    assert verdict.evidence is not None
    assert (verdict.evidence["extracted"], verdict.evidence["method"]) == (right, "boxed")
    for huge in ("x" * 1_000_000, r"\boxed{" + "x" * 1_000_000 + "}", "A or B or " * 100_000):
        assert len(grade(scorer, huge, right).to_json()) < 4000


@by_name
@given(
    completion=st.text(max_size=80),
    marker=st.sampled_from(["{}", r"\boxed{{{}}}", "The answer is {}.", "<answer>{}</answer>"]),
)
def test_any_completion_is_graded(scorer: Any, completion: str, marker: str) -> None:
    """Whatever a model writes, a good reference gets a finite reward."""
    verdict = grade(scorer, marker.format(completion), "C" if scorer.name == "choice" else "5")
    assert verdict.reward in (0.0, 1.0)


@by_name
@given(
    reference=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["answer", "options", "A", "x"]), inner, max_size=3)
        ),
        max_leaves=6,
    )
)
def test_any_reference_gives_a_verdict(scorer: Any, reference: Any) -> None:
    """Whatever JSON value the reference is, the scorer does not raise, and only a bad reference has no reward."""
    verdict = grade(scorer, "C", reference)
    assert verdict.reason is Reason.BAD_REFERENCE if verdict.reward is None else verdict.reward in (0.0, 1.0)


@by_name
def test_scorers_pickle(scorer: Any) -> None:
    """A scorer keeps its configuration and its digest on the way to a worker."""
    copy = pickle.loads(pickle.dumps(scorer))
    assert copy.stamp == scorer.stamp
    assert copy.config() == scorer.config()


@by_name
def test_unknown_policies_are_refused(scorer: Any) -> None:
    """A misspelt option is an error when the scorer is made, not a surprise in the verdicts."""
    with pytest.raises(ValueError, match="policy must be one of"):
        type(scorer)(policy="leniant")


def test_lone_surrogates_can_be_shown() -> None:
    """Text that UTF-8 cannot hold comes out as text that it can."""
    assert orjson.loads(orjson.dumps(shown("a\ud800b"))) == "a?b"
    assert shown("x" * 500) == "x" * 199 + "…"


def test_errors_pickle() -> None:
    """The error for bad references survives the way between processes."""
    assert str(pickle.loads(pickle.dumps(BadReferenceError("why")))) == "why"


@pytest.mark.parametrize(("name", "extra"), [("json_schema", "json.schema"), ("majority", "math"), ("math", "math")])
def test_a_missing_library_is_told_when_the_scorer_is_made(
    monkeypatch: pytest.MonkeyPatch, name: str, extra: str
) -> None:
    """A scorer without what it needs is refused with the command that brings it, before any row is scored."""
    needed = set(create(name).libraries)
    real = extras.installed
    monkeypatch.setattr(extras, "installed", lambda library: None if library in needed else real(library))
    with pytest.raises(RecipeError, match=rf"pip install 'rewarden\[{extra}\]'"):
        create(name)


def test_the_others_need_nothing_more() -> None:
    """Letters, texts, numbers and votes on words work with the base packages."""
    assert [scorer.libraries for scorer in (*SCORERS, create("majority", {"equivalence": "text"}))] == [()] * 5


LONG = sorted(
    {*UNITS, *"`~ \t{}[]()\\\"',.:*_#<>9a", "1,", "1 ", "\\frac{", "5 sevenths ", "so ", "(A) ", "km ", "m/", "\u0301"}
)


@by_name
@pytest.mark.parametrize("run", LONG, ids=repr)
def test_long_runs_are_cheap(scorer: Any, run: str) -> None:
    """Long runs of anything, in answers and in references, cost milliseconds; the test allows seconds."""
    long = run * (100_000 // len(run))
    started = perf_counter()
    for form in ("{}", "5{}", r"\boxed{5}{}", r"\boxed{{}}", "<answer>{}</answer>", "The answer is {}", "C. {}"):
        text = form.replace("{}", long)
        grade(scorer, text, "C" if scorer.name == "choice" else "5 km")
        grade(scorer, "C", text)
    assert perf_counter() - started < 10
