"""How the parent, the zygote and the workers talk.

*Frames* carry work to a worker and results back, over one stream socket for each worker. A frame is a header (magic,
length, CRC-32) and a marshalled tuple of plain values: payloads and results travel inside as bytes, pickled one by one,
so that one that cannot be read spoils no other, and so that the dispatcher never runs anybody's unpickling code. Magic
and checksum tell a frame from what a program wrote into descriptors that were not its own.

*Records* of fixed size travel between the parent and the zygote.

The *page* is memory shared by the parent and one worker. The worker notes there what it works on, since when, and at
what CPU time, so that starting an item costs no message and a verdict about a dead worker needs none of its help.

Not covered: other machines (both ends run the same interpreter), and hostile *handlers*: a handler is the user's own
code; only what it is given to read is hostile.
"""

from __future__ import annotations

import marshal
import mmap
import socket
import struct
import zlib
from enum import IntEnum
from typing import Final

FRAME: Final = struct.Struct("<4sII")
MAGIC: Final = b"RWD1"
MAX_FRAME: Final = 1 << 31

RECORD: Final = struct.Struct("<Bxxxii")


class Record(IntEnum):
    """Kinds of records between the parent and the zygote: (kind, worker id, value)."""

    READY = 1
    """Zygote: everything is imported. Value unused."""
    UNUSABLE = 2
    """Zygote: a module to preload cannot be imported. Value: length of the UTF-8 text that follows."""
    SPAWN = 3
    """Parent: fork a worker; its socket and its page travel with the record as descriptors."""
    SPAWNED = 4
    """Zygote: value is the worker's pid."""
    REFUSED = 5
    """Zygote: the fork failed; value is the errno."""
    EXITED = 6
    """Zygote: value is the wait status (negative signal, or exit code). The zombie is kept, so that its pid and its
    process group are nobody else's, until the parent answers."""
    REAP = 7
    """Parent: the group has been killed, forget the worker."""


class Kind(IntEnum):
    """Kinds of results from a worker."""

    OK = 0
    """Data: the pickled value."""
    ERROR = 1
    """Data: UTF-8 text of the exception."""
    MEMORY = 2
    """Data: UTF-8 text. The worker ends itself after sending it."""
    SKIPPED = 3
    """The parent had revoked it before it started."""
    UNLOADED = 4
    """The handler itself cannot be loaded; data: UTF-8 text. Every item of the frame gets it."""


Result = tuple[int, bytes, str, int, int]
"""Kind, data, stage, CPU ns, wall ns."""
Results = tuple[int, list[Result], bool]
"""Ordinal of the first item, results in the order of the items, and whether the worker ends itself now (threads or
processes lingered). Both sides check ordinals: a frame that went astray must not shift the answers after it."""
Work = tuple[int, bytes, bytes | None, list[str], list[bytes]]
"""Ordinal of the first item, digest of the handler, its pickle when the worker lacks it, the parent's sys.path with it,
and pickled payloads."""


class FrameError(Exception):
    """What arrived is not a frame."""


def encode(body: Work | Results) -> bytes:
    """Turn a message into a frame."""
    data = marshal.dumps(body)
    return FRAME.pack(MAGIC, len(data), zlib.crc32(data)) + data


class FrameBuffer:
    """Collects bytes as they arrive and cuts complete frames from them."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> None:
        """Add what was received."""
        self._data += data

    def frames(self) -> list[Results]:
        """Take out all complete frames. Raises FrameError at the first bytes that cannot be one."""
        found: list[Results] = []
        data = self._data
        start = 0
        while len(data) - start >= FRAME.size:
            magic, length, crc = FRAME.unpack_from(data, start)
            if magic != MAGIC or length > MAX_FRAME:
                raise FrameError("bad header")
            end = start + FRAME.size + length
            if len(data) < end:
                break
            body = data[start + FRAME.size : end]
            if zlib.crc32(body) != crc:
                raise FrameError("bad checksum")
            found.append(marshal.loads(body))  # noqa: S302 - plain values, and the checksum holds
            start = end
        if start:
            del data[:start]
        return found


def receive(sock: socket.socket) -> Work | None:
    """Wait for one frame on a blocking socket (the worker's side); None when the parent has closed its end."""
    header = sock.recv(FRAME.size, socket.MSG_WAITALL)
    if len(header) < FRAME.size:
        return None
    magic, length, crc = FRAME.unpack(header)
    body = sock.recv(length, socket.MSG_WAITALL) if magic == MAGIC else b""
    if magic != MAGIC or len(body) < length or zlib.crc32(body) != crc:
        raise FrameError("not a frame")
    work: Work = marshal.loads(body)  # noqa: S302 - plain values, and the checksum holds
    return work


TICKET: Final = 0
"""The ordinal of the item being worked on, counted from 1 in each worker; 0 between items."""
STARTED: Final = 1
"""CLOCK_MONOTONIC, in ns, when it started."""
CPU: Final = 2
"""CPU time of the worker, in ns, when it started."""
FINISHED: Final = 3
"""The ordinal of the last item that finished, its result perhaps not sent yet."""
LOADING: Final = 4
"""CLOCK_MONOTONIC, in ns, since when a handler is being loaded; 0 when none is."""
REVOKED: Final = 5
"""Written by the parent: items up to this ordinal that have not started are to be skipped."""
STAGE_LENGTH: Final = 6
_STAGE_AT: Final = 64
_STAGE_MAX: Final = 64
PAGE_SIZE: Final = 4096
"""Beyond it, in the same file, a dying worker leaves the traceback of a fatal signal."""


class Page:
    """The memory that the parent and one worker share; `words` are 64-bit, each written by one side only."""

    def __init__(self, fd: int) -> None:
        self._memory = mmap.mmap(fd, PAGE_SIZE)
        self._view = memoryview(self._memory)
        self.words = self._view[:_STAGE_AT].cast("Q")

    @property
    def stage(self) -> str:
        """The name last written by `write_stage` in the current item."""
        length = min(self.words[STAGE_LENGTH], _STAGE_MAX)
        return bytes(self._view[_STAGE_AT : _STAGE_AT + length]).decode("utf-8", "replace")

    def write_stage(self, name: bytes) -> None:
        """Store a name, cut to 64 bytes."""
        name = name[:_STAGE_MAX]
        self.words[STAGE_LENGTH] = 0
        self._view[_STAGE_AT : _STAGE_AT + len(name)] = name
        self.words[STAGE_LENGTH] = len(name)

    def close(self) -> None:
        """Unmap the memory."""
        self.words.release()
        self._view.release()
        self._memory.close()
