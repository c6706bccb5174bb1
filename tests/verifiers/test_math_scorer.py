"""The math verifier as a scorer: extraction, comparison, blame and evidence together, through the engine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rewarden import Engine, Outcome, Reason, RecipeError, Rollout, Verdict
from rewarden.core.registry import create
from rewarden.testing import check_scorer


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    """One engine for all, so that its workers start once."""
    with Engine("math", workers=2, cache=None) as made:
        yield made


def grade(engine: Engine, completion: Any, reference: Any) -> Verdict:
    """One verdict."""
    return engine.score([Rollout(completion=completion, reference=reference)])[0]


def test_it_conforms() -> None:
    """The contract of scorers holds, for right, wrong, missing and hostile answers."""
    pairs = [
        ("So \\boxed{1/2}", "0.5"),
        ("\\boxed{3}", "4"),
        ("no idea", "4"),
        ("\\boxed{\\int_0^1 x dx}", "1/2"),
        ("\\boxed{1} or \\boxed{2}", "1"),
    ]
    check_scorer(create("math"), [Rollout(id=str(i), completion=c, reference=r) for i, (c, r) in enumerate(pairs)])


@pytest.mark.parametrize(
    "reference", [None, "", " ", [], {}, {"answer": "5"}, float("nan"), True, ["5", ""], "\\frac{1}{0}"]
)
@pytest.mark.parametrize("completion", ["\\boxed{5}", "", "\\boxed{5} or \\boxed{6}", "<think>5"])
def test_a_broken_reference_is_never_graded(engine: Engine, completion: str, reference: Any) -> None:
    """Whatever the completion says, even nothing at all, a reference that cannot be used is reported as such."""
    verdict = grade(engine, completion, reference)
    assert (verdict.reward, verdict.reason) == (None, Reason.BAD_REFERENCE)


@pytest.mark.parametrize(
    ("completion", "reason"),
    [
        ("", Reason.EMPTY),
        ("\\boxed{}", Reason.EMPTY),
        ("<think>it is \\boxed{5}", Reason.UNFINISHED_THINKING),
        ("so \\boxed{5", Reason.TRUNCATED),
        (
            "I have thought about it for a long time, from every side, and I still do not know the answer. " * 3,
            Reason.NO_ANSWER_FOUND,
        ),
        ([{"role": "assistant", "content": None, "reasoning_content": "\\boxed{5}"}], Reason.UNFINISHED_THINKING),
    ],
)
def test_no_answer_says_why(engine: Engine, completion: Any, reason: Reason) -> None:
    """A completion without an answer is graded as wrong, with its own fault as the reason."""
    verdict = grade(engine, completion, "5")
    assert (verdict.outcome, verdict.reward, verdict.reason) == (Outcome.NO_ANSWER, 0.0, reason)


@pytest.mark.parametrize(
    ("completion", "reference", "right"),
    [
        ("\\boxed{5}", ["4", "5"], True),
        ("\\boxed{6}", ["4", "5"], False),
        ("\\boxed{5}", 5, True),
        ("\\boxed{0.5}", 0.5, True),
        ("\\boxed{1/2} or \\boxed{0.5}", "1/2", True),
        ("\\boxed{2} or \\boxed{-5}", "a = -5 \\text{ or } a = 2", True),
        ("\\boxed{2} or \\boxed{5}", "2", False),
        ("It cannot be A, so I think it's B", "B", True),
        ("It cannot be A, so I think it's B", "A", False),
        ("it must be 4", "We add 2 and 2.\n\nSo the sum is $2+2=\\boxed{4}$.", True),
    ],
)
def test_references_of_every_kind(engine: Engine, completion: str, reference: Any, right: bool) -> None:
    """Numbers, lists of accepted answers, several values and whole solutions are references."""
    assert grade(engine, completion, reference).reward == float(right)


def test_several_answers_are_a_hack(engine: Engine) -> None:
    """Offering alternatives of which one is right is wrong, and the evidence shows them."""
    verdict = grade(engine, "\\boxed{5} or \\boxed{6} or \\boxed{7}", "6")
    assert (verdict.outcome, verdict.reason) == (Outcome.INCORRECT, Reason.SEVERAL_ANSWERS)
    assert verdict.evidence is not None
    assert verdict.evidence["candidates"] == ["5", "6", "7"]


def test_evidence_says_what_was_compared_and_how(engine: Engine) -> None:
    """The extracted answer, the marker that it was found by, and the layer that decided."""
    verdict = grade(engine, "...so \\boxed{\\tfrac{2}{4}}.", "0.5")
    assert verdict.evidence == {"method": "boxed", "extracted": "\\tfrac{2}{4}", "layer": "rational"}


def test_options_change_the_verdict_and_the_stamp() -> None:
    """A policy is named, applied, and part of what a client can pin."""
    rollout = [Rollout(completion="\\boxed{3.1416}", reference="3.14159265")]
    with Engine("math") as strict:
        assert strict.score(rollout)[0].reward == 0.0
    from rewarden import Recipe

    with Engine(Recipe.of("math", relative_tolerance=1e-4)) as tolerant:
        assert tolerant.score(rollout)[0].reward == 1.0
    assert create("math").stamp.digest != create("math", {"relative_tolerance": 1e-4}).stamp.digest
    with pytest.raises(RecipeError, match="unknown options"):
        create("math", {"tolerence": 1})
    with pytest.raises(RecipeError, match="policy"):
        create("math", {"policy": "generous"})


def test_blame_follows_the_stage() -> None:
    """What the answer makes too dear is wrong; what the reference makes too dear is ungraded."""
    from rewarden.core.pool import Fault, Report

    scorer = create("math")
    rollout = Rollout(completion="\\boxed{x}", reference="y")
    for fault in (Fault.CPU, Fault.MEMORY):
        for stage, reason in (
            ("compare", Reason.TOO_COMPLEX),
            ("answer", Reason.TOO_COMPLEX),
            ("reference", Reason.BAD_REFERENCE),
        ):
            assert scorer.on_fault(rollout, Report(None, fault, "", stage, 1.0, 1.0, 1)).reason is reason
    assert scorer.on_fault(rollout, Report(None, Fault.DEADLINE, "", "compare", 0.1, 5.0, 2)).reward is None


def test_hostile_answers_are_settled_and_spare_their_neighbours(engine: Engine, shared: Path) -> None:
    """Every handed hostile row gets an allowed outcome, most in the caller, and other rows keep their verdicts."""
    rows = [json.loads(line) for line in (shared / "cases/math_hostile.jsonl").read_text().splitlines()]
    easy = [Rollout(completion=f"\\boxed{{{n}}}", reference=str(n - n % 2)) for n in range(200)]
    hostile = [Rollout(completion=row["completion"], reference=row["reference"]) for row in rows]
    mixed = [
        rollout
        for i, rollout in enumerate(easy)
        for rollout in ([rollout, hostile[i // 4]] if i % 4 == 0 and i // 4 < len(hostile) else [rollout])
    ]
    alone = {id(rollout): verdict for rollout, verdict in zip(easy, engine.score(easy), strict=True)}
    for rollout, verdict in zip(mixed, engine.score(mixed), strict=True):
        if id(rollout) in alone:
            assert verdict == alone[id(rollout)]
        else:
            assert verdict.outcome in rows[hostile.index(rollout)]["expected"]
    scorer = create("math")
    assert sum(scorer.quick(rollout) is not None for rollout in hostile) >= 30
