"""What scorers run on: the pool, the event loop and the threads, each made when first needed.

`Resources.start` sends work where its scorer's `resource` says and returns at once; calling what it returns waits.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import contextmanager
from time import perf_counter
from typing import Any

from .budget import Budget
from .errors import PoolError
from .pool import Batch, Pool
from .reasons import Reason
from .recipe import Limits
from .scorer import Resource, Scorer
from .verdict import Trace, Verdict
from .work import FAULTS, Scoring, Work, checked, from_report, raised, score_alone, score_units

log = logging.getLogger(__name__)

Wait = Callable[[], list[list[Verdict]]]
"""Waits for work under way: the verdicts of each unit."""


class Resources:
    """Owns processes and threads; `close` ends them all."""

    def __init__(self, *, workers: int | None, preload: Sequence[str], memory_mb: int) -> None:
        self.turn = threading.RLock()
        """Held by a thread that scores in the caller. The interpreter runs one at a time anyway; where many want it,
        one that needs it for a moment only, such as an event loop's, would wait for all the others."""
        self._memory_mb = memory_mb
        self._workers = workers
        self._preload = preload
        self._lock = threading.Lock()
        self._pool: Pool | None = None
        self._loop: _Loop | None = None
        self._threads: dict[str, ThreadPoolExecutor] = {}
        self._slots: dict[str, asyncio.Semaphore] = {}
        self._closed = False
        self._owner = os.getpid()

    def start(self, scorer: Scorer, works: list[Work], traces: Sequence[Sequence[Trace]], limits: Limits) -> Wait:
        """Send the work to the scorer's resource."""
        if not works:
            return list
        match scorer.resource:
            case Resource.CPU:
                return self._in_pool(scorer, works, traces, limits)
            case Resource.IO:
                return self._in_loop(scorer, works, traces, limits)
            case Resource.GPU | Resource.SANDBOX:
                return self._in_threads(scorer, works, traces)
            case _:
                done = _timed(lambda: [score_alone(scorer, work) for work in works], traces)
                return lambda: done

    def _in_pool(self, scorer: Scorer, works: list[Work], traces: Sequence[Sequence[Trace]], limits: Limits) -> Wait:
        budgets = [_budget(scorer, work, limits) for work in works]
        batch: Batch = self._get_pool().submit(Scoring(scorer), [(work.views, work.priors) for work in works], budgets)

        def wait() -> list[list[Verdict]]:
            out = []
            for work, report, some in zip(works, batch.wait(), traces, strict=True):
                for trace in some:
                    trace.pooled = True
                    trace.seconds += report.wall_s / len(some)
                    trace.attempts = report.attempts
                out.append(from_report(scorer, work, report))
            return out

        return wait

    def _in_loop(self, scorer: Scorer, works: list[Work], traces: Sequence[Sequence[Trace]], limits: Limits) -> Wait:
        loop = self._get_loop()

        async def one(work: Work, some: Sequence[Trace]) -> list[Verdict]:
            slots = self._slots.setdefault(scorer.stamp.digest, asyncio.Semaphore(scorer.concurrency))
            async with slots:
                started = perf_counter()
                limit = _budget(scorer, work, limits).wall_s
                task = asyncio.ensure_future(_kept(scorer, work))
                try:
                    # Not `wait_for`: a scorer that swallows its cancellation would be waited for all the same.
                    await asyncio.wait({task}, timeout=limit)
                    if task.done():
                        return task.result()
                    task.cancel()
                    return work.failed(Reason.DEADLINE, f"no answer within {limit:g} s")
                finally:
                    for trace in some:
                        trace.seconds += (perf_counter() - started) / len(some)

        async def all_of_them() -> list[list[Verdict]]:
            return await asyncio.gather(*(one(work, some) for work, some in zip(works, traces, strict=True)))

        future = loop.submit(all_of_them())
        return lambda: _result(future, works)

    def _in_threads(self, scorer: Scorer, works: list[Work], traces: Sequence[Sequence[Trace]]) -> Wait:
        threads = self._get_threads(scorer)
        if scorer.resource is Resource.GPU:
            whole = threads.submit(_timed, lambda: score_units(scorer, works), traces)
            return lambda: _result(whole, works)

        def one(work: Work, some: Sequence[Trace]) -> list[list[Verdict]]:
            return _timed(lambda: [score_alone(scorer, work)], [some])

        each = [(threads.submit(one, work, some), work) for work, some in zip(works, traces, strict=True)]
        return lambda: [_result(future, [work])[0] for future, work in each]

    def _get_pool(self) -> Pool:
        with self._open():
            if self._pool is None:
                self._pool = Pool(workers=self._workers, preload=self._preload, memory_mb=self._memory_mb)
            return self._pool

    def _get_loop(self) -> _Loop:
        with self._open():
            if self._loop is None:
                self._loop = _Loop()
            return self._loop

    def _get_threads(self, scorer: Scorer) -> ThreadPoolExecutor:
        """Threads of its own for each scorer; for a resident model one, so that its calls take turns."""
        with self._open():
            most = 1 if scorer.resource is Resource.GPU else scorer.concurrency
            name = scorer.stamp.digest
            if name not in self._threads:
                self._threads[name] = ThreadPoolExecutor(most, thread_name_prefix=f"rewarden-{scorer.name}")
            return self._threads[name]

    @contextmanager
    def _open(self) -> Iterator[None]:
        with self._lock:
            self.check_open()
            yield

    def check_open(self) -> None:
        """Raise PoolError when `close` has been called, or in a process that was forked off."""
        if os.getpid() != self._owner:
            raise PoolError(f"this engine belongs to process {self._owner}; make one in each process that is forked")
        if self._closed:
            raise PoolError("this engine is closed; make a new one, or close it later")

    def warm(self, scorers: Sequence[Scorer]) -> None:
        """Start what these scorers run on, so that the first rollout does not wait for it."""
        if any(scorer.resource is Resource.CPU for scorer in scorers):
            self._get_pool()

    @property
    def pool(self) -> Pool | None:
        """The pool, if any work has needed it."""
        return self._pool

    def close(self) -> None:
        """Stop everything; work under way comes back as cancelled."""
        if os.getpid() != self._owner:
            return
        with self._lock:
            self._closed = True
            pool, loop, threads = self._pool, self._loop, list(self._threads.values())
        if pool is not None:
            pool.close()
        if loop is not None:
            loop.close()
        for executor in threads:
            executor.shutdown(wait=False, cancel_futures=True)


class _Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="rewarden-io", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            self._loop.run_until_complete(self._cancel_all())
        finally:
            self._loop.close()

    async def _cancel_all(self) -> None:
        pending = asyncio.all_tasks() - {asyncio.current_task()}
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)

    def submit(self, work: Coroutine[Any, Any, list[list[Verdict]]]) -> Future[list[list[Verdict]]]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)


def _budget(scorer: Scorer, work: Work, limits: Limits) -> Budget:
    """The budget of all the members together, under the recipe's limits."""
    try:
        each = [scorer.budget(view) for view in work.views]
        if not all(isinstance(budget, Budget) for budget in each):
            raise TypeError("budget() must return a Budget")
    except FAULTS:
        log.warning("budget() of %s failed; using the default", scorer.name, exc_info=True)
        each = [Budget()] * len(work.views)
    cpu, wall = limits.cpu_s, limits.wall_s
    return Budget(
        sum(cpu if cpu is not None else budget.cpu_s for budget in each),
        sum(wall if wall is not None else budget.wall_s for budget in each),
    )


async def _kept(scorer: Scorer, work: Work) -> list[Verdict]:
    """The verdicts of an async scorer; whatever it raises becomes its own verdict, and never ends the loop."""
    try:
        pending = scorer.score(work.views, work.priors)
        if not isinstance(pending, Awaitable):
            raise TypeError("the scorer's resource is 'io', so its score() must be async")
        return checked(await pending, len(work.views))
    except asyncio.CancelledError:
        return work.failed(Reason.CANCELLED, "the call was cancelled")
    except BaseException as error:  # noqa: BLE001 - here, also a KeyboardInterrupt is the scorer's own
        return work.failed(Reason.SCORER_ERROR, raised(error))


def _result(future: Future[list[list[Verdict]]], works: Sequence[Work]) -> list[list[Verdict]]:
    """What the future holds; cancelled verdicts where the engine was closed meanwhile."""
    try:
        return future.result()
    except CancelledError:
        return [work.failed(Reason.CANCELLED, "the engine was closed") for work in works]


def _timed(run: Callable[[], list[list[Verdict]]], traces: Sequence[Sequence[Trace]]) -> list[list[Verdict]]:
    started = perf_counter()
    done = run()
    each = (perf_counter() - started) / max(1, sum(len(some) for some in traces))
    for some in traces:
        for trace in some:
            trace.seconds += each
    return done
