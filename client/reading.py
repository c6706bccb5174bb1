"""What a caller gave as rollouts, and what a backend gave as verdicts: checked before anybody relies on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..core.errors import RolloutError
from ..core.rollout import Rollout
from ..core.verdict import Verdict
from ..core.wire import bad_rollout

Rollouts = Iterable[Rollout | Mapping[str, Any]]
"""Rollouts, or plain dicts with their fields."""


def read(rollouts: Rollouts) -> tuple[dict[int, Rollout], dict[int, Verdict]]:
    """The rollouts by row, and the verdicts on the rows that are none."""
    if isinstance(rollouts, (Rollout, Mapping, str, bytes)):
        raise TypeError(f"give a list of rollouts, not one {type(rollouts).__name__}")
    known: dict[int, Rollout] = {}
    bad: dict[int, Verdict] = {}
    for row, value in enumerate(rollouts):
        if isinstance(value, Rollout):
            known[row] = value
            continue
        try:
            known[row] = Rollout.parse(value)
        except RolloutError as error:
            name = value.get("id") if isinstance(value, Mapping) else None
            bad[row] = bad_rollout(str(error), name if isinstance(name, str) else "")
    return known, bad


def fault(rollouts: Sequence[Rollout], verdicts: Sequence[Verdict]) -> str | None:
    """Why these cannot be the verdicts on these rollouts; None when they can. A reward must never be another's."""
    if len(verdicts) != len(rollouts):
        return f"{len(verdicts)} verdicts came for {len(rollouts)} rollouts"
    for row, (rollout, verdict) in enumerate(zip(rollouts, verdicts, strict=True)):
        if rollout.id and verdict.id != rollout.id:
            return f"the verdict at row {row} is on {verdict.id[:100]!r}, but the rollout there is {rollout.id[:100]!r}"
    return None
