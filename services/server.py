"""Running a service: the socket, the server, and stopping in good order."""

from __future__ import annotations

import gc
import socket
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ..core.errors import ServiceError
from .app import create_app
from .problems import MEDIA_TYPE, Problem
from .settings import Settings

if TYPE_CHECKING:
    from .service import Service

SWITCH_S = 0.0005
"""How long a thread may keep the interpreter from the event loop (Python's own is 5 ms). Reading a large body holds it
longer, whatever this says."""

KEEP_ALIVE_S = 75
"""Longer than clients and proxies keep idle connections, so that they close them, and no request meets a closed one."""


class Protocol(HttpToolsProtocol):
    """HTTP/1.1, with a problem document also for what is no HTTP."""

    def send_400_response(self, msg: str) -> None:
        body = Problem("bad_request", msg).body()
        head = (
            f"HTTP/1.1 400 Bad Request\r\ncontent-type: {MEDIA_TYPE}\r\ncontent-length: {len(body)}\r\n"
            "connection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()


class Server(uvicorn.Server):
    """Told to stop, it first lets requests under way end. Told twice, it stops."""

    def __init__(self, config: uvicorn.Config, service: Service, ready: Callable[[], None] | None) -> None:
        super().__init__(config)
        self.service = service
        self._when_ready = ready
        self._until: float | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await self.service.open()  # here, an error is not yet the framework's
        await super().startup(sockets)
        if self._when_ready is not None:
            self._when_ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        # Not the base class's: it would raise the signal again at the end, and an orderly stop is a success.
        self.stop()

    def stop(self) -> None:
        """Begin to stop; at the second call, do not wait any longer."""
        if self._until is None:
            self.service.drain()
            self._until = time.monotonic() + self.service.settings.drain_s
        else:
            self.should_exit = self.force_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        if self.force_exit:  # the base class leaves it out; workers and the queue would be left behind
            await self.lifespan.shutdown()

    async def on_tick(self, counter: int) -> bool:
        if self._until is not None and (not self.service.admission.requests or time.monotonic() > self._until):
            self.should_exit = True
        return await super().on_tick(counter)


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. Raises ServiceError in one line."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, protocol)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(address)
            bound.listen(2048)
        except BaseException:
            bound.close()
            raise
        return bound
    except OSError as error:
        raise ServiceError(
            f"cannot listen on {host}:{port}: {error.strerror or error}; choose another with --port"
        ) from None


def url_of(bound: socket.socket) -> str:
    """Where a socket can be reached."""
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def make(settings: Settings, *, ready: Callable[[], None] | None = None) -> Server:
    """A server that is not running yet."""
    app = create_app(settings)
    config = uvicorn.Config(
        app,
        http=Protocol,
        ws="none",
        loop="uvloop",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=5,
    )
    return Server(config, app.state.service, ready)


def run(settings: Settings, *, ready: Callable[[str], Any]) -> None:
    """Serve until a signal asks to stop. `ready` is told the address once requests are taken."""
    bound = listen(settings.host, settings.port)
    with bound:
        server = make(settings, ready=lambda: ready(url_of(bound)))
        sys.setswitchinterval(SWITCH_S)
        # Rollouts come and go by the thousand, and none is part of a cycle.
        gc.freeze()
        gc.set_threshold(50_000, 20, 20)
        server.run(sockets=[bound])
