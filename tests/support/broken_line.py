"""A line to a server that a test may cut, stall and mend: a TCP proxy, which can also speak TLS to the near side."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_CHUNK = 4096

_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER with no time: closing sends a reset."""


class BrokenLine:
    """Passes bytes between whoever connects to `port` and the server at `upstream`, while it is whole."""

    def __init__(self, upstream: int, tls: ssl.SSLContext | None = None) -> None:
        self.upstream = upstream
        self.port = 0
        self.cuts = 0
        """Connections that were cut so far."""
        self._tls = tls
        self._left: int | None = None
        self._flows = asyncio.Event()
        self._lines: set[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = set()
        self._loop = asyncio.new_event_loop()
        self._server: asyncio.Server | None = None
        self._thread = threading.Thread(target=self._loop.run_forever, name="test-line", daemon=True)

    def start(self) -> None:
        """Listen on a free port."""
        self._thread.start()
        self._ask(self._listen())

    def cut(self) -> None:
        """Reset every connection; new ones are served."""
        self._ask(self._cut())

    def cut_after(self, count: int) -> None:
        """Reset every connection once so many more bytes have come back from the server: in the middle of an answer."""
        self._ask(self._set("_left", count))

    @contextmanager
    def stalled(self) -> Iterator[None]:
        """Connections stay, and nothing passes."""
        self._loop.call_soon_threadsafe(self._flows.clear)
        yield
        self._loop.call_soon_threadsafe(self._flows.set)

    def close(self) -> None:
        """Cut it for good."""
        self._ask(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def _ask(self, work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _listen(self) -> None:
        self._flows.set()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _set(self, name: str, value: Any) -> None:
        setattr(self, name, value)

    async def _cut(self) -> None:
        for near, far in list(self._lines):
            self.cuts += 1
            near.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            near.transport.abort()
            far.transport.abort()

    async def _end(self) -> None:
        assert self._server is not None
        self._server.close()
        self._flows.set()
        await self._cut()
        while len(asyncio.all_tasks()) > 1:
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()
            await asyncio.sleep(0.01)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.CancelledError):
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.upstream)
            line = (writer, far_writer)
            self._lines.add(line)
            try:
                await asyncio.gather(self._pass(reader, far_writer, False), self._pass(far_reader, writer, True))
            finally:
                self._lines.discard(line)
                writer.transport.abort()
                far_writer.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, back: bool) -> None:
        while data := await reader.read(_CHUNK):
            await self._flows.wait()
            if back and self._left is not None:
                self._left -= len(data)
                if self._left < 0:
                    self._left = None
                    await self._cut()
                    return
            writer.write(data)
            await writer.drain()
        raise ConnectionResetError


@contextmanager
def broken_line(upstream: int, tls: ssl.SSLContext | None = None) -> Iterator[BrokenLine]:
    """A line to that port of loopback."""
    line = BrokenLine(upstream, tls)
    line.start()
    try:
        yield line
    finally:
        line.close()
