"""Stopping in good order when a signal asks for it."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(BaseException):
    """A signal asks the command to end. Not an Exception: nothing that catches a scorer's errors may catch it."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Raise Stopped in here when a signal comes. A second one ends the process at once."""

    def stop(number: int, _: FrameType | None) -> None:
        for some in SIGNALS:
            signal.signal(some, signal.SIG_DFL)
        raise Stopped(number)

    before = {some: signal.getsignal(some) for some in SIGNALS}
    for some in SIGNALS:
        if before[some] is not signal.SIG_IGN:  # nohup, or a shell's background job
            signal.signal(some, stop)
    try:
        yield
    finally:
        for some, handler in before.items():
            signal.signal(some, handler)
