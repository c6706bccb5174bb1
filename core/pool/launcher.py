"""The parent's handle on the zygote: start it, tell it to fork and to reap, hear what became of its workers.

Must be used from one thread that lives as long as the zygote should: the kernel sends the death signal when the
*thread* that started a process ends.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from time import monotonic, monotonic_ns
from typing import Final

from .protocol import RECORD, Record
from .zygote import BOOT, Config
from .zygote import __name__ as zygote_module

_ENVIRONMENT: Final = {
    # A verdict may depend on the order of a set: let it be the same order in every run.
    "PYTHONHASHSEED": "0",
    # One worker is one CPU's worth of work; and a fork copies no helper threads of numeric libraries.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
"""Set for the workers unless the user has set them."""


def import_path() -> list[str]:
    """The parent's sys.path, with the current folder spelled out."""
    return [entry or os.getcwd() for entry in sys.path]  # noqa: PTH109 - as text


class Launcher:
    """One zygote process. Raises OSError when it cannot be started."""

    def __init__(self, preload: Sequence[str], memory_bytes: int) -> None:
        config = Config(
            module=zygote_module,
            path=import_path(),
            preload=list(preload),
            memory_bytes=memory_bytes,
            parent=os.getpid(),
        )
        if not sys.executable:
            raise OSError("sys.executable is empty: this Python is embedded and cannot start another")
        self.control, theirs = socket.socketpair()
        self.ready = False
        self.ready_at = 0
        self.started = monotonic()
        self._received = bytearray()
        self._complaint: str | None = None
        try:
            with theirs:
                self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and program
                    [sys.executable, "-P", "-c", BOOT, str(theirs.fileno())],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                    env={**_ENVIRONMENT, **os.environ},
                    process_group=0,  # the terminal's Ctrl-C is for the parent
                )
        except BaseException:
            self.control.close()
            raise
        assert self._process.stdin is not None
        with contextlib.suppress(OSError), self._process.stdin as stdin:  # if it died, its socket says so
            stdin.write(marshal.dumps(dict(config)))
        self.control.setblocking(False)

    def spawn(self, worker: int, sock: socket.socket, page_fd: int) -> None:
        """Ask for a worker with these two descriptors. Raises OSError when the zygote is gone or does not listen."""
        socket.send_fds(self.control, [RECORD.pack(Record.SPAWN, worker, 0)], [sock.fileno(), page_fd])

    def reap(self, worker: int) -> None:
        """Let go of a dead worker. Raises OSError likewise."""
        self.control.send(RECORD.pack(Record.REAP, worker, 0))

    def records(self) -> Iterator[tuple[int, int, int]]:
        """What it has said since: (kind, worker, value). Raises EOFError when it is gone, after its last words."""
        gone = False
        while not gone:
            try:
                data = self.control.recv(1 << 16)
            except BlockingIOError:
                break
            except OSError:
                data = b""
            gone = not data
            self._received += data
        while len(self._received) >= RECORD.size:
            kind, worker, value = RECORD.unpack_from(self._received)
            text_end = RECORD.size + (value if kind == Record.UNUSABLE else 0)
            if len(self._received) < text_end:
                break
            if kind == Record.UNUSABLE:
                self._complaint = self._received[RECORD.size : text_end].decode("utf-8", "replace")
            del self._received[:text_end]
            if kind == Record.READY:
                self.ready, self.ready_at = True, monotonic_ns()
            yield kind, worker, value
        if gone:
            raise EOFError

    @property
    def complaint(self) -> str | None:
        """Why it cannot serve, when it said so before it left."""
        return self._complaint

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def stop(self, patience_s: float) -> int | None:
        """Let it kill its workers and leave; kill it after `patience_s`. Returns its exit status."""
        self.control.close()
        try:
            self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        return self._process.returncode

    def forget(self) -> None:
        """In a forked child: close our copy of the socket, and leave the process to its real parent."""
        os.close(self.control.detach())
        self._process.returncode = 0
