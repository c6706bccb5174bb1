"""Cutting rollouts into requests: whole groups together, and no request larger than it must be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..core.rollout import Rollout

BATCH_CHARACTERS = 1 << 23
"""What the texts of a batch may add up to, so that long completions do not make a body that a service refuses."""


def batches(rollouts: Mapping[int, Rollout], size: int) -> list[list[int]]:
    """The rows in batches of at most `size`, in order of first members; a group is never cut.

    A group that is larger than a batch is a batch of its own.
    """
    found: list[list[int]] = []
    batch: list[int] = []
    characters = 0
    for unit in _units(rollouts):
        weight = sum(rollouts[row].weight for row in unit)
        if batch and (len(batch) + len(unit) > size or characters + weight > BATCH_CHARACTERS):
            found.append(batch)
            batch, characters = [], 0
        batch += unit
        characters += weight
    if batch:
        found.append(batch)
    return found


def groups(rollouts: Mapping[int, Rollout]) -> dict[str, list[int]]:
    """The rows of each group, without those that stand alone."""
    found: dict[str, list[int]] = {}
    for row, rollout in rollouts.items():
        key = rollout.group_key
        if key is not None:
            found.setdefault(key, []).append(row)
    return found


def _units(rollouts: Mapping[int, Rollout]) -> Iterable[list[int]]:
    """The rows that must stay together, each list at the place of its first."""
    units: dict[str | int, list[int]] = {}
    for row, rollout in rollouts.items():
        key = rollout.group_key
        units.setdefault(row if key is None else key, []).append(row)
    return units.values()
