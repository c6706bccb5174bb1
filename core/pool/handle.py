"""The parent's end of one worker: its socket, its page, and the items that it has been given and not answered for."""

from __future__ import annotations

import os
import signal
import socket
from collections import deque
from contextlib import suppress
from enum import StrEnum
from time import monotonic_ns
from typing import Final

from . import system
from .batch import Batch
from .protocol import FINISHED, PAGE_SIZE, REVOKED, STARTED, TICKET, FrameBuffer, FrameError, Page, Results, encode

_TRACE_MAX: Final = 4000
_RECEIVE: Final = 1 << 18


class Cause(StrEnum):
    """Why the pool itself ended a worker."""

    CPU = "cpu"
    """Its item was over the CPU budget."""
    DEADLINE = "deadline"
    """Its item was over the wall deadline."""
    MEMORY = "memory"
    """It was over the memory limit."""
    CANCELLED = "cancelled"
    """Its item was cancelled."""
    BROKEN = "broken"
    """It closed its socket, or what it sent is no frame."""
    LOADING = "loading"
    """It did not finish loading a handler."""
    STALLED = "stalled"
    """It had work and did not start it."""
    RECYCLED = "recycled"
    """It had done enough tasks, had grown, was left unclean by an item, or a fresh one was needed."""
    CLOSED = "closed"
    """The pool was closed."""


class Handle:
    """One worker, from the request to fork it until its process is gone.

    Its items have *tickets*: ordinals in the order in which it was given them, counted from 1. It works in that order.
    """

    def __init__(self, number: int, slot: int) -> None:
        self.number = number
        self.slot = slot
        self.pid = 0
        """0 until the zygote has told."""
        self.born_with = 0
        """Resident memory at birth, in bytes."""
        self.born = self.active = monotonic_ns()
        """When it was asked for; when it last showed progress."""
        self.assigned: deque[tuple[Batch, int]] = deque()
        """Items not answered for; the first has ticket `answered` + 1."""
        self.answered = 0
        self.given = 0
        """The last ticket given out."""
        self.revoked = range(0)
        """Tickets that were taken back from it before it started them: somebody else's now."""
        self.chunks: deque[int] = deque()
        """The last ticket of each chunk not fully answered for."""
        self.alone = False
        """It has one item under suspicion, and nothing else before or with it."""
        self.handlers: set[bytes] = set()
        self.cause: Cause | None = None
        """Set when we end it, together with `condemned` and `killed`."""
        self.condemned = 0
        """The ticket it was ended for."""
        self.killed = 0
        """When it was ended, ns; 0 while it lives."""
        self.deaf_since = 0
        """Since when its socket has ended, ns; 0 while it has not."""
        self.weighed = 0
        """When its memory was last looked at, ns."""
        self.grown = False
        """It is to be replaced before it gets more work."""
        self._progress = (0, 0)
        self._buffer = FrameBuffer()
        self._outgoing = bytearray()
        self._page_fd = system.anonymous_file()
        try:
            os.ftruncate(self._page_fd, PAGE_SIZE)
            self.page = Page(self._page_fd)
            self.sock, self._theirs = socket.socketpair()
        except BaseException:
            os.close(self._page_fd)
            raise
        self.words = self.page.words
        self.sock.setblocking(False)

    @property
    def descriptors(self) -> tuple[socket.socket, int]:
        """What the worker itself needs."""
        return self._theirs, self._page_fd

    def delivered(self) -> None:
        """The zygote has the worker's descriptors: close our copy of its socket, so that its end shows on ours."""
        self._theirs.close()

    @property
    def fresh(self) -> bool:
        """It has never been given anything."""
        return self.given == 0

    @property
    def running(self) -> int:
        """The ticket that is being worked on; 0 when none is."""
        ticket = int(self.words[TICKET])
        return ticket if self.answered < ticket <= self.given else 0

    def item(self, ticket: int) -> tuple[Batch, int]:
        """The item with a ticket that has not been answered for."""
        return self.assigned[ticket - self.answered - 1]

    def running_ns(self, now: int) -> int:
        """For how long it has been at its present item; 0 when there is none."""
        return max(0, now - int(self.words[STARTED])) if self.running else 0

    def note_progress(self, now: int) -> None:
        """Update `active` from the page."""
        progress = (int(self.words[TICKET]), int(self.words[FINISHED]))
        if progress != self._progress:
            self._progress = progress
            self.active = now

    def give(self, batch: Batch, indices: list[int], *, alone: bool) -> None:
        """Assign items and send them (the socket takes what it can now; `flush` sends the rest)."""
        ledger = batch.ledger
        work = ledger.work
        known = work.digest in self.handlers
        if not self.assigned:
            self.active = monotonic_ns()
        first = self.given + 1
        self.handlers.add(work.digest)
        self.assigned.extend((batch, index) for index in indices)
        self.given += len(indices)
        self.chunks.append(self.given)
        self.alone = alone
        payloads = [ledger.payloads[index] for index in indices]
        self._outgoing += encode(
            (first, work.digest, None if known else work.pickled, [] if known else work.path, payloads)
        )
        self.flush()

    @property
    def blocked(self) -> bool:
        """Bytes wait for room in the socket."""
        return bool(self._outgoing)

    def flush(self) -> None:
        """Send what waits. A broken socket is left for the exit notice to explain."""
        while self._outgoing:
            try:
                sent = self.sock.send(self._outgoing)
            except BlockingIOError:
                return
            except OSError:
                self._outgoing.clear()
                return
            del self._outgoing[:sent]

    def receive(self) -> tuple[list[Results], bool]:
        """Frames that have arrived completely, and whether more can come.

        Raises FrameError when what arrived is no frame.
        """
        more = True
        received = 0
        while received < 1 << 24:  # then the others have their turn
            try:
                data = self.sock.recv(_RECEIVE)
            except BlockingIOError:
                break
            except OSError:
                data = b""
            if not data:
                more = False
                break
            received += len(data)
            self._buffer.feed(data)
            if len(data) < _RECEIVE:
                break
        return self._buffer.frames(), more

    def drain(self) -> list[Results]:
        """What a dead worker had sent completely."""
        frames: list[Results] = []
        more = True
        with suppress(FrameError):
            while more:
                got, more = self.receive()
                frames += got
                more = more and bool(got)
        return frames

    def answer(self) -> tuple[Batch, int]:
        """Take out the next item that an answer has come for."""
        self.answered += 1
        while self.chunks and self.chunks[0] <= self.answered:
            self.chunks.popleft()
        return self.assigned.popleft()

    def revoke(self) -> list[tuple[Batch, int]]:
        """Take back what has not started; returns those items. A race with its start costs a second run, no more."""
        self.words[REVOKED] = self.given
        started = max(int(self.words[TICKET]), int(self.words[FINISHED]), self.answered)
        if self.given in self.revoked or started >= self.given:
            return []
        self.revoked = range(started + 1, self.given + 1)
        return [self.item(ticket) for ticket in self.revoked]

    def end(self, cause: Cause, ticket: int = 0) -> None:
        """Kill the worker and everything in its process group, now or as soon as its pid is known."""
        if self.cause is None:
            self.cause = cause
            self.condemned = ticket
            self.killed = monotonic_ns()
            self.kill()

    def kill(self) -> None:
        """Send SIGKILL to it and to its group. Safe: until it is reaped by the zygote, its number is nobody else's.

        To both, because what it runs may have put it into another group.
        """
        if self.pid:
            with suppress(OSError):
                os.kill(self.pid, signal.SIGKILL)
            with suppress(OSError):
                os.killpg(self.pid, signal.SIGKILL)

    def last_words(self) -> str:
        """The traceback that a fatal signal left."""
        try:
            text = os.pread(self._page_fd, _TRACE_MAX, PAGE_SIZE).decode("utf-8", "replace")
        except OSError:
            return ""
        return "; ".join([line.strip() for line in text.splitlines() if line.startswith("  File")][:2])

    def close(self) -> None:
        """Give back what the parent holds for it."""
        self.sock.close()
        self._theirs.close()
        self.page.close()
        os.close(self._page_fd)

    def forget(self) -> None:
        """In a forked child: close our copies only."""
        os.close(self.sock.detach())
        if self._theirs.fileno() >= 0:
            os.close(self._theirs.detach())
        os.close(self._page_fd)
