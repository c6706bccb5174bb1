"""Grading one pair, or one group, with a scorer, without an engine around it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rewarden.core.rollout import Rollout, view_of
from rewarden.core.scorer import Scorer
from rewarden.core.verdict import Verdict


def grade(scorer: Scorer, completion: Any, reference: Any = None) -> Verdict:
    """The verdict on one completion."""
    (verdict,) = grade_group(scorer, [completion], reference)
    return verdict


def grade_group(scorer: Scorer, completions: Sequence[Any], reference: Any = None) -> list[Verdict]:
    """The verdicts on the members of a group. Each survives a trip through JSON."""
    view = view_of(scorer.reads)
    rollouts = [Rollout(completion=completion, reference=reference) for completion in completions]
    verdicts = scorer.score([view(view.take(rollout)) for rollout in rollouts], [{}] * len(rollouts))
    assert isinstance(verdicts, Sequence)
    for verdict in verdicts:
        assert Verdict.from_dict(verdict.to_dict()) == verdict
        verdict.to_json()
    return list(verdicts)
