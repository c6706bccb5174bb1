"""Rewards for length: a gate for one rollout, and a comparison within a group of right answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rewarden.core.extraction import visible
from rewarden.core.reasons import Reason
from rewarden.core.scorer import Prior, Scorer, Unit
from rewarden.core.verdict import Verdict, scored, ungraded


class WithinLength(Scorer):
    """1 where the visible text has at most `limit` characters, else 0. Meant as a gate."""

    name = "within_length"
    reads = ("completion",)

    def __init__(self, limit: int = 4000) -> None:
        self.limit = limit

    def config(self) -> Mapping[str, Any]:
        """What is part of the cache key."""
        return {"limit": self.limit}

    def score(self, rollouts: Sequence[Any], prior: Sequence[Prior]) -> Sequence[Verdict]:
        """One verdict for each rollout."""
        lengths = [len(visible(rollout.completion).text) for rollout in rollouts]
        return [scored(float(length <= self.limit), evidence={"characters": length}) for length in lengths]


class ShortestRight(Scorer):
    """Among the members of a group that earlier parts found right, the shortest gets 1 and the longest `1 - weight`.

    Follows other scorers: `prior` holds what they said. A member that any of them found wrong gets 0, and one that they
    could not grade is not graded here either: a missing reward is passed on, never filled in.
    """

    name = "shortest_right"
    unit = Unit.GROUP
    reads = ("completion",)

    def __init__(self, weight: float = 0.5) -> None:
        if not 0 <= weight < 1:
            raise ValueError(f"weight must lie in [0, 1), not {weight!r}")
        self.weight = weight

    def config(self) -> Mapping[str, Any]:
        """What is part of the cache key."""
        return {"weight": self.weight}

    def score(self, rollouts: Sequence[Any], prior: Sequence[Prior]) -> Sequence[Verdict]:
        """One verdict for each member of one group."""
        lengths = [len(visible(rollout.completion).text) for rollout in rollouts]
        earlier = [_lowest(each) for each in prior]
        right = [length for length, reward in zip(lengths, earlier, strict=True) if reward == 1]
        shortest, longest = min(right, default=0), max(right, default=0)
        verdicts = []
        for length, reward in zip(lengths, earlier, strict=True):
            if reward is None:
                verdicts.append(ungraded(Reason.BAD_REFERENCE, "no earlier part of the recipe has graded this rollout"))
            elif reward < 1:
                verdicts.append(scored(0.0))
            else:
                excess = (length - shortest) / max(1, longest - shortest)
                verdicts.append(scored(1.0 - self.weight * excess, evidence={"characters": length}))
        return verdicts


def _lowest(prior: Prior) -> float | None:
    """The lowest earlier reward; None where one is missing."""
    rewards = [verdict.reward for verdict in prior.values()]
    known = [reward for reward in rewards if reward is not None]
    return min(known) if known and len(known) == len(rewards) else None
