"""What runs in a worker: receive a frame, run the handler on each payload, send the results back.

Covered: telling the parent, through the shared page, what is being worked on; turning whatever a handler raises into a
result; noticing what a handler left behind (threads, processes), after which the worker ends itself so that it cannot
touch a neighbour. Not covered: limits of time and memory watched from outside (`dispatcher.py`), and undoing what a
handler does to its own modules: a handler is the user's code and may keep state on purpose.
"""

from __future__ import annotations

import _thread
import faulthandler
import os
import pickle
import signal
import socket
import sys
import time
from collections.abc import Callable
from typing import Final

from ..errors import describe
from . import protocol, system
from .protocol import CPU, FINISHED, LOADING, PAGE_SIZE, REVOKED, STAGE_LENGTH, STARTED, TICKET, Kind, Page, Result

Handler = Callable[[object], object]

FLUSH_NS: Final = 10_000_000
"""Results wait in the worker for at most this long before they are sent, unless one item takes longer."""
FLUSH_BYTES: Final = 1 << 18
EXIT_RETIRED: Final = 0
"""The worker ended itself after saying so in its last frame."""
EXIT_UNREACHABLE: Final = 81
"""The worker could not send its results: what it ran closed or spoiled its socket."""
EXIT_UNREADABLE: Final = 82
"""The worker could not read its work: same cause."""

_page: Page | None = None
_stage = ""


def stage(name: str) -> None:
    """Name what the current payload's work is about now ("reference", "answer"); a no-op outside a worker.

    The name is in `Report.stage` also when the worker is killed: it says whose fault that was. At most 64 bytes of
    UTF-8 are kept then. Costs about a microsecond.
    """
    global _stage  # noqa: PLW0603 - one worker process, one item at a time
    if _page is None:
        return
    _stage = str(name)
    _page.write_stage(name.encode("utf-8", "replace"))


def _text(message: str) -> bytes:
    return message.encode("utf-8", "backslashreplace")


def _hint(error: BaseException) -> str:
    """What to do about a class or function that the worker does not find."""
    if isinstance(error, (AttributeError, ImportError)) and "__main__" in str(error):
        return " (workers do not import the main script: move it to a module)"
    return ""


class Worker:
    """The state of one worker process: its socket, its page, and the handlers that it has loaded."""

    def __init__(self, sock: socket.socket, page_fd: int) -> None:
        self._sock = sock
        self._page = Page(page_fd)
        self._words = self._page.words
        self._pid = os.getpid()
        self._handlers: dict[bytes, Handler] = {}
        self._ticket = 0
        # A fatal signal leaves its traceback behind the page; the parent makes it the crash's detail.
        os.lseek(page_fd, PAGE_SIZE, os.SEEK_SET)
        faulthandler.enable(page_fd, all_threads=False)

    def serve(self) -> None:
        """Work until the parent closes its end of the socket."""
        global _page  # noqa: PLW0603 - `stage` is a plain function of the module
        _page = self._page
        while True:
            try:
                work = protocol.receive(self._sock)
            except (OSError, protocol.FrameError, ValueError):
                os._exit(EXIT_UNREADABLE)
            if work is None:
                return
            first, digest, pickled, path, payloads = work
            if first != self._ticket + 1:
                os._exit(EXIT_UNREADABLE)  # what we ran has read a frame that was for us
            if digest not in self._handlers:
                try:
                    self._load(digest, pickled, path)
                except BaseException as error:  # noqa: BLE001 - whatever the handler's module raises
                    self._refuse(error, len(payloads))
                    continue
            self._run(self._handlers[digest], payloads)

    def _load(self, digest: bytes, pickled: bytes | None, path: list[str]) -> None:
        self._words[LOADING] = time.monotonic_ns()
        try:
            sys.path.extend(entry for entry in path if entry not in sys.path)
            handler = pickle.loads(pickled or b"")  # noqa: S301 - the parent's own handler
            if not callable(handler):
                raise TypeError(f"{type(handler).__name__} is not callable")
            self._handlers[digest] = handler
        finally:
            self._words[LOADING] = 0

    def _refuse(self, error: BaseException, count: int) -> None:
        text = _text(f"the handler cannot be loaded in a worker: {describe(error)}{_hint(error)}")
        self._ticket += count
        self._send([(int(Kind.UNLOADED), text, "", 0, 0)] * count, retire=False)

    def _run(self, handler: Handler, payloads: list[bytes]) -> None:
        words = self._words
        threads = _Threads()
        results: list[Result] = []
        size = 0
        flushed = time.monotonic_ns()
        for payload in payloads:
            self._ticket += 1
            if self._ticket <= words[REVOKED]:
                results.append((int(Kind.SKIPPED), b"", "", 0, 0))
                continue
            result, now = self._item(handler, payload)
            results.append(result)
            retire = result[0] == Kind.MEMORY or threads.linger() or _has_children()
            size += len(result[1])
            if retire or now - flushed > FLUSH_NS or size > FLUSH_BYTES:
                self._send(results, retire=retire)
                results = []
                size = 0
                flushed = now
        if results:
            self._send(results, retire=False)

    def _item(self, handler: Handler, payload: bytes) -> tuple[Result, int]:
        """Work on one payload; also says what time it is (monotonic, ns)."""
        global _stage  # noqa: PLW0603 - see `stage`
        words = self._words
        _stage = ""
        words[STAGE_LENGTH] = 0
        words[STARTED] = start = time.monotonic_ns()
        words[CPU] = cpu = time.process_time_ns()
        words[TICKET] = self._ticket
        kind = Kind.OK
        try:
            data = _call(handler, payload)
        except MemoryError:
            kind, data = Kind.MEMORY, b"MemoryError"  # nothing that would need memory
        except BaseException as error:  # noqa: BLE001 - sys.exit and KeyboardInterrupt included
            kind, data = Kind.ERROR, _text(describe(error) + _hint(error))
        if os.getpid() != self._pid:
            # A process that the handler forked came back through here: it is no worker.
            os._exit(0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        spent = time.process_time_ns() - cpu
        now = time.monotonic_ns()
        words[FINISHED] = self._ticket
        words[TICKET] = 0
        return (int(kind), data, _stage, spent, now - start), now

    def _send(self, results: list[Result], *, retire: bool) -> None:
        try:
            self._sock.sendall(protocol.encode((self._ticket - len(results) + 1, results, retire)))
        except (OSError, ValueError):
            os._exit(EXIT_UNREACHABLE)
        if retire:
            os._exit(EXIT_RETIRED)


def _call(handler: Handler, payload: bytes) -> bytes:
    """Run the handler and pickle what it returns; what cannot be pickled is an error that says so."""
    value = handler(pickle.loads(payload))  # noqa: S301 - the parent's own payload
    try:
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, TypeError, AttributeError, ValueError) as error:
        raise TypeError(f"the result does not pickle: {describe(error)}") from None


class _Threads:
    """Notices Python threads that outlive the item that started them."""

    def __init__(self) -> None:
        self._native = system.native_threads()
        self._python = _thread._count()  # noqa: SLF001 - threading's own count misses raw threads

    def linger(self) -> bool:
        """Whether there are more threads than there were.

        The kernel counts a thread at once, Python when it first runs, which takes a while on a busy machine: up to a
        quarter of a second is spent on telling. Threads that Python never counts belong to a C library, which keeps
        them for later: they are accepted, and not asked about again.
        """
        if system.native_threads() <= self._native:
            return _thread._count() > self._python  # noqa: SLF001
        for attempt in range(10):
            time.sleep(0.00025 * 2**attempt)
            if _thread._count() > self._python:  # noqa: SLF001
                return True
            if system.native_threads() <= self._native:
                return False
        self._native = system.native_threads()
        return False


def _has_children() -> bool:
    """Whether a process that the handler started is still there, running or not waited for."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True
