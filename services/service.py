"""What the routes of a service share: the recipes on offer, who grades them, who may ask, and what has been done."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from ..core.catalog import Catalog
from ..core.engines import Engines
from ..core.errors import PinError, UnknownScorerError
from ..core.verdict import Graded, Verdict
from ..core.wire import Item, Options, RequestError, ScoreOptions, decode_request
from .backends import Backends
from .body import Body
from .grading import Grading
from .keys import KeyRing
from .limits import TICKET, Admission, Ticket
from .logs import Counts, log_slow
from .metrics import Metrics
from .problems import Problem
from .record import Record
from .settings import Settings

if TYPE_CHECKING:
    from .queue import Queue

log = logging.getLogger(__name__)

Result = TypeVar("Result")

COUNTS: ContextVar[Counts | None] = ContextVar("counts", default=None)
"""What the line of the log says of the request that is being answered."""


class Service:
    """One process that serves rewards. The routes reach it as `request.app.state.service`."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.catalog = Catalog(settings.recipes, only=settings.offered)
        self.engines = Engines(self.catalog, workers=settings.workers, cache=settings.cache)
        self.backends = Backends(settings)
        self.keys = KeyRing(settings.keys) if settings.keys is not None else None
        self.admission = Admission(settings)
        self.metrics = Metrics(self.catalog, self.admission, lambda: self.engines.pool_stats)
        self.record = Record(settings.slow_s)
        self.started = time.time()
        self.draining = False
        self.warm = False
        self.queue: Queue | None = None
        """The queue, where there is one."""
        self.threads = ThreadPoolExecutor(settings.threads, thread_name_prefix="rewarden-request")
        self.reading = threading.Lock()
        """Held to read a body or to write an answer: these keep the interpreter to themselves when they are large. One
        at a time, so that the event loop has its turn after each."""
        self._close_queue: Callable[[], Awaitable[None]] | None = None
        self._warming: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Connect to the queue, and begin to start the workers. Opening it again does nothing."""
        if self._warming is not None:
            return
        if self.settings.queue is not None:
            from .queue import open_queue

            self._close_queue = await open_queue(self)
        self._warming = asyncio.create_task(self._warm())

    async def _warm(self) -> None:
        """Make the engines that work here, so that the first request does not wait for them."""
        here = [
            name
            for name in self.catalog.names()
            if any(self.settings.backend_of(kind) is None for kind in self.catalog.kinds(name))
        ]
        if here:
            await asyncio.to_thread(self.engines.warm, here)
        self.warm = True

    def drain(self) -> None:
        """From now on refuse new work; what is under way goes on."""
        self.draining = True

    async def close(self) -> None:
        """Stop everything. Work that is still under way comes back as cancelled."""
        self.draining = True
        if self._warming is not None:
            await asyncio.wait({self._warming}, timeout=10)
        if self._close_queue is not None:
            await self._close_queue()
        await asyncio.to_thread(self.backends.close)
        await asyncio.to_thread(self.engines.close)
        self.threads.shutdown(wait=False, cancel_futures=True)

    def check_recipe(self, recipe: str) -> None:
        """Raise the Problem of a recipe that is not on offer."""
        try:
            self.catalog.recipe(recipe)
        except UnknownScorerError as error:
            raise Problem("unknown_recipe", str(error)) from None
        except PinError as error:
            raise Problem("other_version", str(error)) from None

    def check_size(self, rollouts: int) -> None:
        """Raise the Problem of a request with too many rollouts."""
        most = self.settings.max_rollouts
        if rollouts > most:
            raise Problem("too_many_rollouts", f"{rollouts:,} rollouts in one request; send at most {most:,}")

    def decode(self, body: Body, options: type[Options]) -> tuple[Options, list[Item]]:
        """The options and rollouts of a request, or the Problem with it. Call it off the event loop."""
        try:
            found, items = decode_request(body.unpack(), options)
        except RequestError as error:
            code = "invalid_request" if error.faults else "not_json"
            raise Problem(code, str(error), faults=error.faults) from None
        self.check_size(len(items))
        self.check_recipe(found.recipe)
        return found, items

    def count(self, rollouts: int) -> None:
        """Charge rollouts that are not graded by `work` to the request that is being answered."""
        ticket = TICKET.get()
        if ticket is not None:
            self.admission.count(ticket, rollouts)

    async def score(self, recipe: str, items: Sequence[Item], *, timeout_s: float | None = None) -> list[Verdict]:
        """One verdict for each of `items`, in order. Raises Problem for a recipe that is not on offer."""
        self.check_size(len(items))
        self.check_recipe(recipe)

        def verdicts(graded: Sequence[Graded]) -> list[Verdict]:
            return [one.verdict for one in graded]

        return await self.work(lambda: (ScoreOptions(recipe=recipe, timeout_s=timeout_s), items), verdicts)

    async def work(
        self,
        read: Callable[[], tuple[ScoreOptions, Sequence[Item]]],
        write: Callable[[Sequence[Graded]], Result],
    ) -> Result:
        """Read what to grade, grade it, and write the answer: all in one thread, in one go.

        When the time that was read is over first, the answer is written of what there is by then.
        """
        call = _Call(self, read, write, TICKET.get(), COUNTS.get())
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self.settings.max_timeout_s) as limit:
                call.shorten = _shortener(loop, limit)
                return await loop.run_in_executor(self.threads, call.run)
        except TimeoutError:
            # Not in `threads`: these may be what there was no time to wait for.
            return await asyncio.to_thread(call.stop)

    def recorded(self, recipe: str, items: Sequence[Item], graded: Sequence[Graded], counts: Counts | None) -> None:
        """Count what was graded."""
        numbers = self.metrics.batch(items, graded)
        log_slow(self.record.batch(recipe, items, graded, numbers))
        if counts is not None:
            counts.add(recipe, numbers)


def _shortener(loop: asyncio.AbstractEventLoop, limit: asyncio.Timeout) -> Callable[[float], None]:
    def reschedule(when: float) -> None:
        with contextlib.suppress(RuntimeError):  # it is over already
            limit.reschedule(when)

    def shorten(timeout_s: float) -> None:
        loop.call_soon_threadsafe(reschedule, loop.time() + timeout_s)

    return shorten


@dataclass
class _Call(Generic[Result]):
    """One request in its thread."""

    service: Service
    read: Callable[[], tuple[ScoreOptions, Sequence[Item]]]
    write: Callable[[Sequence[Graded]], Result]
    ticket: Ticket | None
    counts: Counts | None
    shorten: Callable[[float], None] = lambda _: None

    def __post_init__(self) -> None:
        self._deadline = time.monotonic() + self.service.settings.max_timeout_s
        self._grading: Grading | None = None
        self._stopped = False

    def run(self) -> Result:
        """Everything, in order. What is done after a stop is dropped."""
        started = time.monotonic()
        service = self.service
        with service.reading:
            options, items = self.read()
        if self.ticket is not None:
            service.admission.count(self.ticket, len(items))
        if options.timeout_s is not None and started + options.timeout_s < self._deadline:
            self._deadline = started + options.timeout_s
            self.shorten(self._deadline - time.monotonic())
        self._grading = Grading(
            service.engines, service.backends, service.settings.backend_of, options.recipe, items, self._deadline
        )
        graded = self._grading.run()
        if self._stopped:
            raise TimeoutError
        return self._finish(graded)

    def stop(self) -> Result:
        """The answer with what there is."""
        self._stopped = True
        if self._grading is None:
            raise Problem(
                "unavailable", "the time was over before the request was looked at", headers={"Retry-After": "1"}
            )
        return self._finish(self._grading.stop())

    def _finish(self, graded: Sequence[Graded]) -> Result:
        assert self._grading is not None
        self.service.recorded(self._grading.recipe, self._grading.items, graded, self.counts)
        with self.service.reading:
            return self.write(graded)
