"""The loop thread ends, whatever runs on it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator

import pytest

from rewarden.client.loop import LoopThread

PATIENCE_S = 60.0


async def deaf(times: int) -> None:
    """Takes so many cancellations for something else, as a library may that waits for a time-out meanwhile."""
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            times -= 1
            if times < 0:
                raise


async def nothing() -> None:
    """The last thing that is done."""


@pytest.mark.parametrize("times", [0, 1, 3])
def test_close_ends_what_lost_its_cancellation(times: int) -> None:
    """Closing ends the thread though a task did not notice that it was cancelled."""
    loop = LoopThread("deaf")
    loop.start(deaf(times))
    closing = threading.Thread(target=loop.close, args=(nothing(),), daemon=True)
    closing.start()
    closing.join(PATIENCE_S)
    assert not closing.is_alive()
    assert not [thread for thread in threading.enumerate() if thread.name == "deaf"]


def test_a_stream_that_is_left_ends() -> None:
    """A stream that is given up while it waits ends, though it does not notice that it was cancelled."""

    async def stream() -> AsyncGenerator[int]:
        yield 1
        await deaf(2)

    loop = LoopThread("left")

    def leave() -> None:
        items = loop.iterate(stream())
        assert next(items) == 1
        items.close()  # type: ignore[attr-defined]
        loop.close(nothing())

    leaving = threading.Thread(target=leave, daemon=True)
    leaving.start()
    leaving.join(PATIENCE_S)
    assert not leaving.is_alive()
