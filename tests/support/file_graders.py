"""Scorers for the tests of files, named by their place: `.../file_graders.py:Quick`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from rewarden.core.reasons import Reason
from rewarden.core.scorer import Prior, Scorer, Unit
from rewarden.core.verdict import Verdict, correct, incorrect, scored, ungraded


class Quick(Scorer):
    """Right when the reference occurs in the completion; ungraded without a reference."""

    name = "quick"

    def grade(self, rollout: Any) -> Verdict:
        """The verdict on one rollout."""
        if rollout.reference is None:
            return ungraded(Reason.BAD_REFERENCE, "there is no reference")
        found = str(rollout.reference) in str(rollout.completion)
        evidence = {"looked_for": str(rollout.reference), "length": len(rollout.completion)}
        return correct(evidence=evidence) if found else incorrect(evidence=evidence)

    def score(self, rollouts: Sequence[Any], prior: Sequence[Prior]) -> Sequence[Verdict]:
        return [self.grade(rollout) for rollout in rollouts]


class Slow(Quick):
    """The same, at a pace that lets a test interrupt it."""

    name = "slow"

    def score(self, rollouts: Sequence[Any], prior: Sequence[Prior]) -> Sequence[Verdict]:
        time.sleep(len(rollouts) * 1e-4)
        return super().score(rollouts, prior)


class Rank(Scorer):
    """The share of the group whose completions are shorter: depends on all members."""

    name = "rank"
    unit = Unit.GROUP
    reads = ("completion",)

    def score(self, rollouts: Sequence[Any], prior: Sequence[Prior]) -> Sequence[Verdict]:
        time.sleep(len(rollouts) * 1e-5)
        lengths = [len(str(rollout.completion)) for rollout in rollouts]
        return [scored(sum(n < length for n in lengths) / len(lengths)) for length in lengths]


class Unprintable(Scorer):
    """Gives evidence that is no JSON for every second rollout."""

    name = "unprintable"
    reads = ("completion",)

    def score(self, rollouts: Sequence[Any], prior: Sequence[Prior]) -> Sequence[Verdict]:
        return [correct(evidence={"what": object() if int(r.completion) % 2 else 1}) for r in rollouts]
