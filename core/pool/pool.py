"""The killable process pool: warm workers that run other people's input through your function, and survive it.

Covered: budgets of CPU and time for each item, enforced from outside by SIGKILL; memory; crashes; respawn in
milliseconds; blame that is proved and never guessed. Works from any thread, several at once, and from asyncio. Not
covered: hostile *functions* (a handler is your code; it runs with your rights), state shared between items, other
machines. Linux first; what other systems lack is listed in `system.py`. docs/design/002-killable-pool.md has the why.
"""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import weakref
from collections.abc import Callable, Sequence
from types import FunctionType, TracebackType
from typing import Any, Self

from ..budget import Budget
from ..errors import PoolError, describe
from . import system
from .batch import Batch, Ledger, Outcome, Work
from .dispatcher import Dispatcher
from .launcher import import_path
from .report import Fault
from .stats import PoolStats

_dispatchers: weakref.WeakSet[Dispatcher] = weakref.WeakSet()


def _forget_all() -> None:
    for dispatcher in list(_dispatchers):
        dispatcher.forget()
    _dispatchers.clear()


os.register_at_fork(after_in_child=_forget_all)


class _HandlerPickler(pickle.Pickler):
    """Refuses what a worker could not find: functions and classes of the main script."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, (type, FunctionType)) and obj.__module__ == "__main__":
            raise PoolError(
                f"{obj.__qualname__!r} is defined in the main script, which workers do not import. "
                "Move it to a module and import it from there."
            )
        return NotImplemented


class Pool:
    """Warm worker processes, each of which may be killed at any moment without a loss.

    `workers` defaults to the CPUs that this process may use. `preload` names modules that are imported once, before
    workers are forked, so that a new worker has them at once. `memory_mb` caps the private memory of a worker, what is
    preloaded included. After `max_tasks` items, or when three quarters of its memory are used, a worker is replaced.

    Processes start in the background; nothing is waited for here. Use it as a context manager or call `close`: no
    process outlives the pool, the interpreter's exit, or a SIGKILL of this process.
    """

    def __init__(
        self,
        *,
        workers: int | None = None,
        preload: Sequence[str] = (),
        memory_mb: int = 512,
        max_tasks: int = 10_000,
    ) -> None:
        workers = system.cpus() if workers is None else workers
        for name, value in (("workers", workers), ("memory_mb", memory_mb), ("max_tasks", max_tasks)):
            if value < 1:
                raise ValueError(f"Pool({name}={value!r}): it must be at least 1.")
        if isinstance(preload, str):
            raise TypeError(f"Pool(preload={preload!r}): give a list of module names.")
        self.workers = workers
        # Received and unpickled, a payload takes about three times its size.
        self._most_bytes = (memory_mb << 20) // 6
        self._dispatcher = Dispatcher(workers, tuple(preload), memory_mb << 20, max_tasks)
        _dispatchers.add(self._dispatcher)
        self._finalizer = weakref.finalize(self, self._dispatcher.close)

    def submit(
        self, handler: Callable[[Any], object], payloads: Sequence[object], budgets: Sequence[Budget] | Budget
    ) -> Batch:
        """Have `handler` called on each payload in some worker; returns at once.

        `handler` must pickle and must be found in a module (not the main script): each worker unpickles it once, so an
        object with a large table is built once for each worker; what it keeps is shared by the items of that worker.
        One budget for all payloads, or one for each. A payload or a result that does not pickle is an error of that
        row alone. Raises PoolError when the handler cannot be sent, and when the pool is closed, broken, or belongs to
        the process that forked this one.
        """
        self._check()
        if not isinstance(budgets, Budget) and len(budgets) != len(payloads):
            raise ValueError(f"{len(payloads)} payloads with {len(budgets)} budgets: give one, or one for each.")
        for budget in () if isinstance(budgets, Budget) else budgets:
            if not isinstance(budget, Budget):
                raise TypeError(f"a budget must be a Budget, not {type(budget).__name__}")
        pickled = _pickle_handler(handler)
        ledger = Ledger(Work(hashlib.blake2b(pickled, digest_size=16).digest(), pickled, import_path()), [], budgets)
        failed: list[tuple[int, Outcome]] = []
        for index, payload in enumerate(payloads):
            try:
                pickled_payload = pickle.dumps(payload, pickle.HIGHEST_PROTOCOL)
                if len(pickled_payload) > self._most_bytes:
                    raise ValueError(f"{len(pickled_payload)} bytes; a worker takes at most {self._most_bytes}")
                ledger.payloads.append(pickled_payload)
                ledger.todo.append(index)
            except Exception as error:  # noqa: BLE001 - whatever a class's __reduce__ raises
                ledger.payloads.append(b"")
                failed.append((index, Outcome(Fault.ERROR, b"", f"the payload cannot be sent: {describe(error)}")))
        batch = Batch(ledger, self._cancel)
        batch.settle(failed)
        self._dispatcher.submit(batch)
        return batch

    def _cancel(self, batch: Batch) -> None:
        # A bound method, so that a batch keeps its pool alive.
        self._dispatcher.cancel(batch)

    def _check(self) -> None:
        if os.getpid() != self._dispatcher.owner:
            raise PoolError(
                f"This pool belongs to process {self._dispatcher.owner}, which forked this one ({os.getpid()}). "
                "Make a pool of its own in each process."
            )
        if self._dispatcher.error is not None:
            raise self._dispatcher.error
        if not self._finalizer.alive:
            raise PoolError("The pool is closed. Make a new one, or close it later.")

    @property
    def stats(self) -> PoolStats:
        """Counters so far."""
        return self._dispatcher.stats.copy()

    @property
    def pids(self) -> list[int]:
        """Process ids of the workers that are alive now."""
        return self._dispatcher.pids

    @property
    def zygote_pid(self) -> int:
        """Process id of the zygote, 0 while it is being replaced."""
        return self._dispatcher.zygote_pid

    def close(self) -> None:
        """Kill all workers and wait until they are gone; what had not ended is reported as `Fault.CANCELLED`.

        May be called again, and from any thread. In a forked child it does nothing: the pool is the parent's.
        """
        if os.getpid() == self._dispatcher.owner:
            self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _pickle_handler(handler: Callable[[Any], object]) -> bytes:
    if not callable(handler):
        raise PoolError(f"The handler must be callable, not {type(handler).__name__}.")
    buffer = io.BytesIO()
    try:
        _HandlerPickler(buffer, pickle.HIGHEST_PROTOCOL).dump(handler)
    except PoolError:
        raise
    except Exception as error:
        raise PoolError(
            f"The handler does not pickle ({describe(error)}). Use a function at the top level of a module, or an "
            "instance of a class there."
        ) from error
    return buffer.getvalue()
