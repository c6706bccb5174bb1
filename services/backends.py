"""Who does the work of each kind: this process, peers over HTTP, workers over the queue.

Peers and queue are asked over `client/transport.py`, on an event loop of their own in a thread: what is written for
them and read from them is never in the way of the service's own loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING

from ..core.rollout import Rollout
from ..core.verdict import Verdict
from .settings import QUEUE, Settings

if TYPE_CHECKING:
    from ..client.transport import Request, Transport

CLOSE_S = 5.0


class Backends:
    """The peers and the queue of a service, each connected to when it is first needed."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._transports: dict[str, Transport] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()
        self.queue: Callable[[], Transport] | None = None
        """Makes the transport to the workers; set by whoever opens the queue."""

    def start(self, target: str, recipe: str, rollouts: Sequence[Rollout], timeout_s: float) -> Future[list[Verdict]]:
        """Ask for verdicts, from any thread."""
        from ..client.transport import Request

        request = Request(recipe=recipe, rollouts=rollouts, key=uuid.uuid4().hex, timeout_s=timeout_s)
        return asyncio.run_coroutine_threadsafe(self._ask(target, request), self._running())

    async def _ask(self, target: str, request: Request) -> list[Verdict]:
        transport = self._transports.get(target)
        if transport is None:
            transport = self._transports[target] = self._connect(target)
        return await transport.score(request)

    def _connect(self, target: str) -> Transport:
        if target == QUEUE:
            assert self.queue is not None, "the service opens its queue before it takes requests"
            return self.queue()
        from ..client.http import HttpTransport

        return HttpTransport(target, api_key=self._settings.peer_key)

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=_run, args=(self._loop,), name="rewarden-peers", daemon=True).start()
            return self._loop

    def close(self) -> None:
        """Give back all connections. Call it off the event loop."""
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is None:
            return

        async def close_all() -> None:
            for transport in self._transports.values():
                await transport.close()

        with contextlib.suppress(Exception):  # a peer that is gone has nothing to give back
            asyncio.run_coroutine_threadsafe(close_all(), loop).result(CLOSE_S)
        loop.call_soon_threadsafe(loop.stop)


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.close()
