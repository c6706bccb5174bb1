"""The one thread that runs a pool: gives out work, takes in results, ends workers that are over a limit.

Everything happens in that thread, except where a section says otherwise. It blocks only in the selector; nothing that a
worker does, or fails to do, can hold it up. The processes themselves are the business of `crew.py`. The laws that both
keep are in docs/design/002-killable-pool.md.
"""

from __future__ import annotations

import logging
import os
import selectors
import socket
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic_ns
from typing import Final

from ..errors import PoolError
from . import watch
from .batch import Batch, Outcome
from .crew import Crew
from .handle import Cause, Handle
from .inquest import inquire, over_cpu
from .launcher import Launcher
from .protocol import FrameError, Kind, Result, Results
from .queue import DEPTH_ITEMS, DEPTH_NS, Queue
from .report import Fault
from .stats import PoolStats

log = logging.getLogger(__name__)

BEHIND_NS: Final = 50_000_000
"""An item that takes longer than this gets nothing queued behind it, and what is there may be taken away."""
_DEPTH_MAX_NS: Final = 500_000_000


class Dispatcher:
    """The event loop of one pool."""

    def __init__(self, workers: int, preload: Sequence[str], memory_bytes: int, max_tasks: int) -> None:
        self.stats = PoolStats()
        self.error: PoolError | None = None
        self.owner = os.getpid()
        self._memory_bytes = memory_bytes
        self._max_tasks = max_tasks
        self._queue = Queue(workers)
        self._batches: dict[int, Batch] = {}
        self._cycle_ns = 0.0
        self._closing = False
        self._pause_s: float | None = 0.0
        self._watch_at = 0
        self._idle = False
        self._used: dict[int, tuple[int, int]] = {}
        self._inbox: deque[Callable[[], None]] = deque()
        self._selector = selectors.DefaultSelector()
        self._crew = Crew(workers, preload, memory_bytes, self._selector, self.stats, self._mourn, self._break)
        self._ended = False
        self._wake_r, self._wake_w = socket.socketpair()
        self._wake_r.setblocking(False)
        self._wake_w.setblocking(False)
        self._selector.register(self._wake_r, selectors.EVENT_READ, None)
        self._thread = threading.Thread(target=self._main, name="rewarden-pool", daemon=True)
        self._thread.start()

    # -- called from other threads ---------------------------------------------------------------------------------

    def submit(self, batch: Batch) -> None:
        """Take a new batch."""
        self._post(lambda: self._accept(batch))

    def cancel(self, batch: Batch) -> None:
        """Drop and kill what is left of a batch."""
        if os.getpid() == self.owner:
            self._post(lambda: self._drop(batch))

    def close(self) -> None:
        """Stop everything and wait until every process is gone. In a forked child: nothing."""
        if os.getpid() != self.owner:
            return
        self._post(self._close)
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def forget(self) -> None:
        """In a forked child: give up our copies of the parent's descriptors, without a word to the parent's workers.

        The selector is shared with the parent too: closing its descriptor is safe, unregistering would not be.
        """
        with suppress(OSError):
            self._selector.close()
            self._wake_r.close()
            self._wake_w.close()
        self._crew.forget()

    @property
    def pids(self) -> list[int]:
        """Process ids of the workers that are alive now."""
        return [handle.pid for handle in self._crew.living if handle.pid]

    @property
    def zygote_pid(self) -> int:
        """Process id of the zygote; 0 while there is none."""
        return self._crew.zygote_pid

    def _post(self, task: Callable[[], None]) -> None:
        self._inbox.append(task)
        with suppress(OSError):  # full: it is awake anyway; closed: nobody is left to wake
            self._wake_w.send(b"x")
        if self._ended:
            self._after_the_end()

    # -- the loop --------------------------------------------------------------------------------------------------

    def _main(self) -> None:
        try:
            self._crew.start()
            while not self._closing:
                self._round()
        except Exception as error:
            log.exception("the worker pool failed")
            self._break(PoolError(f"The worker pool failed ({type(error).__name__}: {error}); make a new one."))
        finally:
            self._shut_down()

    def _round(self) -> None:
        events = self._selector.select(self._pause_s)
        begun = monotonic_ns()
        for key, mask in events:
            if key.data is None:
                with suppress(BlockingIOError):
                    self._wake_r.recv(4096)
            elif isinstance(key.data, Launcher):
                self._crew.hear(key.data)
            elif key.data.number in self._crew.handles:
                self._serve(key.data, mask)
        while self._inbox:
            self._inbox.popleft()()
        self._feed()
        if events:
            self._cycle_ns += 0.5 * (monotonic_ns() - begun - self._cycle_ns)
        # Only now, when all that workers had to say has been heard: this process may have been stopped for a while.
        # And not in every round: each look costs a wait for the interpreter when other threads want it too.
        now = monotonic_ns()
        if now >= self._watch_at:
            pause = self._watch(now)
            self._watch_at = now + int(1e9 * (watch.PAUSE_S if pause is None else pause))
            self._idle = pause is None
        if self._idle and not any(handle.assigned for handle in self._crew.living):
            self._pause_s = None
        else:
            self._pause_s = max(0.0, (self._watch_at - now) / 1e9)

    def _watch(self, now: int) -> float | None:
        """Enforce limits; returns after how many seconds to look again, None when nothing needs it."""
        sleep = self._crew.tend(now)
        for handle in self._crew.living:
            if handle.pid and handle.assigned:
                overdue, pause = watch.look(handle, now, self._memory_bytes)
                if overdue is not None:
                    self._used[handle.number] = overdue.cpu_ns, overdue.wall_ns
                    self._crew.end(handle, overdue.cause, overdue.ticket)
                elif handle.grown:
                    self._take_back(handle)
                sleep = pause if sleep is None else min(sleep, pause)
        return sleep

    # -- batches ---------------------------------------------------------------------------------------------------

    def _accept(self, batch: Batch) -> None:
        if self.error is not None:
            batch.fail(self.error)
        elif not batch.done:
            self._batches[id(batch)] = batch
            self._queue.add(batch)

    def _drop(self, batch: Batch, detail: str = "cancelled") -> None:
        if self._batches.pop(id(batch), None) is None:
            return
        self._queue.drop(batch)
        left = [index for index, outcome in enumerate(batch.outcomes) if outcome is None]
        self._settle(
            [(batch, i, Outcome(Fault.CANCELLED, b"", detail, attempts=batch.ledger.attempts(i))) for i in left]
        )
        for handle in self._crew.living:
            if any(owner is batch for owner, _ in handle.assigned):
                running = handle.running
                if running and handle.item(running)[0] is batch:
                    self._crew.end(handle, Cause.CANCELLED, running)
                else:
                    self._take_back(handle)

    def _settle(self, settled: list[tuple[Batch, int, Outcome]]) -> None:
        by_batch: dict[int, tuple[Batch, list[tuple[int, Outcome]]]] = {}
        for batch, index, outcome in settled:
            if batch.outcomes[index] is None:
                self.stats.items += 1
                self.stats.cpu_s += outcome.cpu_ns / 1e9
                if outcome.fault is not None:
                    self.stats.faults[outcome.fault] += 1
                by_batch.setdefault(id(batch), (batch, []))[1].append((index, outcome))
        for key, (batch, outcomes) in by_batch.items():
            batch.settle(outcomes)
            if batch.done:
                self._batches.pop(key, None)

    # -- giving work -----------------------------------------------------------------------------------------------

    def _feed(self) -> None:
        if self._closing:
            return
        depth = min(max(DEPTH_NS, 3 * self._cycle_ns), _DEPTH_MAX_NS)
        now = monotonic_ns()
        hungry = [handle for handle in self._crew.living if self._may_feed(handle)]
        while hungry and (self._queue.suspects or self._queue.waiting):
            hungry.sort(key=lambda handle: len(handle.assigned))
            still: list[Handle] = []
            for handle in hungry:
                fed = self._feed_one(handle, depth, now)
                if fed is not None:
                    still.append(fed)
            hungry = still
        if hungry and not self._queue.waiting and any(not handle.assigned for handle in hungry):
            self._steal(now)

    def _may_feed(self, handle: Handle) -> bool:
        return not handle.assigned or not (handle.alone or handle.grown or handle.given in handle.revoked)

    def _feed_one(self, handle: Handle, depth: float, now: int) -> Handle | None:
        """Give one chunk; returns the worker to ask again in this round, None when it has enough."""
        queue = self._queue
        if not handle.assigned:
            if queue.suspects and handle.fresh:
                suspect = queue.next_suspect()
                if suspect is not None:
                    self._give(handle, suspect[0], [suspect[1]], alone=True)
                    return None
            elif len(queue.suspects) > self._crew.coming:
                self._crew.end(handle, Cause.RECYCLED)  # for a fresh one
                return None
            if handle.grown or handle.given >= self._max_tasks or len(handle.handlers) > 64:
                self._crew.end(handle, Cause.RECYCLED)
                return None
        elif handle.given >= self._max_tasks or handle.running_ns(now) > BEHIND_NS:
            return None
        elif len(handle.chunks) >= 2:
            cost = queue.cost_ns(handle.assigned[-1][0])
            if cost is None or len(handle.assigned) >= DEPTH_ITEMS or len(handle.assigned) * cost >= depth:
                return None
        chunk = queue.next_chunk(depth / 2, self._max_tasks - handle.given)
        if chunk is None:
            return None
        self._give(handle, *chunk, alone=False)
        return handle

    def _give(self, handle: Handle, batch: Batch, indices: list[int], *, alone: bool) -> None:
        self.stats.chunks += 1
        handle.give(batch, indices, alone=alone)
        if handle.blocked:
            self._selector.modify(handle.sock, selectors.EVENT_READ | selectors.EVENT_WRITE, handle)

    def _steal(self, now: int) -> None:
        """Take what waits behind a long item, for workers that have nothing."""
        for handle in self._crew.living:
            if handle.running_ns(now) > BEHIND_NS:
                self.stats.stolen += self._take_back(handle)
        if self._queue.waiting:
            self._post(lambda: None)  # feed again, in a round of its own

    def _take_back(self, handle: Handle) -> int:
        taken = handle.revoke()
        for batch, index in reversed(taken):
            self._queue.put_back(batch, index)
        return len(taken)

    # -- taking results --------------------------------------------------------------------------------------------

    def _serve(self, handle: Handle, mask: int) -> None:
        if mask & selectors.EVENT_WRITE:
            handle.flush()
            if not handle.blocked:
                self._selector.modify(handle.sock, selectors.EVENT_READ, handle)
        if mask & selectors.EVENT_READ:
            try:
                frames, more = handle.receive()
            except FrameError:
                frames, more = [], False
                self._crew.end(handle, Cause.BROKEN)
            for frame in frames:
                if not handle.killed and not self._take(handle, frame):
                    self._crew.end(handle, Cause.BROKEN)
            if not more:
                self._crew.deaf(handle)

    def _take(self, handle: Handle, frame: Results) -> bool:
        """Note results; False when they are not for the items that the worker has."""
        first, results, retired = frame
        if first != handle.answered + 1 or len(results) > len(handle.assigned):
            return False
        handle.active = monotonic_ns()
        settled: list[tuple[Batch, int, Outcome]] = []
        total = count = 0
        batch: Batch | None = None
        for result in results:
            alone = handle.alone
            batch, index = handle.answer()
            if result[0] == Kind.SKIPPED or batch.outcomes[index] is not None:
                continue
            total += result[4]
            count += 1
            outcome = self._outcome(batch, index, result, alone=alone)
            if outcome is not None:
                settled.append((batch, index, outcome))
        self._settle(settled)
        if batch is not None and count:
            self._queue.learn(batch.ledger.work.digest, total / count)
        if not handle.assigned:
            handle.alone = False
        if retired and handle.cause is None:
            self._crew.end(handle, Cause.RECYCLED)
        return True

    def _outcome(self, batch: Batch, index: int, result: Result, *, alone: bool) -> Outcome | None:
        """What a result means; None when the item is to run again."""
        kind, data, stage, cpu_ns, wall_ns = result
        attempts = batch.ledger.attempts(index) + 1
        fault: Fault | None = None
        detail = ""
        budget = batch.ledger.budget(index)
        if kind == Kind.MEMORY and not alone:
            # What ran before it in the same worker may have used the memory.
            batch.ledger.trouble(index).attempts += 1
            self._suspect(batch, index)
            return None
        if kind == Kind.MEMORY:
            fault, detail = Fault.MEMORY, "over the memory limit of a worker"
        elif cpu_ns > budget.cpu_s * 1e9:
            # It ended before the kill came: still the same verdict as in a run where the kill was quicker.
            fault, detail = Fault.CPU, over_cpu(budget.cpu_s)
        elif kind != Kind.OK:
            fault, detail = Fault.ERROR, data.decode("utf-8", "replace")
        return Outcome(fault, b"" if fault else data, detail, stage, cpu_ns, wall_ns, attempts)

    def _suspect(self, batch: Batch, index: int) -> None:
        self.stats.retries += 1
        self._queue.suspect(batch, index)

    def _mourn(self, handle: Handle, status: int | None) -> str | None:
        """A worker is dead: take its last results, judge, and give its items back."""
        for frame in handle.drain():
            if not self._take(handle, frame):
                break
        found = inquire(handle, status, *self._used.pop(handle.number, (0, 0)))
        if handle.cause is None:
            if found.outside:
                self.stats.outside_kills += 1
            else:
                self.stats.crashes += 1
        self._settle(found.settled)
        for batch, index in found.suspects:
            self._suspect(batch, index)
        for batch, index in reversed(found.innocent):
            self.stats.requeued += 1
            self._queue.put_back(batch, index)
        if found.unloadable is not None:
            self._give_up(found.unloadable, found.detail)
        return None if found.outside or handle.cause is not None else found.detail

    def _give_up(self, batch: Batch, how: str) -> None:
        detail = f"the handler cannot be loaded in a worker: each time {how}"
        self._queue.drop(batch)
        left = [index for index, outcome in enumerate(batch.outcomes) if outcome is None]
        self._settle([(batch, i, Outcome(Fault.CRASH, b"", detail, attempts=batch.ledger.attempts(i))) for i in left])

    # -- the end ---------------------------------------------------------------------------------------------------

    def _close(self) -> None:
        self._closing = True

    def _break(self, error: PoolError) -> None:
        self.error = self.error or error
        self._closing = True

    def _shut_down(self) -> None:
        self._crew.stop()
        self._ended = True  # from now on a task is done by the thread that posts it
        self._after_the_end()
        self._selector.close()
        self._wake_r.close()
        self._wake_w.close()

    def _after_the_end(self) -> None:
        """Let nobody wait for what will not come."""
        while self._inbox:
            with suppress(IndexError):
                self._inbox.popleft()()
        for batch in list(self._batches.values()):
            if self.error is not None:
                batch.fail(self.error)
            else:
                self._drop(batch, "the pool was closed")
        self._batches = {}
