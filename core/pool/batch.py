"""The caller's end of a submission: waits for reports, in order, as they come, or from asyncio.

Covered: any number of threads and event loops waiting on the same batch. Values are unpickled in the thread that asks
for them, so a value that is slow to unpickle holds up nobody else. Not covered: durability; a batch lives and dies with
the process.
"""

from __future__ import annotations

import asyncio
import pickle
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import NamedTuple

from ..budget import Budget
from ..errors import PoolError, describe
from .report import Fault, Report


class Work(NamedTuple):
    """A pickled handler, by digest, with the path that its modules are found on."""

    digest: bytes
    pickled: bytes
    path: list[str]


class Outcome(NamedTuple):
    """How one item ended, as the dispatcher notes it: `data` is the pickled value, still closed."""

    fault: Fault | None
    data: bytes
    detail: str = ""
    stage: str = ""
    cpu_ns: int = 0
    wall_ns: int = 0
    attempts: int = 0


@dataclass(slots=True)
class Trouble:
    """What has happened to an item that did not simply run to its end."""

    attempts: int = 0
    """Runs that ended with their worker's death."""
    outside: int = 0
    """How many of those deaths came from outside."""


@dataclass(slots=True)
class Ledger:
    """The dispatcher's side of a batch. After submission only the dispatcher's thread touches it."""

    work: Work
    payloads: list[bytes]
    budgets: Sequence[Budget] | Budget
    todo: deque[int] = field(default_factory=deque)
    """Items that no worker has."""
    troubles: dict[int, Trouble] = field(default_factory=dict)
    load_deaths: int = 0
    """Workers that died while they loaded the handler."""

    def budget(self, index: int) -> Budget:
        """The budget of one item."""
        return self.budgets if isinstance(self.budgets, Budget) else self.budgets[index]

    def trouble(self, index: int) -> Trouble:
        """The history of one item, begun when first asked for."""
        return self.troubles.setdefault(index, Trouble())

    def attempts(self, index: int) -> int:
        """Runs of an item so far, the present one not counted."""
        trouble = self.troubles.get(index)
        return trouble.attempts if trouble else 0


class Batch:
    """The reports of one `Pool.submit`, in the order of its payloads; there will be exactly one for each.

    Every method may be called from any thread and several times.
    """

    def __init__(self, ledger: Ledger, cancel: Callable[[Batch], None]) -> None:
        size = len(ledger.payloads)
        self.ledger = ledger
        self.outcomes: list[Outcome | None] = [None] * size
        self._cancel = cancel
        self._reports: list[Report | None] = [None] * size
        self._order: list[int] = []
        self._error: PoolError | None = None
        self._changed = threading.Condition()
        self._callbacks: list[Callable[[], None]] = []

    def __len__(self) -> int:
        return len(self.outcomes)

    @property
    def done(self) -> bool:
        """Whether nothing is left to wait for."""
        return len(self._order) == len(self.outcomes) or self._error is not None

    def wait(self, timeout: float | None = None) -> list[Report]:
        """Wait until all work has ended and return the reports, in the order of the payloads.

        Raises TimeoutError after `timeout` seconds (the work goes on; wait again or cancel), PoolError when the pool
        cannot run any work at all.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self.done, timeout):
                raise TimeoutError(
                    f"{len(self) - len(self._order)} of {len(self)} items had not ended after {timeout} s; "
                    "wait again, or cancel() the batch."
                )
        return self._all()

    async def reports(self) -> list[Report]:
        """`wait` for asyncio: the event loop goes on meanwhile. Cancelling the task leaves the batch running."""
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[None] = loop.create_future()

        def end() -> None:
            if not ended.done():
                ended.set_result(None)

        def wake() -> None:
            with suppress(RuntimeError):  # the loop was closed meanwhile: nobody waits
                loop.call_soon_threadsafe(end)

        with self._changed:
            finished = self.done
            if not finished:
                self._callbacks.append(wake)
        if not finished:
            try:
                await ended
            finally:
                with self._changed, suppress(ValueError):
                    self._callbacks.remove(wake)
        return self._all()

    def as_completed(self, timeout: float | None = None) -> Iterator[tuple[int, Report]]:
        """Yield (index, report) as items end, each once for each call. Raises as `wait` does."""
        until = None if timeout is None else monotonic() + timeout
        seen = 0
        while seen < len(self):
            with self._changed:
                left = None if until is None else max(0.0, until - monotonic())
                if not self._changed.wait_for(lambda seen=seen: len(self._order) > seen or self.done, left):  # type: ignore[misc]
                    raise TimeoutError(f"{len(self) - seen} of {len(self)} items had not ended after {timeout} s.")
                fresh = self._order[seen:]
            if self._error is not None and not fresh:
                raise self._error
            seen += len(fresh)
            for index in fresh:
                yield index, self._report(index)

    def __iter__(self) -> Iterator[tuple[int, Report]]:
        return self.as_completed()

    def cancel(self) -> None:
        """Drop what has not started and kill what is running: reports of `Fault.CANCELLED`. What has ended stays."""
        self._cancel(self)

    def _all(self) -> list[Report]:
        if self._error is not None:
            raise self._error
        return [self._report(index) for index in range(len(self))]

    def _report(self, index: int) -> Report:
        report = self._reports[index]
        if report is None:
            outcome = self.outcomes[index]
            assert outcome is not None
            report = self._reports[index] = _open(outcome)
        return report

    def settle(self, settled: Sequence[tuple[int, Outcome]]) -> None:
        """Note outcomes; of several for the same item the first counts."""
        with self._changed:
            for index, outcome in settled:
                if self.outcomes[index] is None:
                    self.outcomes[index] = outcome
                    self.ledger.payloads[index] = b""
                    self._order.append(index)
            self._tell()

    def fail(self, error: PoolError) -> None:
        """End the batch with an error of the pool itself."""
        with self._changed:
            if not self.done:
                self._error = error
            self._tell()

    def _tell(self) -> None:
        self._changed.notify_all()
        if self.done:
            callbacks, self._callbacks = self._callbacks, []
            for callback in callbacks:
                callback()


def _open(outcome: Outcome) -> Report:
    """Unpickle the value; one that cannot be is an error of this row alone."""
    fault, data, detail, stage, cpu_ns, wall_ns, attempts = outcome
    value: object = None
    if fault is None:
        try:
            value = pickle.loads(data)  # noqa: S301 - pickled by our own worker
        except Exception as error:  # noqa: BLE001 - whatever a class's __setstate__ raises
            fault, detail = Fault.ERROR, f"the result cannot be unpickled: {describe(error)}"
    return Report(value, fault, detail, stage, cpu_ns / 1e9, wall_ns / 1e9, attempts)
