"""Bringing the members of a group together, however they are interleaved in the input."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from .rollout import Rollout
from .spill import Spill


@dataclass(slots=True)
class Group:
    """The rows of one group, in the order in which they came."""

    key: str | None
    rows: list[int] = field(default_factory=list)
    size: int | None = None
    """What its members say; the largest where they differ."""
    since: float = 0.0
    """When its first member came (seconds of the given clock)."""

    @property
    def complete(self) -> bool:
        """Whether nobody is missing. A group that does not say its size is complete when the input ends."""
        return self.size is None or len(self.rows) >= self.size


class Assembler:
    """Holds rollouts until their group is whole; spills to disk beyond `in_memory` rollouts.

    A rollout without a group stands alone. With `wait_s`, a group that has waited longer is given up as it is, and
    members that come later form a new, incomplete group.
    """

    def __init__(
        self,
        *,
        whole_input: bool = False,
        wait_s: float | None = None,
        in_memory: int = 20_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._whole_input = whole_input
        self._wait_s = wait_s
        self._clock = clock
        self._open: dict[str, Group] = {}
        self._held: Spill[Rollout] = Spill(in_memory)

    def add(self, row: int, rollout: Rollout, *, alone: bool = False) -> Group | None:
        """The group that this rollout completes, if it does. `alone`: whatever it says, it needs no others."""
        key = "" if self._whole_input else None if alone else rollout.group_key
        self._held.put(row, rollout, rollout.weight)
        if key is None:
            return Group(None, [row])
        group = self._open.get(key)
        if group is None:
            group = self._open[key] = Group(key, since=self._clock())
        group.rows.append(row)
        if not self._whole_input and rollout.group_size is not None:
            group.size = max(rollout.group_size, group.size or 0)
        if group.size is not None and group.complete:
            return self._open.pop(key)
        return None

    def overdue(self) -> list[Group]:
        """The groups that have waited too long. Groups are in the order of their first members, so this is cheap."""
        late: list[Group] = []
        if self._wait_s is not None:
            limit = self._clock() - self._wait_s
            for key, group in list(self._open.items()):
                if group.since > limit:
                    break
                late.append(self._open.pop(key))
        return late

    def rest(self) -> list[Group]:
        """All that is still open: the input has ended."""
        groups = list(self._open.values())
        self._open.clear()
        return groups

    def take(self, group: Group) -> list[Rollout]:
        """The rollouts of a group, which are held no longer."""
        return [self._held.pop(row) for row in group.rows]

    def close(self) -> None:
        self._held.close()
