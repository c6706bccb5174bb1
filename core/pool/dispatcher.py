# SPDX-License-Identifier: Apache-2.0
"""The one thread that runs a pool: gives out work, takes in results, watches limits, buries and replaces workers.

Everything here happens in that thread, except `post`, `close` and `forget`. It blocks only in the selector; nothing
that a worker does, or fails to do, can hold it up. The laws it keeps are in docs/design/002-killable-pool.md.
"""

from __future__ import annotations

import logging
import os
import selectors
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic, monotonic_ns
from typing import Final

from ..errors import PoolError
from . import system, watch
from .batch import Batch, Outcome
from .handle import Cause, Handle
from .inquest import inquire, over_cpu
from .launcher import Launcher
from .protocol import FrameError, Kind, Record, Result, Results
from .queue import DEPTH_ITEMS, DEPTH_NS, Queue
from .report import Fault
from .stats import PoolStats

log = logging.getLogger(__name__)

BEHIND_NS: Final = 50_000_000
"""An item that takes longer than this gets nothing queued behind it, and what is there may be taken away."""
SPAWN_S: Final = 10.0
"""A zygote that does not fork within this time is stuck, and is replaced."""
START_S: Final = 300.0
"""A zygote that has not imported everything within this time never will."""
START_MAX: Final = 3
"""So many zygotes that never became ready: the pool is broken."""
REFUSED_MAX: Final = 50
"""So many refused forks in a row: the pool is broken."""
UNDEAD_NS: Final = 2_000_000_000
"""A killed worker that is still dying after this time (inside the kernel) is replaced without waiting for it."""
STOP_S: Final = 5.0
_DEPTH_MAX_NS: Final = 500_000_000


class Dispatcher:
    """The event loop of one pool."""

    def __init__(self, workers: int, preload: Sequence[str], memory_bytes: int, max_tasks: int) -> None:
        self.stats = PoolStats()
        self.error: PoolError | None = None
        self.owner = os.getpid()
        self._preload = preload
        self._memory_bytes = memory_bytes
        self._max_tasks = max_tasks
        self._queue = Queue(workers)
        self._slots: list[Handle | None] = [None] * workers
        self._handles: dict[int, Handle] = {}
        self._batches: dict[int, Batch] = {}
        self._launcher: Launcher | None = None
        self._failed_starts = 0
        self._refused = 0
        self._numbers = 0
        self._retry_at = 0.0
        self._cycle_ns = 0.0
        self._closing = False
        self._used: dict[int, tuple[int, int]] = {}
        self._inbox: deque[Callable[[], None]] = deque()
        self._selector = selectors.DefaultSelector()
        self._wake_r, self._wake_w = os.pipe()
        os.set_blocking(self._wake_r, False)
        os.set_blocking(self._wake_w, False)
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
            os.close(self._wake_r)
            os.close(self._wake_w)
        for handle in self._handles.values():
            with suppress(OSError):
                handle.forget()
        if self._launcher is not None:
            with suppress(OSError):
                self._launcher.forget()
        self._handles = {}
        self._launcher = None

    @property
    def pids(self) -> list[int]:
        """Process ids of the workers that are alive now."""
        return [handle.pid for handle in self._slots if handle is not None and handle.pid and not handle.killed]

    @property
    def zygote_pid(self) -> int:
        """Process id of the zygote; 0 while there is none."""
        launcher = self._launcher
        return launcher.pid if launcher else 0

    def _post(self, task: Callable[[], None]) -> None:
        self._inbox.append(task)
        with suppress(BlockingIOError, OSError):  # full: it is awake anyway; closed: nobody is left to wake
            os.write(self._wake_w, b"x")
        if not self._thread.is_alive():
            self._after_the_end()

    # -- the loop --------------------------------------------------------------------------------------------------

    def _main(self) -> None:
        try:
            self._start_zygote()
            while not self._closing:
                self._round()
        except Exception as error:
            log.exception("the worker pool failed")
            self._break(PoolError(f"The worker pool failed ({type(error).__name__}: {error}); make a new one."))
        finally:
            self._shut_down()

    def _round(self) -> None:
        timeout = self._watch()
        events = self._selector.select(timeout)
        begun = monotonic_ns()
        for key, mask in events:
            if key.data is None:
                with suppress(BlockingIOError):
                    while len(os.read(self._wake_r, 4096)) == 4096:
                        pass
            elif isinstance(key.data, Launcher):
                self._hear(key.data)
            elif key.data.number in self._handles:
                self._serve(key.data, mask)
        while self._inbox:
            self._inbox.popleft()()
        self._feed()
        if events:
            self._cycle_ns += 0.2 * (monotonic_ns() - begun - self._cycle_ns)

    def _watch(self) -> float | None:
        """Enforce limits; returns how long the loop may sleep (None: until something happens)."""
        now = monotonic_ns()
        sleep: float | None = None
        for handle in list(self._handles.values()):
            if handle.killed:
                if self._slots[handle.slot] is handle and now - handle.killed > UNDEAD_NS:
                    self._spawn(handle.slot)
                sleep = min(sleep or 1.0, 0.5)
                continue
            if handle.pid:
                if not handle.assigned:
                    continue
                overdue, pause = watch.look(handle, now, self._memory_bytes)
                if overdue is not None:
                    self._used[handle.number] = overdue.cpu_ns, overdue.wall_ns
                    self._end(handle, overdue.cause, overdue.ticket)
                    pause = 0.5
                sleep = min(sleep or 1.0, pause)
            elif self._launcher is not None and self._launcher.ready:
                if now - max(handle.born, int(self._launcher.started * 1e9)) > SPAWN_S * 1e9:
                    log.warning("the zygote does not answer; replacing it")
                    self._lose_zygote()
                    return 0.0
                sleep = min(sleep or 1.0, 0.5)
        if self._launcher is None:
            if monotonic() >= self._retry_at:
                self._start_zygote()
            sleep = min(sleep or 1.0, 0.1)
        elif not self._launcher.ready:
            if monotonic() - self._launcher.started > START_S:
                self._break(PoolError(f"The modules to preload were not imported within {START_S:g} s; name fewer."))
            sleep = min(sleep or 1.0, 1.0)
        elif None in self._slots:
            if monotonic() >= self._retry_at:
                for slot, handle_or_none in enumerate(self._slots):
                    if handle_or_none is None:
                        self._spawn(slot)
            sleep = min(sleep or 1.0, 0.1)
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
        for handle in list(self._handles.values()):
            if not handle.killed and any(owner is batch for owner, _ in handle.assigned):
                running = handle.running
                if running and handle.item(running)[0] is batch:
                    self._end(handle, Cause.CANCELLED, running)
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
        if self._launcher is None or self._closing:
            return
        depth = min(max(DEPTH_NS, 3 * self._cycle_ns), _DEPTH_MAX_NS)
        now = monotonic_ns()
        hungry = [handle for handle in self._slots if handle is not None and self._may_feed(handle)]
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
        if handle.killed:
            return False
        return not handle.assigned or not (handle.alone or handle.grown or handle.given in handle.revoked)

    def _feed_one(self, handle: Handle, depth: float, now: int) -> Handle | None:
        """Give one chunk; returns the worker to ask again in this round, None when it has enough."""
        queue = self._queue
        if not handle.assigned:
            if queue.suspects:
                suspect = queue.next_suspect()
                if suspect is None:
                    return handle
                if not handle.fresh:
                    queue.suspects.appendleft(suspect)
                    self._end(handle, Cause.RECYCLED)
                    return None
                self._give(handle, suspect[0], [suspect[1]], alone=True)
                return None
            if handle.grown or handle.given >= self._max_tasks or len(handle.handlers) > 64:
                self._end(handle, Cause.RECYCLED)
                return None
        elif handle.given >= self._max_tasks or handle.running_ns(now) > BEHIND_NS:
            return None
        elif len(handle.chunks) >= 2:
            cost = queue.cost_ns(handle.assigned[-1][0])
            if cost is None or len(handle.assigned) >= DEPTH_ITEMS or len(handle.assigned) * cost >= depth:
                return None
        chunk = queue.next_chunk(depth / 2)
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
        for handle in self._slots:
            if handle is not None and not handle.killed and handle.running_ns(now) > BEHIND_NS:
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
            for frame in frames:
                self._take(handle, frame)
            if not more:
                # Dead, or deaf: kill it in any case, and let its exit say the rest.
                self._selector.unregister(handle.sock)
                if not handle.killed and handle.cause is None:
                    self._deaf(handle)

    def _deaf(self, handle: Handle) -> None:
        """Its socket has ended. If the process has ended too, the exit notice is already on its way: ask it first."""
        if self._launcher is not None:
            self._hear(self._launcher)
        if handle.number in self._handles and not system.exited(handle.pid):
            self._end(handle, Cause.BROKEN)

    def _take(self, handle: Handle, frame: Results) -> None:
        results, retired = frame
        handle.active = monotonic_ns()
        settled: list[tuple[Batch, int, Outcome]] = []
        total = count = 0
        batch: Batch | None = None
        for result in results[: len(handle.assigned)]:
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
            self._end(handle, Cause.RECYCLED)

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

    # -- life and death of workers ---------------------------------------------------------------------------------

    def _spawn(self, slot: int) -> None:
        """Ask for a worker. It can be given work at once: that waits in its socket until it has been forked."""
        self._numbers += 1
        handle = Handle(self._numbers, slot)
        self._handles[handle.number] = handle
        self._selector.register(handle.sock, selectors.EVENT_READ, handle)
        self.stats.spawned += 1
        self.stats.respawned += self._slots[slot] is not None
        self._slots[slot] = handle
        assert self._launcher is not None
        try:
            self._launcher.spawn(handle.number, *handle.descriptors)
        except OSError:
            self._lose_zygote()
        else:
            handle.delivered()

    def _end(self, handle: Handle, cause: Cause, ticket: int = 0) -> None:
        if not handle.killed:
            self.stats.kills[cause] += 1
            handle.end(cause, ticket)

    def _bury(self, handle: Handle, status: int | None) -> None:
        """A worker is dead: take its last results, judge, give its items back, and release what it held."""
        for frame in handle.drain():
            self._take(handle, frame)
        with suppress(KeyError, ValueError):
            self._selector.unregister(handle.sock)
        handle.kill()  # its group: what it forked may still be there
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
            self._fail_to_load(found.unloadable, found.detail)
        del self._handles[handle.number]
        handle.close()

    def _fail_to_load(self, batch: Batch, how: str) -> None:
        detail = f"the handler cannot be loaded in a worker: each time {how}"
        self._queue.drop(batch)
        left = [index for index, outcome in enumerate(batch.outcomes) if outcome is None]
        self._settle([(batch, i, Outcome(Fault.CRASH, b"", detail, attempts=batch.ledger.attempts(i))) for i in left])

    def _hear(self, launcher: Launcher) -> None:
        """What the zygote says."""
        if launcher is not self._launcher:
            return
        try:
            for kind, number, value in launcher.records():
                handle = self._handles.get(number)
                if kind == Record.READY:
                    self._failed_starts = 0
                elif handle is None:
                    continue
                elif kind == Record.SPAWNED:
                    self._refused = 0
                    handle.pid = value
                    handle.active = monotonic_ns()
                    if handle.cause is not None:
                        handle.kill()
                elif kind == Record.REFUSED:
                    self._refuse(handle, value)
                elif kind == Record.EXITED:
                    self._exited(launcher, handle, value)
        except EOFError:
            self._lose_zygote()

    def _exited(self, launcher: Launcher, handle: Handle, status: int) -> None:
        slot = handle.slot
        current = self._slots[slot] is handle
        self._bury(handle, status)
        try:
            launcher.reap(handle.number)
        except OSError:
            self._lose_zygote()
            return
        if current and not self._closing and self._launcher is launcher:
            self._spawn(slot)

    def _refuse(self, handle: Handle, error: int) -> None:
        """The fork failed: a moment later there may be room again."""
        self._refused += 1
        log.warning("cannot fork a worker: %s", os.strerror(error))
        self._retry_at = monotonic() + min(1.0, 0.05 * self._refused)
        self._slots[handle.slot] = None
        self._bury(handle, None)
        if self._refused >= REFUSED_MAX:
            self._break(PoolError(f"No worker can be forked: {os.strerror(error)}. Raise the limit, or use fewer."))

    # -- life and death of the zygote ------------------------------------------------------------------------------

    def _start_zygote(self) -> None:
        try:
            self._launcher = Launcher(self._preload, self._memory_bytes)
        except OSError as error:
            self._break(PoolError(f"The worker pool cannot start {error}."))
            return
        self.stats.zygotes += 1
        self._selector.register(self._launcher.control, selectors.EVENT_READ, self._launcher)
        for slot in range(len(self._slots)):
            self._spawn(slot)

    def _lose_zygote(self) -> None:
        """It is gone or stuck, and its workers die with it: bury them all, and start another."""
        launcher, self._launcher = self._launcher, None
        if launcher is None:
            return
        with suppress(KeyError, ValueError):
            self._selector.unregister(launcher.control)
        if launcher.ready:
            log.warning("the zygote of the worker pool was lost; starting another")
        for handle in list(self._handles.values()):
            handle.kill()
        status = launcher.stop(0.0)
        for handle in list(self._handles.values()):
            self._bury(handle, None)
        self._slots = [None] * len(self._slots)
        if not launcher.ready:
            self._failed_starts += 1
            self._retry_at = monotonic() + 0.1 * self._failed_starts
        if launcher.complaint is not None:
            self._break(PoolError(f"The worker pool cannot start: {launcher.complaint}."))
        elif self._failed_starts >= START_MAX:
            self._break(PoolError(f"The worker pool cannot start: its zygote exits with status {status}."))

    # -- the end ---------------------------------------------------------------------------------------------------

    def _close(self) -> None:
        self._closing = True

    def _break(self, error: PoolError) -> None:
        self.error = self.error or error
        self._closing = True

    def _shut_down(self) -> None:
        with suppress(Exception):
            for handle in list(self._handles.values()):
                self._end(handle, Cause.CLOSED)
        if self._launcher is not None:
            self._launcher.stop(STOP_S)
        self._after_the_end()
        for handle in list(self._handles.values()):
            handle.close()
        self._handles = {}
        self._slots = [None] * len(self._slots)
        self._selector.close()
        os.close(self._wake_r)
        os.close(self._wake_w)

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
