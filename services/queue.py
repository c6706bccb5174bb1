"""The service's side of the queue: the ledger behind its job routes, what it shows of it, and who keeps it in order."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..client.loop import end
from ..client.queue.broker import Waker
from ..client.queue.connection import connect, redacted
from ..client.queue.ledger import Depths, Ledger
from ..client.queue.transport import QueueTransport
from .embedded import EmbeddedQueue, default_folder
from .problems import Problem
from .worker.pulse import reconcile
from .worker.tally import Tally

if TYPE_CHECKING:
    from prometheus_client import Metric

    from .service import Service

log = logging.getLogger(__name__)

_LOOK_S = 1.0
"""How often the ledger is looked at."""

_READY_S = 5.0
"""A queue that has not answered for so long is away."""


class Queue:
    """The queue as a service sees it. `transport` belongs to the event loop that opened it."""

    def __init__(self, url: str, service: Service, embedded: EmbeddedQueue | None = None) -> None:
        self.url = url
        self._embedded = embedded
        self.transport = QueueTransport(url, catalog=service.catalog, keep_s=service.settings.keep_s)
        self.ledger: Ledger = self.transport.ledger
        self.depths: Depths | None = None
        """As of the last look."""
        self.workers: dict[str, dict[str, Any]] = {}
        self.graded: dict[str, Any] = {}
        """What the workers have graded, as `Tally.read` gives it."""
        self._tally = Tally(self.ledger)
        self._most_batches = service.settings.max_queued_batches
        self._waker = Waker(url)
        self._seen = 0.0
        self._watch = asyncio.create_task(self._look_for_ever())

    @property
    def reachable(self) -> bool:
        """Whether the ledger has answered of late, and our own worker, if we have one, has not ended for good."""
        answers = time.monotonic() - self._seen < _READY_S
        return answers and (self._embedded is None or self._embedded.alive)

    async def _look_for_ever(self) -> None:
        """Look at the ledger, and put right what is overdue: deadlines pass also where no worker lives."""
        while True:
            try:
                await reconcile(self.ledger, self._waker)
                self.depths = await self.ledger.depths()
                self.workers = await self.ledger.workers()
                self.graded = await self._tally.read()
                self._seen = time.monotonic()
            except Exception as error:  # noqa: BLE001 - it may be back in a second
                log.warning(
                    "the queue at %s cannot be reached: %s: %s", redacted(self.url), type(error).__name__, error
                )
            await asyncio.sleep(_LOOK_S)

    def check_room(self) -> None:
        """Raise the Problem of a queue that is full: work comes in faster than the workers that live can do it."""
        depths = self.depths
        if depths is None:
            return
        waiting = sum(depth.batches for depth in depths.kinds.values())
        if waiting >= self._most_batches:
            oldest = max(depth.age_s for depth in depths.kinds.values())
            seconds = max(1, min(60, math.ceil(oldest)))
            detail = f"{waiting:,} batches wait in the queue, the oldest for {oldest:.0f} s; try again in {seconds} s"
            raise Problem("busy", detail, headers={"Retry-After": str(seconds)})

    def status(self) -> dict[str, Any]:
        """For GET /v1/status."""
        depths = self.depths
        return {
            "reachable": self.reachable,
            "kinds": {
                kind: {"batches": depth.batches, "age_s": round(depth.age_s, 3)}
                for kind, depth in (depths.kinds if depths is not None else {}).items()
            },
            "leased": depths.leased if depths is not None else 0,
            "open_groups": depths.open_groups if depths is not None else 0,
            "jobs": depths.jobs if depths is not None else 0,
            "dead_letters": depths.dead if depths is not None else 0,
            "workers": [{"name": name, **about} for name, about in self.workers.items()],
            "graded": self.graded,
        }

    def collect(self) -> Iterable[Metric]:
        """For the registry of metrics."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        status = self.status()
        yield GaugeMetricFamily("rewarden_queue_up", "Whether the queue answers.", value=float(status["reachable"]))
        depth = GaugeMetricFamily("rewarden_queue_batches", "Batches that wait for a worker.", labels=["kind"])
        age = GaugeMetricFamily("rewarden_queue_age_seconds", "Age of the oldest batch that waits.", labels=["kind"])
        for kind, one in status["kinds"].items():
            depth.add_metric([kind], one["batches"])
            age.add_metric([kind], one["age_s"])
        yield from (depth, age)
        for name, what in (
            ("leased", "Batches that a worker has."),
            ("open_groups", "Groups that wait for members."),
            ("jobs", "Jobs that are not done."),
            ("dead_letters", "Rollouts that were given up, kept for a person."),
        ):
            yield GaugeMetricFamily(f"rewarden_queue_{name}", what, value=status[name])
        verdicts = CounterMetricFamily(
            "rewarden_queue_verdicts", "Verdicts given by the workers.", labels=["scorer", "outcome"]
        )
        for scorer, outcomes in self.graded.get("scorers", {}).items():
            for outcome, number in outcomes.items():
                verdicts.add_metric([scorer, outcome], number)
        reasons = CounterMetricFamily(
            "rewarden_queue_ungraded", "Rollouts that the workers could not grade.", labels=["reason"]
        )
        for reason, number in self.graded.get("reasons", {}).items():
            reasons.add_metric([reason], number)
        yield from (verdicts, reasons)
        groups = self.graded.get("groups", {})
        yield CounterMetricFamily("rewarden_queue_groups", "Groups that workers saw.", value=groups.get("seen", 0))
        yield CounterMetricFamily(
            "rewarden_queue_groups_touched",
            "Groups that workers saw with a member that was not graded.",
            value=groups.get("touched", 0),
        )
        yield GaugeMetricFamily("rewarden_queue_workers", "Workers that live.", value=len(status["workers"]))

    async def close(self) -> None:
        """Give the connections back."""
        await end({self._watch})
        await asyncio.to_thread(self._waker.close)
        await self.transport.close()


async def open_queue(service: Service) -> Callable[[], Awaitable[None]]:
    """Start or reach the queue of a service, and tell the service of it. The result closes it."""
    settings = service.settings
    url, embedded = settings.queue, None
    assert url is not None
    if url == "embedded":
        folder = Path(settings.queue_dir) if settings.queue_dir is not None else default_folder()
        arguments = [] if settings.workers is None else ["--workers", str(settings.workers)]
        if settings.only:
            arguments += ["--queues", ",".join(settings.only)]
        embedded = EmbeddedQueue(folder, settings.recipes, arguments)
        # Here, before requests are taken, and not in a thread of a pool: the server ends with the thread it is from.
        embedded.start()
        url = embedded.redis.url
    try:
        connect(url)
        queue = Queue(url, service, embedded)
    except BaseException:
        if embedded is not None:
            embedded.stop()
        raise
    service.queue = queue
    service.backends.queue = lambda: QueueTransport(url, catalog=service.catalog)
    service.metrics.registry.register(queue)

    async def close() -> None:
        await queue.close()
        if embedded is not None:
            await asyncio.to_thread(embedded.stop)

    return close
