"""A file of lines that a killed run can be picked up from: what is there is read first, then more is appended.

The number of complete lines is the only truth about progress. A last line without its end is cut off.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ..core.errors import DumpError

HOLD = 1 << 20
"""Bytes held back before they should be written."""


class Journal:
    """Appends to a file, or to a stream where `fd` is given. With `resume`, lines that are there can be read first."""

    def __init__(self, path: Path, *, resume: bool = False, fd: int | None = None) -> None:
        self.path = path
        self._held: list[bytes] = []
        self._size = 0
        self._old: BinaryIO | None = None
        self._next: bytes | None = None
        self._at = 0
        self._is_stream = fd is not None
        try:
            if resume and path.exists():
                self._old = path.open("rb")
            self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666) if fd is None else fd
            if self._old is None and not self._is_stream:
                os.ftruncate(self._fd, 0)
        except OSError as error:
            raise _cannot(path, error) from None

    def peek(self) -> bytes | None:
        """The next complete line that is there, without its end; None after the last one."""
        if self._next is None and self._old is not None:
            line = self._old.readline()
            if not line.endswith(b"\n"):
                self._cut()
                return None
            self._next = line[:-1]
        return self._next

    def take(self) -> None:
        """Keep the line that `peek` has shown, and go on to the next."""
        assert self._next is not None
        self._at += len(self._next) + 1
        self._next = None

    def append(self, line: bytes) -> None:
        """Add a line (with its end) behind the lines taken; all others are dropped. It is held until `flush`."""
        if self._old is not None:
            self._cut()
        self._held.append(line)
        self._size += len(line)

    @property
    def is_full(self) -> bool:
        """Whether so much is held that it should be written."""
        return self._size >= HOLD

    def _cut(self) -> None:
        assert self._old is not None
        self._old.close()
        self._old = self._next = None
        try:
            os.ftruncate(self._fd, self._at)
            os.lseek(self._fd, self._at, os.SEEK_SET)
        except OSError as error:
            raise _cannot(self.path, error) from None

    def flush(self) -> None:
        """Hand what is held to the system: from here on a kill of this process does not lose it."""
        if not self._held:
            return
        rest = memoryview(b"".join(self._held))
        # Let go of it first: what interrupts the loop may leave a torn line, behind which nothing may be written.
        self._held, self._size = [], 0
        try:
            while rest:
                rest = rest[os.write(self._fd, rest) :]
        except BrokenPipeError:
            raise  # who reads the stream has had enough, which need not be an error
        except OSError as error:
            raise _cannot(self.path, error) from None

    def finish(self) -> None:
        """Write all, for good: what is on the disk survives the machine."""
        if self._old is not None:
            self._cut()
        self.flush()
        if not self._is_stream:
            try:
                os.fsync(self._fd)
            except OSError as error:
                raise _cannot(self.path, error) from None
        self.close()

    def close(self) -> None:
        """Close without writing what is held."""
        if self._old is not None:
            self._old.close()
        if self._fd >= 0 and not self._is_stream:
            os.close(self._fd)
        self._fd, self._old, self._held = -1, None, []


def lines_of(path: Path) -> Iterator[bytes]:
    """The lines of a finished journal, without their ends."""
    with path.open("rb") as file:
        for line in file:
            yield line[:-1]


_HINTS = {
    errno.ENOSPC: "; free some space",
    errno.EDQUOT: "; raise your quota",
    errno.EFBIG: "; raise the limit on the size of files",
}


def _cannot(path: Path, error: OSError) -> DumpError:
    return DumpError(f"cannot write {path}: {error.strerror}{_HINTS.get(error.errno or 0, '')}")
