"""Frames and the shared page."""

from __future__ import annotations

import os
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewarden.core.pool import system
from rewarden.core.pool.protocol import PAGE_SIZE, FrameBuffer, FrameError, Page, Results, encode

results = st.tuples(
    st.integers(1),
    st.lists(st.tuples(st.integers(0, 4), st.binary(max_size=50), st.text(max_size=5), st.integers(0), st.integers(0))),
    st.booleans(),
)


@given(st.lists(results, max_size=5), st.integers(1, 40))
def test_frames_survive_any_cut(messages: list[Results], step: int) -> None:
    """However the bytes are cut on their way, the same messages come out, in order, each once."""
    stream = b"".join(encode(message) for message in messages)
    buffer = FrameBuffer()
    found = []
    for start in range(0, len(stream), step):
        buffer.feed(stream[start : start + step])
        found += buffer.frames()
    assert found == messages


@given(results, st.binary(min_size=12, max_size=60))
def test_bytes_that_are_no_frame_are_noticed(message: Results, noise: bytes) -> None:
    """What a program writes into a socket that is not its own is never taken for a result."""
    if noise.startswith(b"RWD1"):
        return
    buffer = FrameBuffer()
    buffer.feed(noise + encode(message))
    with pytest.raises(FrameError):
        buffer.frames()


@given(results, st.integers(0, 10**6), st.integers(1, 255))
def test_a_changed_byte_is_noticed(message: Results, position: int, change: int) -> None:
    """A frame with one byte changed is refused, or waits for bytes that never come."""
    data = bytearray(encode(message))
    data[position % len(data)] ^= change
    buffer = FrameBuffer()
    buffer.feed(bytes(data))
    with suppress(FrameError):
        assert buffer.frames() == []


@given(st.text(max_size=100))
def test_the_page_keeps_the_stage(name: str) -> None:
    """The other side reads what was written, up to 64 bytes, whatever the text is."""
    fd = system.anonymous_file()
    os.ftruncate(fd, PAGE_SIZE)
    ours, theirs = Page(fd), Page(fd)
    try:
        ours.write_stage(name.encode())
        assert theirs.stage.encode()[:60] == name.encode()[:64].decode("utf-8", "replace").encode()[:60]
    finally:
        ours.close()
        theirs.close()
        os.close(fd)
