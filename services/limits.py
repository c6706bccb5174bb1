"""Admission: what is full says so, before a body is read, rather than to let others wait.

How many rollouts a request has is known once its body is read. So a key whose rate is used up, or a service that has
enough rollouts under way, refuses the next request, not the one that went over.
"""

from __future__ import annotations

import math
import threading
import time
from contextvars import ContextVar
from typing import TYPE_CHECKING

from .keys import Key
from .problems import Problem
from .reject import declared_length, reject
from .settings import Settings

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from .service import Service

ADMITTED = frozenset({"POST", "PUT", "PATCH"})
"""Methods that bring work. The others are answered however full the service is."""

LONGEST_S = 30
"""The most that a client is told to wait."""


class Ticket:
    """One request that was admitted."""

    __slots__ = ("key", "length", "rollouts")

    def __init__(self, key: Key | None, length: int) -> None:
        self.key = key
        self.length = length
        self.rollouts = 0


TICKET: ContextVar[Ticket | None] = ContextVar("ticket", default=None)
"""That of the request that is being answered."""


class _Use:
    """What one key is using, and what it has left. In debt it is refused."""

    __slots__ = ("balance", "requests", "since")

    def __init__(self, balance: float, now: float) -> None:
        self.requests = 0
        self.balance = balance
        self.since = now


class Admission:
    """Counts what is under way. May be used from any thread."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._keys: dict[str, _Use] = {}
        self._ended = 0
        self._since = time.monotonic()
        self._rate = 0.0
        self.requests = 0
        self.rollouts = 0
        self.bytes = 0

    def admit(self, key: Key | None, length: int) -> Ticket:
        """Let a request in, or raise the Problem that says when to come again."""
        settings = self._settings
        with self._lock:
            if (
                self.requests >= settings.max_requests
                or self.rollouts >= settings.max_rollouts_in_flight
                or (self.bytes and self.bytes + length > settings.max_bytes_in_flight)
            ):
                raise _later("busy", f"{self.requests} requests with {self.rollouts} rollouts are under way",
                             self._wait_s())  # fmt: skip
            if key is not None:
                self._admit_key(key)
            self.requests += 1
            self.bytes += length
        return Ticket(key, length)

    def _admit_key(self, key: Key) -> None:
        use = self._use(key)
        if key.max_requests is not None and use.requests >= key.max_requests:
            raise _later("rate_limited", f"the key has {use.requests} requests under way, as many as it may",
                         self._wait_s())  # fmt: skip
        if key.rollouts_per_minute is not None and use.balance <= 0:
            wait = (1 - use.balance) * 60 / key.rollouts_per_minute
            raise _later("rate_limited", f"the key may send {key.rollouts_per_minute} rollouts a minute", wait)
        use.requests += 1

    def _use(self, key: Key) -> _Use:
        now = time.monotonic()
        most = key.rollouts_per_minute or 0
        use = self._keys.get(key.id)
        if use is None:
            use = self._keys[key.id] = _Use(most, now)
        use.balance = min(most, use.balance + (now - use.since) * most / 60)
        use.since = now
        return use

    def count(self, ticket: Ticket, rollouts: int) -> None:
        """The body has been read, and has this many."""
        with self._lock:
            ticket.rollouts += rollouts
            self.rollouts += rollouts
            if ticket.key is not None and ticket.key.rollouts_per_minute is not None:
                self._use(ticket.key).balance -= rollouts

    def release(self, ticket: Ticket) -> None:
        """The request is answered."""
        with self._lock:
            self.requests -= 1
            self.bytes -= ticket.length
            self.rollouts -= ticket.rollouts
            if ticket.key is not None:
                self._keys[ticket.key.id].requests -= 1
            self._ended += 1
            now = time.monotonic()
            if now - self._since >= 1:
                self._rate = (self._rate + self._ended / (now - self._since)) / 2
                self._ended, self._since = 0, now

    def _wait_s(self) -> float:
        """About how long until all that is under way has ended, at the pace of the last seconds."""
        return self.requests / self._rate if self._rate else 1.0


def _later(code: str, detail: str, wait_s: float) -> Problem:
    seconds = max(1, min(LONGEST_S, math.ceil(wait_s)))
    return Problem(code, f"{detail}; try again in {seconds} s", headers={"Retry-After": str(seconds)})


class Limits:
    """The layer that admits requests which bring work."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self.app = app
        self.service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] not in ADMITTED:
            await self.app(scope, receive, send)
            return
        service = self.service
        try:
            if service.draining:
                raise Problem("draining", "the service is stopping; send this to another", headers={"Retry-After": "1"})
            length = declared_length(scope)
            most = service.settings.max_body_bytes
            if length is not None and length > most:
                raise too_large(most)
            ticket = service.admission.admit(scope.get("rewarden.key"), most if length is None else length)
        except Problem as problem:
            await reject(scope, receive, send, problem)
            return
        token = TICKET.set(ticket)
        try:
            await self.app(scope, receive, send)
        finally:
            TICKET.reset(token)
            service.admission.release(ticket)


def too_large(most: int) -> Problem:
    """For a body over the limit."""
    return Problem(
        "too_large", f"a body may have {most:,} bytes, also when it is unpacked; send fewer rollouts at once"
    )
