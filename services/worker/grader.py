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
from ...core.errors import RewardenError, RolloutError
from ...core.reasons import Reason
from ...core.rollout import Rollout
from ...core.verdict import Graded, Trace, ungraded
from ..tracing import tracer
from .tally import Tally

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")

Observer = Callable[[str, Sequence[Rollout], Sequence[Graded]], None]
"""Told of every batch: its recipe, its rollouts, and how each was graded."""

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

_ALONE_S = 60.0
"""How long a batch that has lost a worker waits for the others to end, and these for it, before they go on together."""


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
        self._tally = Tally(ledger)
        self._span = tracer()
        self._lock = threading.Lock()
        self._held: dict[str, _Held] = {}
        self._fewer = threading.Condition(self._lock)
        self._turn = threading.Lock()

    def grade(self, kinds: Sequence[str]) -> bool:
        """Grade the batch of these kinds that is due first. False when there was none.

        One that has lost a worker before is graded alone: if it kills this one too, nothing else is blamed.
        """
        turn = self._turn.acquire(timeout=_ALONE_S)
        try:
            batch = self._ask(self.ledger.take(kinds, self.name))
            if batch is None:
                return False
            with self._lock:
                self.taken_at = time.monotonic()
                self._held[batch.id] = _Held(batch, self.taken_at)
                if batch.losses:
                    self._fewer.wait_for(lambda: len(self._held) == 1, _ALONE_S)
            if batch.losses:
                self._grade_held(batch)
                return True
        finally:
            if turn:
                self._turn.release()
        self._grade_held(batch)
        return True

    @property
    def can_take(self) -> bool:
        """Whether a batch could be taken at once: nobody else is at it, or grades one that has to be alone."""
        return not self._turn.locked()

    def held(self, *, younger_than_s: float | None = None) -> list[str]:
        """The batches under way."""
        now = time.monotonic()
        with self._lock:
            return [
                name for name, held in self._held.items() if younger_than_s is None or now - held.since < younger_than_s
            ]

    def _grade_held(self, batch: Batch) -> None:
        try:
            self._grade(batch)
        finally:
            with self._lock:
                self._held.pop(batch.id, None)
                self._fewer.notify_all()

    def _grade(self, batch: Batch) -> None:
        with self._span(f"grade {batch.recipe}", {b"traceparent": batch.trace.encode()}) as describe:
            describe({"rewarden.batch": batch.id, "rewarden.rollouts": len(batch.members)})
            try:
                rollouts = batch.rollouts
            except RolloutError as error:  # a newer service wrote it
                why = f"this version of Rewarden cannot read the rollout: {error}"
                self._ask(self.ledger.settle(batch, [ungraded(Reason.BAD_ROLLOUT, why)] * len(batch.members)))
                return
            graded = self._score(batch, rollouts)
            fresh = self._ask(self.ledger.settle(batch, [one.verdict for one in graded]))
        self.graded += len(graded)
        if fresh:
            self._ask(self._remember(batch, rollouts, graded))
            for observe in self.observers:
                observe(batch.recipe, rollouts, graded)

    def _score(self, batch: Batch, rollouts: Sequence[Rollout]) -> list[Graded]:
        try:
            return self.engines.score(batch.recipe, rollouts)
        except RewardenError as error:  # the recipe is not here, or not in the version that was asked for
            reason, why = Reason.NO_ROUTE, f"worker {self.name} cannot grade this: {error}"
        except Exception as error:
            log.exception("batch %s of %s could not be graded", batch.id, batch.recipe)
            reason, why = Reason.SCORER_ERROR, f"the engine raised {type(error).__name__}; see the log of {self.name}"
        return [Graded(ungraded(reason, why, id=rollout.id), Trace()) for rollout in rollouts]

    async def _remember(self, batch: Batch, rollouts: Sequence[Rollout], graded: Sequence[Graded]) -> None:
        """For people: what was given up, and the counts."""
        dead = [i for i, one in enumerate(graded) if one.verdict.reason in DEAD]
        if dead:
            await self.ledger.keep_dead(batch, dead, rollouts, [one.verdict for one in graded])
        await self._tally.add(batch.recipe, rollouts, graded)

    def _ask(self, question: Coroutine[Any, Any, Answer]) -> Answer:
        return asyncio.run_coroutine_threadsafe(question, self._loop).result()
