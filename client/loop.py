"""An event loop on a thread of its own, so that code without one, or on another one, can use what needs one."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Iterator
from typing import Any, TypeVar, cast

from ..core.errors import ServiceError

T = TypeVar("T")

END_S = 10.0
"""How long what is cancelled is waited for."""

AHEAD = 1024
"""Items of a stream that are fetched before they are asked for."""


class LoopThread:
    """Runs coroutines on its own loop from any thread, until it is closed."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._lock = threading.Lock()
        self._open = True
        self._thread.start()

    def start(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Begin `work`."""
        with self._lock:
            if self._open and threading.current_thread() is not self._thread:
                return asyncio.run_coroutine_threadsafe(work, self._loop)
        work.close()
        raise ServiceError("the client is closed" if not self._open else "the client's own thread cannot wait for it")

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What `work` returns. An interrupt while waiting cancels it."""
        future = self.start(work)
        try:
            return future.result()
        except BaseException as error:
            future.cancel()
            if isinstance(error, concurrent.futures.CancelledError) and not self._open:
                raise ServiceError("the client was closed while it was in use") from None
            raise

    def iterate(self, stream: AsyncGenerator[T]) -> Iterator[T]:
        """The items of a stream as they come."""
        lists = _in_lists(stream)
        try:
            while found := self.run(_next(lists)):
                yield from found
        finally:
            if self._open:
                self.run(lists.aclose())

    def close(self, last: Coroutine[Any, Any, None]) -> None:
        """Cancel what runs, await `last`, and end the loop with its thread. Closing again is harmless."""
        with self._lock:
            if not self._open:
                last.close()
                return
            self._open = False
        try:
            asyncio.run_coroutine_threadsafe(_end(last), self._loop).result()
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()


async def _in_lists(stream: AsyncGenerator[T]) -> AsyncGenerator[list[T]]:
    """A stream as lists of what has come so far: one hop between threads for each list, not for each item."""
    queue: asyncio.Queue[T | None] = asyncio.Queue(AHEAD)

    async def fill() -> None:
        try:
            async for item in stream:
                await queue.put(item)
        except Exception:
            await queue.put(None)
            raise
        finally:
            await stream.aclose()
        await queue.put(None)

    filling = asyncio.create_task(fill())
    try:
        while True:
            found = [await queue.get()]
            while not queue.empty():
                found.append(queue.get_nowait())
            items = [item for item in found if item is not None]
            if items:
                yield items
            if len(items) < len(found):
                await filling
                return
    finally:
        await end({filling})


async def _next(lists: AsyncIterator[list[T]]) -> list[T]:
    return await anext(lists, [])


async def end(tasks: set[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait for them, for END_S at most.

    Again and again: a cancellation that meets a time-out may be taken for it by what the task awaits, and is lost.
    """
    until = asyncio.get_running_loop().time() + END_S
    while tasks and asyncio.get_running_loop().time() < until:
        for task in tasks:
            task.cancel()
        done, tasks = await asyncio.wait(tasks, timeout=0.5)
        for task in done:
            if not task.cancelled():
                task.exception()  # nobody else will ask for it


async def _end(last: Coroutine[Any, Any, None]) -> None:
    await end(asyncio.all_tasks() - {cast("asyncio.Task[Any]", asyncio.current_task())})
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(last, END_S)
    await asyncio.get_running_loop().shutdown_asyncgens()
