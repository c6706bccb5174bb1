"""Taking batches from the ledger, grading them, and settling them: what a worker does."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ...client.queue.ledger import Batch, Ledger
from ...core.engines import Engines
from ...core.errors import RewardenError
from ...core.reasons import Reason
from ...core.rollout import Rollout
from ...core.verdict import Graded, Trace, ungraded

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")

Observer = Callable[[str, Sequence[Rollout], Sequence[Graded], float], None]
"""Told of every batch: its recipe, its rollouts, how each was graded, and the seconds it took."""

DEAD = frozenset(
    {
        Reason.WORKER_LOST,
        Reason.SANDBOX_ERROR,
        Reason.JUDGE_FAILED,
        Reason.BACKEND_UNAVAILABLE,
        Reason.SCORER_ERROR,
    }
)
"""What a person should look at: kept as dead letters."""


@dataclass(slots=True)
class _Held:
    batch: Batch
    since: float


class Grader:
    """Grades batches from any thread. All that it asks of Redis runs on `loop`, which is another thread's."""

    def __init__(self, ledger: Ledger, engines: Engines, loop: asyncio.AbstractEventLoop, name: str) -> None:
        self.ledger = ledger
        self.engines = engines
        self.name = name
        self.observers: list[Observer] = []
        self.graded = 0
        """Rollouts so far."""
        self.taken_at = time.monotonic()
        """When a batch was last taken."""
        self._loop = loop
        self._lock = threading.Lock()
        self._held: dict[str, _Held] = {}

    def grade(self, kinds: Sequence[str]) -> bool:
        """Grade the batch of these kinds that is due first. False when there was none."""
        batch = self._ask(self.ledger.take(kinds, self.name))
        if batch is None:
            return False
        with self._lock:
            self.taken_at = time.monotonic()
            self._held[batch.id] = _Held(batch, self.taken_at)
        try:
            self._grade(batch)
        finally:
            with self._lock:
                self._held.pop(batch.id, None)
        return True

    def held(self, *, younger_than_s: float | None = None) -> list[str]:
        """The batches under way."""
        now = time.monotonic()
        with self._lock:
            return [
                name for name, held in self._held.items() if younger_than_s is None or now - held.since < younger_than_s
            ]

    def _grade(self, batch: Batch) -> None:
        started = time.perf_counter()
        rollouts = batch.rollouts
        try:
            graded = self.engines.score(batch.recipe, rollouts)
        except RewardenError as error:  # the recipe is not here, or not in the version that was asked for
            why = f"worker {self.name} cannot grade this: {error}"
            graded = [Graded(ungraded(Reason.NO_ROUTE, why, id=rollout.id), Trace()) for rollout in rollouts]
        except Exception as error:
            log.exception("batch %s of %s could not be graded", batch.id, batch.recipe)
            why = f"the engine raised {type(error).__name__}; see the log of worker {self.name}"
            graded = [Graded(ungraded(Reason.SCORER_ERROR, why, id=rollout.id), Trace()) for rollout in rollouts]
        self._ask(self._settle(batch, rollouts, graded))
        self.graded += len(graded)
        seconds = time.perf_counter() - started
        for observe in self.observers:
            observe(batch.recipe, rollouts, graded, seconds)

    async def _settle(self, batch: Batch, rollouts: Sequence[Rollout], graded: Sequence[Graded]) -> None:
        verdicts = [one.verdict for one in graded]
        await self.ledger.settle(batch, verdicts)
        dead = [i for i, verdict in enumerate(verdicts) if verdict.reason in DEAD]
        if dead:
            members = [batch.members[i] for i in dead]
            await self.ledger.keep_dead(batch.recipe, members, [rollouts[i] for i in dead], [verdicts[i] for i in dead])

    def _ask(self, question: Coroutine[Any, Any, Answer]) -> Answer:
        return asyncio.run_coroutine_threadsafe(question, self._loop).result()
