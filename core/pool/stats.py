"""What a pool has done so far, in numbers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class PoolStats:
    """Counters since the pool was made; a snapshot, when it comes from `Pool.stats`."""

    items: int = 0
    """Items that have ended, whatever their fault."""
    faults: Counter[str] = field(default_factory=Counter)
    """Items by fault."""
    chunks: int = 0
    """Messages that carried items to workers."""
    spawned: int = 0
    """Workers started, the first ones included."""
    respawned: int = 0
    """Workers started in place of another."""
    kills: Counter[str] = field(default_factory=Counter)
    """Workers that the pool itself ended, by cause (`Cause`)."""
    crashes: int = 0
    """Workers that died by themselves."""
    outside_kills: int = 0
    """Workers that were killed by somebody else."""
    zygotes: int = 0
    """Zygotes started; more than 1 when one was lost."""
    retries: int = 0
    """Items run again alone, under suspicion."""
    requeued: int = 0
    """Items run again because their worker was lost without a fault of theirs."""
    stolen: int = 0
    """Items taken from behind a long one for an idle worker."""
    cpu_s: float = 0.0
    """Seconds of CPU of items that ended in a worker, or were killed there."""

    def copy(self) -> PoolStats:
        """An independent snapshot."""
        return PoolStats(
            self.items, Counter(self.faults), self.chunks, self.spawned, self.respawned, Counter(self.kills),
            self.crashes, self.outside_kills, self.zygotes, self.retries, self.requeued, self.stolen, self.cpu_s,
        )  # fmt: skip
