"""The processes of a pool: starts the zygote, keeps every slot filled with a live worker, buries the dead.

Covered: replacing workers and the zygote whatever ended them, and giving up, with a reason, when that cannot help.
Not covered: what the workers do; who is to blame for a death is asked of the dispatcher. All of it runs in the
dispatcher's thread, except `forget`.
"""

from __future__ import annotations

import logging
import os
import selectors
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic, monotonic_ns
from typing import Final

from ..errors import PoolError
from . import system
from .handle import Cause, Handle
from .launcher import Launcher
from .protocol import FINISHED, LOADING, Record
from .stats import PoolStats

log = logging.getLogger(__name__)

SPAWN_S: Final = 10.0
"""A zygote that does not fork, or does not report a death, within this time is stuck, and is replaced."""
START_S: Final = 300.0
"""A zygote that has not imported everything within this time never will."""
START_MAX: Final = 3
"""So many zygotes in a row that never became ready: the pool is broken."""
REFUSED_MAX: Final = 50
"""So many refused forks in a row: the pool is broken."""
STILLBORN_MAX: Final = 10
"""So many workers in a row that died by themselves before they did anything: the pool is broken."""
STILLBORN_OUTSIDE_MAX: Final = 100
"""The same, deaths from outside included."""
DEAF_NS: Final = 100_000_000
"""A worker whose socket has ended for so long, and that is not dying, has closed it."""
UNDEAD_NS: Final = 2_000_000_000
"""A killed worker that is still dying after this time (inside the kernel) is replaced without waiting for it."""
STOP_S: Final = 5.0


class Crew:
    """One zygote and its workers, one for each slot.

    `on_death(worker, status)` is called once for each worker when its whole process group is dead and its last bytes
    can be read; it returns how it died, or None when that was from outside or on purpose. `on_broken` is called when no
    worker can be had any more.
    """

    def __init__(
        self,
        size: int,
        preload: Sequence[str],
        memory_bytes: int,
        selector: selectors.BaseSelector,
        stats: PoolStats,
        on_death: Callable[[Handle, int | None], str | None],
        on_broken: Callable[[PoolError], None],
    ) -> None:
        self.slots: list[Handle | None] = [None] * size
        """The present worker of each slot; None while it cannot be replaced."""
        self.handles: dict[int, Handle] = {}
        """All workers that are not buried, those being killed included."""
        self._launcher: Launcher | None = None
        self._preload = preload
        self._memory_bytes = memory_bytes
        self._selector = selector
        self._stats = stats
        self._on_death = on_death
        self._on_broken = on_broken
        self._numbers = 0
        self._failed_starts = 0
        self._refused = 0
        self._stillborn = 0
        self._retry_at = 0.0
        self._stopped = False

    @property
    def living(self) -> list[Handle]:
        """Workers that can be given work, forked already or not."""
        return [handle for handle in self.slots if handle is not None and not handle.killed and not handle.deaf_since]

    @property
    def coming(self) -> int:
        """How many slots will have a fresh worker soon."""
        return sum(handle is None or bool(handle.killed) for handle in self.slots)

    @property
    def zygote_pid(self) -> int:
        """Process id of the zygote; 0 while there is none."""
        launcher = self._launcher
        return launcher.pid if launcher is not None else 0

    def start(self) -> None:
        """Start a zygote, and ask it for a worker in each slot."""
        try:
            self._launcher = Launcher(self._preload, self._memory_bytes)
        except OSError as error:
            self._on_broken(PoolError(f"The worker pool cannot start: {error}."))
            return
        self._stats.zygotes += 1
        self._selector.register(self._launcher.control, selectors.EVENT_READ, self._launcher)
        for slot in range(len(self.slots)):
            self._spawn(slot)

    def end(self, handle: Handle, cause: Cause, ticket: int = 0) -> None:
        """Kill a worker; its replacement follows its death."""
        if not handle.killed:
            self._stats.kills[cause] += 1
            handle.end(cause, ticket)

    def deaf(self, handle: Handle) -> None:
        """A worker's socket has ended. If it is dying, its exit notice will say why; otherwise `tend` ends it."""
        self._selector.unregister(handle.sock)
        handle.deaf_since = monotonic_ns()

    def hear(self, launcher: Launcher) -> None:
        """What the zygote says."""
        if launcher is not self._launcher:
            return
        try:
            for kind, number, value in launcher.records():
                handle = self.handles.get(number)
                if kind == Record.READY:
                    self._failed_starts = 0
                elif handle is None:
                    if kind == Record.EXITED:
                        launcher.reap(number)  # buried before it was quite dead
                elif kind == Record.SPAWNED:
                    self._born(handle, value)
                elif kind == Record.REFUSED:
                    self._refuse(handle, value)
                elif kind == Record.EXITED:
                    self._exited(launcher, handle, value)
        except (EOFError, OSError):
            self._lose_zygote()

    def tend(self, now: int) -> float | None:
        """Replace what is missing or stuck; returns after how many seconds to look again, None: after an event."""
        launcher = self._launcher
        if launcher is None:
            if monotonic() >= self._retry_at:
                self.start()
            return 0.1
        if not launcher.ready:
            if monotonic() - launcher.started > START_S:
                self._on_broken(PoolError(f"The modules to preload were not imported in {START_S:g} s; name fewer."))
            return 1.0
        soon: float | None = None
        for slot, handle in enumerate(self.slots):
            if handle is None:
                soon = 0.05
                if monotonic() >= self._retry_at:
                    self._spawn(slot)
            elif handle.killed and handle.pid:
                soon = min(soon or 0.5, 0.5)
                if now - handle.killed > UNDEAD_NS:
                    self._bury(handle, -signal.SIGKILL)
                    self._spawn(slot)
            elif handle.deaf_since:
                soon = min(soon or 0.05, 0.05)
                if now - handle.deaf_since > DEAF_NS and not system.exiting(handle.pid):
                    self.end(handle, Cause.BROKEN)
                elif now - handle.deaf_since > SPAWN_S * 1e9:
                    return self._lose_stuck_zygote()
            elif not handle.pid:
                soon = min(soon or 0.5, 0.5)
                if now - max(handle.born, launcher.ready_at) > SPAWN_S * 1e9:
                    return self._lose_stuck_zygote()
        return soon

    def stop(self) -> None:
        """Kill everything and wait until it is gone. The caller has no more use for `on_death`."""
        self._stopped = True
        for handle in list(self.handles.values()):
            self.end(handle, Cause.CLOSED)
        if self._launcher is not None:
            self._launcher.stop(STOP_S)
        for handle in list(self.handles.values()):
            handle.close()
        self.handles = {}
        self.slots = [None] * len(self.slots)
        self._launcher = None

    def forget(self) -> None:
        """In a forked child: close our copies of the parent's descriptors."""
        for handle in self.handles.values():
            with suppress(OSError):
                handle.forget()
        if self._launcher is not None:
            with suppress(OSError):
                self._launcher.forget()

    def _spawn(self, slot: int) -> None:
        """Ask for a worker. It can be given work at once: that waits in its socket until it has been forked."""
        assert self._launcher is not None
        try:
            handle = Handle(self._numbers + 1, slot)
        except OSError as error:
            log.warning("no descriptors for a worker: %s", error)
            self._retry(error.errno or 0)
            return
        self._numbers += 1
        self.handles[handle.number] = handle
        self._selector.register(handle.sock, selectors.EVENT_READ, handle)
        self._stats.spawned += 1
        self.slots[slot] = handle
        try:
            self._launcher.spawn(handle.number, *handle.descriptors)
        except OSError:
            self._lose_zygote()
        else:
            handle.delivered()

    def _born(self, handle: Handle, pid: int) -> None:
        self._refused = 0
        handle.pid = pid
        handle.active = monotonic_ns()
        handle.born_with = system.resident_bytes(pid) or 0
        if handle.born_with > 0.9 * self._memory_bytes:
            self._on_broken(
                PoolError(
                    f"A new worker already takes {handle.born_with >> 20} MB of its {self._memory_bytes >> 20} MB with "
                    "what is preloaded: give Pool a larger memory_mb."
                )
            )
        if handle.cause is not None:
            handle.kill()

    def _refuse(self, handle: Handle, error: int) -> None:
        """The fork failed: a moment later there may be room again."""
        log.warning("cannot fork a worker: %s", os.strerror(error))
        self.slots[handle.slot] = None
        self._bury(handle, None)
        self._retry(error)

    def _retry(self, error: int) -> None:
        self._refused += 1
        self._retry_at = monotonic() + min(1.0, 0.05 * self._refused)
        if self._refused >= REFUSED_MAX:
            self._on_broken(PoolError(f"No worker can be forked: {os.strerror(error)}. Raise the limit, or use fewer."))

    def _exited(self, launcher: Launcher, handle: Handle, status: int) -> None:
        slot = handle.slot
        stillborn = handle.cause is None and not (handle.running or handle.words[FINISHED] or handle.words[LOADING])
        how = self._bury(handle, status)
        try:
            launcher.reap(handle.number)
        except OSError:
            self._lose_zygote()
            return
        self._stillborn = self._stillborn + 1 if stillborn else 0
        if self._stillborn >= (STILLBORN_MAX if how else STILLBORN_OUTSIDE_MAX):
            reason = how or "they are killed from outside"
            self._on_broken(PoolError(f"Workers die before they can work ({reason}). Is memory_mb too small?"))
        if not self._stopped:
            self._stats.respawned += 1
            self.slots[slot] = None
            if self._stillborn < 3:
                self._spawn(slot)
            else:
                self._retry_at = monotonic() + 0.01 * self._stillborn

    def _bury(self, handle: Handle, status: int | None) -> str | None:
        with suppress(KeyError, ValueError):
            self._selector.unregister(handle.sock)
        handle.kill()  # its group: what it forked may still be there
        how = self._on_death(handle, status)
        del self.handles[handle.number]
        handle.close()
        return how

    def _lose_stuck_zygote(self) -> float:
        log.warning("the zygote of the worker pool does not answer")
        self._lose_zygote()
        return 0.0

    def _lose_zygote(self) -> None:
        """It is gone or stuck, and its workers die with it: bury them all; `tend` starts another."""
        launcher, self._launcher = self._launcher, None
        if launcher is None:
            return
        self._selector.unregister(launcher.control)
        if launcher.ready:
            log.warning("the zygote of the worker pool was lost; starting another")
        for handle in self.handles.values():
            handle.kill()
        status = launcher.stop(0.0)
        for handle in list(self.handles.values()):
            self._bury(handle, None)
        self.slots = [None] * len(self.slots)
        if not launcher.ready:
            self._failed_starts += 1
            self._retry_at = monotonic() + 0.1 * self._failed_starts
        if launcher.complaint is not None:
            self._on_broken(PoolError(f"The worker pool cannot start: {launcher.complaint}."))
        elif self._failed_starts >= START_MAX:
            self._on_broken(PoolError(f"The worker pool cannot start: its zygote ended with status {status}."))
