"""What becomes of rollouts that were not graded: the trainer decides, and says so itself if one gets a number."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

from ..core.errors import UngradedError
from ..core.reasons import RETRYABLE_REASONS, Reason
from ..core.rollout import Rollout
from ..core.verdict import Verdict, ungraded
from .batches import groups

OnUngraded = Literal["mask", "retry", "raise", "drop_group"] | float
"""`mask`: reward None. `retry`: try those again that another try may cure, then mask. `raise`: UngradedError.
`drop_group`: the other members of the group become `ungraded: incomplete_group`. A number: that is the reward."""

_WORDS = ("mask", "retry", "raise", "drop_group")


def checked(on_ungraded: OnUngraded) -> OnUngraded:
    """The same; ValueError for what is no policy."""
    number = isinstance(on_ungraded, (int, float)) and not isinstance(on_ungraded, bool)
    if number and math.isfinite(on_ungraded):  # type: ignore[arg-type]  # it is a number
        return on_ungraded
    if on_ungraded not in _WORDS or isinstance(on_ungraded, bool):
        raise ValueError(f"on_ungraded={on_ungraded!r}: give one of {', '.join(_WORDS)}, or a finite number")
    return on_ungraded


def to_reward(verdict: Verdict, on_ungraded: OnUngraded) -> float | None:
    """The reward of a verdict, or what stands for it."""
    if verdict.reward is None and not isinstance(on_ungraded, str):
        return float(on_ungraded)
    return verdict.reward


def curable(verdict: Verdict) -> bool:
    """Whether another try may give a reward."""
    return verdict.reason in RETRYABLE_REASONS


def drop_groups(rollouts: Mapping[int, Rollout], verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Take the reward from every member of a group that has a member without one.

    Those that were ungraded keep their true reason; the others keep their earlier verdict as evidence.
    """
    dropped = list(verdicts)
    for key, rows in groups(rollouts).items():
        failed = [row for row in rows if not verdicts[row].graded]
        if not failed:
            continue
        why = f"{len(failed)} of the {len(rows)} members of its group {key[:100]!r} were not graded"
        for row in rows:
            verdict = verdicts[row]
            if verdict.graded:
                evidence = {"earlier": verdict.to_dict()}
                dropped[row] = ungraded(
                    Reason.INCOMPLETE_GROUP, why, evidence=evidence, id=verdict.id, scorer=verdict.scorer
                )
    return dropped


def refuse(verdicts: Sequence[Verdict]) -> None:
    """Raise an UngradedError with all verdicts where one is ungraded."""
    failed = [(row, verdict) for row, verdict in enumerate(verdicts) if not verdict.graded]
    if failed:
        reasons = Counter(str(verdict.reason) for _, verdict in failed)
        row, first = failed[0]
        raise UngradedError(
            f"{len(failed)} of {len(verdicts)} rollouts were not graded "
            f"({', '.join(f'{count} {reason}' for reason, count in reasons.most_common(3))}); "
            f"the first is row {row}: {first.explanation[:200] or first.reason}",
            verdicts,
        )
