"""What waits for a worker, and how much of it a worker gets at once.

Batches take turns, so that one item behind a million is not last. The size of a chunk follows what items of that
handler have cost lately: big enough that messages cost little, small enough that a worker's death costs little and that
the last chunks end together. Items under suspicion wait apart: each is given to a fresh worker, alone.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from .batch import Batch

CHUNK_NS: Final = 15_000_000
"""Work in one chunk."""
CHUNK_ITEMS: Final = 64
CHUNK_BYTES: Final = 1 << 18
DEPTH_NS: Final = 50_000_000
"""Work that a worker should hold at least, the present chunk included."""
DEPTH_ITEMS: Final = 1024
_SMOOTHING: Final = 0.3
_KNOWN_COSTS: Final = 256


class Queue:
    """All items that no worker has, and what their handlers cost."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._batches: deque[Batch] = deque()
        self.suspects: deque[tuple[Batch, int]] = deque()
        self._costs: dict[bytes, float] = {}

    def add(self, batch: Batch) -> None:
        """A new batch, with all its `todo`."""
        if batch.ledger.todo:
            self._batches.append(batch)

    def put_back(self, batch: Batch, index: int) -> None:
        """An item that a worker has lost through no fault of its own; it goes first."""
        if batch.outcomes[index] is None:
            if not batch.ledger.todo and batch not in self._batches:
                self._batches.appendleft(batch)
            batch.ledger.todo.appendleft(index)

    def suspect(self, batch: Batch, index: int) -> None:
        """An item to run alone."""
        self.suspects.append((batch, index))

    def drop(self, batch: Batch) -> None:
        """Forget what waits of a batch."""
        batch.ledger.todo.clear()
        if batch in self._batches:
            self._batches.remove(batch)
        self.suspects = deque(entry for entry in self.suspects if entry[0] is not batch)

    def learn(self, digest: bytes, mean_ns: float) -> None:
        """What items of a handler have cost just now."""
        known = self._costs.pop(digest, None)
        self._costs[digest] = mean_ns if known is None else known + _SMOOTHING * (mean_ns - known)
        if len(self._costs) > _KNOWN_COSTS:
            del self._costs[next(iter(self._costs))]

    def cost_ns(self, batch: Batch) -> float | None:
        """The expected cost of one item; None when nothing is known."""
        return self._costs.get(batch.ledger.work.digest)

    @property
    def waiting(self) -> bool:
        """Whether ordinary items wait."""
        while self._batches and not self._batches[0].ledger.todo:
            self._batches.popleft()
        return bool(self._batches)

    def next_suspect(self) -> tuple[Batch, int] | None:
        """The next item to run alone."""
        while self.suspects:
            batch, index = self.suspects.popleft()
            if batch.outcomes[index] is None:
                return batch, index
        return None

    def next_chunk(self, at_least_ns: float, at_most: int) -> tuple[Batch, list[int]] | None:
        """The next items for one worker; `at_least_ns` asks for larger chunks while the dispatcher itself is slow."""
        while self.waiting:
            batch = self._batches.popleft()
            ledger = batch.ledger
            todo = ledger.todo
            cost = self.cost_ns(batch)
            most = 1 if cost is None else int(max(CHUNK_NS, at_least_ns) / max(cost, 1.0))
            # Towards the end chunks shrink, so that no worker is left with a long one.
            most = max(1, min(most, at_most, CHUNK_ITEMS, -(-len(todo) // (2 * self._workers))))
            indices: list[int] = []
            size = 0
            while todo and len(indices) < most and size < CHUNK_BYTES:
                index = todo.popleft()
                if batch.outcomes[index] is None:
                    indices.append(index)
                    size += len(ledger.payloads[index])
            if todo:
                self._batches.append(batch)
            if indices:
                return batch, indices
        return None
