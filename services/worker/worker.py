"""The worker process: Celery takes the wake-up messages, the ledger has the work, the engines grade it."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import threading
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...client.queue.broker import TASK, Waker, celery_app, queue_of
from ...client.queue.connection import connect
from ...client.queue.ledger import Ledger
from ...core.catalog import Catalog
from ...core.engines import Engines
from ...core.errors import ServiceError
from ...core.recipe import Recipe
from ...core.rollout import Rollout
from ...core.verdict import Graded
from .cache import RedisCache
from .grader import Grader, Observer
from .pulse import Pulse

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """What a worker grades, and with what."""

    url: str
    """Of the Redis with the queue."""
    kinds: Sequence[str] = ()
    """Kinds of work; all that are installed when empty."""
    recipes: Mapping[str, Recipe] = field(default_factory=dict)
    """A local user's own, by alias."""
    workers: int | None = None
    """Processes of the pool that grades; one for each core when None."""
    slots: int = 2
    """Batches under way at once: one grades in the pool while the other is read, checked and written."""
    name: str = ""
    """Made of host and process when empty. No two that live may share one."""
    prefix: str = "rw:"
    lease_s: float = 10.0
    metrics: tuple[str, int] | None = None
    """Address and port where Prometheus may read; nowhere when None."""
    share_verdicts: bool = True
    """Whether verdicts are remembered in Redis for other workers."""


def run(settings: WorkerSettings) -> None:
    """Work until a signal says to stop; then finish what is under way, within reason, and give the rest back."""
    catalog = Catalog(settings.recipes, only=settings.kinds)
    all_kinds = {kind for name in catalog.names() for kind in catalog.kinds(name)}
    kinds = sorted(all_kinds & catalog.only if catalog.only else all_kinds)
    name = settings.name or f"{socket.gethostname()}-{os.getpid()}"
    loop = _Loop()
    ledger = loop.run(_ledger(settings))
    waker = Waker(settings.url, prefix=settings.prefix)
    cache = RedisCache(settings.url, prefix=settings.prefix) if settings.share_verdicts else None
    with Engines(catalog, workers=settings.workers, cache=cache or "memory") as engines:
        engines.warm()
        grader = Grader(ledger, engines, loop.loop, name)
        if settings.metrics is not None:
            grader.observers.append(_metrics(settings.metrics, engines))
        pulse = Pulse(grader, waker, kinds, settings.slots)
        beating = loop.start(pulse.beat_for_ever())
        log.info("worker %s grades %s", name, ", ".join(kinds))
        try:
            _work(settings, grader, kinds, name)
        finally:
            beating.cancel()
            try:
                loop.run(ledger.leave(name))
            except Exception as error:  # noqa: BLE001 - its leases end by themselves
                log.warning("the queue could not be told that %s ends: %s", name, error)
    waker.close()
    if cache is not None:
        cache.close()
    loop.run(ledger.close())
    loop.close()


def _work(settings: WorkerSettings, grader: Grader, kinds: Sequence[str], name: str) -> None:
    """Listen for messages until stopped."""
    import celery.exceptions
    import celery.signals

    app = celery_app(settings.url, prefix=settings.prefix)

    def grade(_: str) -> None:
        # Whoever is awake takes what is due, of any kind, until nothing is: messages cost more than small batches.
        while not stopping.is_set() and grader.grade(kinds):
            pass

    def stop(**_: Any) -> None:
        stopping.set()

    stopping = threading.Event()
    celery.signals.worker_shutting_down.connect(stop, weak=False)
    app.task(grade, name=TASK, ignore_result=True)
    # Only JSON is accepted, so what Celery says of root does not hold.
    warnings.filterwarnings("ignore", category=celery.exceptions.SecurityWarning)
    app.Worker(
        hostname=name,
        pool="threads",
        concurrency=settings.slots,
        queues=[queue_of(kind) for kind in kinds],
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
        loglevel="WARNING",
        quiet=True,
    ).start()


def _metrics(address: tuple[str, int], engines: Engines) -> Observer:
    """Serve metrics; the result is told of every batch. Raises ServiceError where nobody can listen."""
    from prometheus_client import start_http_server

    from ..metrics import Metrics

    metrics = Metrics(engines.catalog, None, lambda: engines.pool_stats)
    host, port = address
    try:
        start_http_server(port, host, registry=metrics.registry)
    except OSError as error:
        raise ServiceError(f"cannot serve metrics on {host}:{port}: {error.strerror}; give another") from None

    def observe(_: str, rollouts: Sequence[Rollout], graded: Sequence[Graded]) -> None:
        metrics.batch(rollouts, graded)

    return observe


async def _ledger(settings: WorkerSettings) -> Ledger:
    return Ledger(connect(settings.url), prefix=settings.prefix, lease_s=settings.lease_s)


class _Loop:
    """An event loop in a thread of its own, for all that is asked of Redis."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="rewarden-queue", daemon=True)
        self._thread.start()

    def start(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def run(self, work: Any) -> Any:
        return self.start(work).result()

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(5)
