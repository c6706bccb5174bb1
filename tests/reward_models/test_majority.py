"""Majority voting: the label, who votes, and when there is no label."""

from __future__ import annotations

import builtins
import json
import random
from pathlib import Path
from time import process_time
from typing import Any

import pytest
from grading import grade_group
from hypothesis import given
from hypothesis import strategies as st

from rewarden import Engine, Outcome, Reason, Recipe, RecipeError, Rollout, Verdict
from rewarden.core.recipe import Limits
from rewarden.reward_models.pseudo_labels.majority import MajorityScorer
from rewarden.verifiers import math
from rewarden.verifiers.math.scorer import MathScorer


def rewards(verdicts: list[Verdict]) -> list[float | None]:
    """The rewards alone."""
    return [verdict.reward for verdict in verdicts]


def test_the_label_is_the_largest_class() -> None:
    """Agreeing with the most frequent answer is right; classes are of value, not of strings."""
    verdicts = grade_group(MajorityScorer(), ["6", "1/2", "0.5", r"\boxed{\frac{1}{2}}", "6"])
    assert rewards(verdicts) == [0.0, 1.0, 1.0, 1.0, 0.0]
    assert verdicts[0].evidence == {
        "method": "whole_text",
        "extracted": "6",
        "support": 3,
        "share": 0.6,
        "votes": [{"answer": "0.5", "votes": 3}, {"answer": "6", "votes": 2}],
        "label": "0.5",
    }


def test_equivalence_of_words() -> None:
    """With `text`, answers of the same words are one class, and of equal value are not."""
    scorer = MajorityScorer(equivalence="text")
    assert rewards(grade_group(scorer, ["Paris.", "paris", "Rome"])) == [1.0, 1.0, 0.0]
    assert rewards(grade_group(scorer, ["1/2", "0.5"])) == [None, None]


def test_members_without_an_answer_do_not_vote() -> None:
    """Missing, cut and hedged answers are graded as the model's fault, and leave the label alone."""
    verdicts = grade_group(MajorityScorer(), ["", r"\boxed{6", "<think>6", r"\boxed{5} or \boxed{6}", "5", "5", "..."])
    assert rewards(verdicts) == [0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0]
    assert [verdict.reason for verdict in verdicts[:4]] == [
        Reason.EMPTY,
        Reason.TRUNCATED,
        Reason.UNFINISHED_THINKING,
        Reason.SEVERAL_ANSWERS,
    ]
    assert verdicts[0].evidence is not None
    assert verdicts[0].evidence["share"] == pytest.approx(2 / 7)


def test_one_value_in_two_forms_is_one_vote() -> None:
    """Offering the same value twice is no hedge."""
    assert rewards(grade_group(MajorityScorer(), [r"\boxed{0.5} or \boxed{1/2}", "0.5", "6"])) == [1.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("options", "answers"),
    [
        ({}, ["5"]),
        ({}, ["5", "6"]),
        ({}, ["5", "5", "6", "6", "7"]),
        ({}, ["5", "", ""]),
        ({}, ["", "<think>"]),
        ({"min_support": 3}, ["5", "5", "6"]),
        ({"min_share": 0.7}, ["5", "5", "6"]),
        ({"min_share": 0.7}, ["5", "5", ""]),
    ],
)
def test_no_consensus(options: dict[str, Any], answers: list[str]) -> None:
    """A group of one, a tie, and too few votes give no reward to any member, with the reason."""
    for verdict in grade_group(MajorityScorer(**options), answers):
        assert (verdict.outcome, verdict.reward, verdict.reason) == (Outcome.UNGRADED, None, Reason.NO_CONSENSUS)
        assert verdict.evidence is not None
        assert "votes" in verdict.evidence
        assert "label" not in verdict.evidence


def test_thresholds_are_met_when_reached() -> None:
    """`min_support` and `min_share` include their bounds."""
    assert rewards(grade_group(MajorityScorer(min_support=3, min_share=0.75), ["5", "5", "5", "6"])) == [
        1.0,
        1.0,
        1.0,
        0.0,
    ]


answers = st.lists(
    st.sampled_from(["5", "5.0", "10/2", "6", "7", "x", "", r"\boxed{5", "5 or 6"]), min_size=1, max_size=9
)


@given(answers, st.randoms(use_true_random=False))
def test_order_does_not_matter(group: list[str], shuffle: random.Random) -> None:
    """A permutation of the group permutes its verdicts."""
    order = list(range(len(group)))
    shuffle.shuffle(order)
    straight = grade_group(MajorityScorer(), group)
    assert grade_group(MajorityScorer(), [group[i] for i in order]) == [straight[i] for i in order]


@given(answers)
def test_silence_changes_no_reward(group: list[str]) -> None:
    """A further member without an answer changes nobody else's reward."""
    assert rewards(grade_group(MajorityScorer(), [*group, ""]))[:-1] == rewards(grade_group(MajorityScorer(), group))


@given(answers)
def test_the_rewarded_are_a_strict_plurality(group: list[str]) -> None:
    """Where there are rewards, those that get 1 are one class, and each other class is smaller."""
    verdicts = grade_group(MajorityScorer(), group)
    assert len({verdict.graded for verdict in verdicts}) == 1
    if verdicts[0].graded:
        assert verdicts[0].evidence is not None
        first, *others = verdicts[0].evidence["votes"]
        assert rewards(verdicts).count(1.0) == first["votes"] == verdicts[0].evidence["support"] >= 2
        assert all(other["votes"] < first["votes"] for other in others)


def test_evidence_is_bounded() -> None:
    """A large group of long different answers has evidence of a few kilobytes."""
    group = [rf"\boxed{{{'x' * 10_000}{i}}}" for i in range(100)]
    assert all(len(verdict.to_json()) < 4000 for verdict in grade_group(MajorityScorer(), group))


@pytest.mark.parametrize(
    "options",
    [{"min_support": 1}, {"min_support": 2.5}, {"min_share": 1.5}, {"equivalence": "none"}, {"policy": "all"}],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    """One vote is no majority, and misspelt options are errors at once."""
    with pytest.raises(ValueError, match="must"):
        MajorityScorer(**options)


def test_without_the_math_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the extra is missing, `math` says what to install and `text` works: nothing changes silently."""
    real = builtins.__import__

    def fail(name: str, *rest: Any, **more: Any) -> Any:
        if "verifiers.math" in name:
            raise ImportError("no flint")
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", fail)
    with pytest.raises(RecipeError, match=r"rewarden\[math\]"):
        MajorityScorer()
    assert rewards(grade_group(MajorityScorer(equivalence="text"), ["5", "5"])) == [1.0, 1.0]


@pytest.mark.parametrize("error", [ValueError("no"), RecursionError(), MemoryError(), OverflowError("\ud800")])
def test_a_hostile_member_votes_for_nothing(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """An answer for which no key can be made is its member's fault, whatever went wrong; the others vote on."""
    real = math.canonical

    def canonical(answer: str) -> str:
        if "9^" in answer:
            raise error
        return real(answer)

    monkeypatch.setattr(math, "canonical", canonical)
    group = ["5", r"\boxed{9^9}", "5", r"\boxed{9^8} or \boxed{9^7}", r"\boxed{9^9}", r"\boxed{9^9}", "6"]
    verdicts = grade_group(MajorityScorer(), group)
    assert rewards(verdicts) == [1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    assert [verdict.reason for verdict in verdicts[:4]] == [None, Reason.TOO_COMPLEX, None, Reason.SEVERAL_ANSWERS]
    assert [verdict.reason for verdict in grade_group(MajorityScorer(), group[-3:])] == [Reason.NO_CONSENSUS] * 3


def test_a_group_beyond_its_budget_is_nobodys_fault() -> None:
    """The work of a group is done in a worker under the sum of its members' budgets; what is killed has no reward."""
    recipe = Recipe.of("majority").model_copy(update={"limits": Limits(cpu_s=1e-4)})
    with Engine(recipe) as engine:
        slow = [Rollout(completion=rf"\boxed{{{'+'.join(f'sin({i}x)' for i in range(60))}+{k}}}") for k in range(40)]
        verdicts = engine.score([rollout.model_copy(update={"group": "g"}) for rollout in slow])
    assert {(verdict.reward, verdict.outcome) for verdict in verdicts} == {(None, Outcome.UNGRADED)}
    assert Reason.SCORER_ERROR not in {verdict.reason for verdict in verdicts}


def test_the_digest_follows_what_makes_the_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cached verdict is not reused when the math verifier or its libraries change, and words depend on neither."""
    before = MajorityScorer().stamp.digest, MajorityScorer(equivalence="text").stamp.digest
    monkeypatch.setattr(MathScorer, "version", "another")
    changed = MajorityScorer().stamp.digest, MajorityScorer(equivalence="text").stamp.digest
    assert changed[0] != before[0]
    assert changed[1] == before[1]
    assert MajorityScorer().libraries == MathScorer.libraries
    assert MajorityScorer(equivalence="text").libraries == ()


def test_hostile_answers_keep_to_the_budget(shared: Path) -> None:
    """Hostile answers together stay within the budget of their group, so that none of them can take it down."""
    rows = [json.loads(line) for line in (shared / "cases" / "math_hostile.jsonl").read_text().splitlines()]
    grade_group(MajorityScorer(), ["5", "5"])
    started = process_time()
    verdicts = grade_group(MajorityScorer(), [row["completion"] for row in rows])
    assert process_time() - started < 0.25 * len(rows)
    assert len(verdicts) == len(rows)


def test_groups_in_the_engine() -> None:
    """Groups that come interleaved are voted on apart, and the reference is not looked at."""
    rows = [("a", "5"), ("b", "7"), ("a", "5"), ("b", "7"), ("a", "6"), ("b", "8"), (None, "5")]
    rollouts = [Rollout(completion=text, group=group, reference="8") for group, text in rows]
    with Engine(Recipe.of("majority")) as engine:
        assert rewards(engine.score(rollouts)) == [1.0, 1.0, 1.0, 1.0, 0.0, 0.0, None]
