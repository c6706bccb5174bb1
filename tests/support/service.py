"""Real services on loopback for tests: uvicorn in a thread of this process, or the command in a process of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from rewarden.services import server
from rewarden.services.server import Server
from rewarden.services.service import Service
from rewarden.services.settings import Settings

PATIENCE_S = 60.0
"""How long a test waits for what should come soon."""


class Running(str):
    """The address of a running service, with its parts within reach."""

    __slots__ = ("server", "service")
    server: Server
    service: Service


@contextmanager
def running_service(*, ready: bool = True, **settings: Any) -> Iterator[Running]:
    """The address of a service on a free port, while it runs.

    `settings` are those of `Settings`. With `ready` it waits for `/readyz`.
    """
    made = Settings(**{"port": 0, "workers": 1, "drain_s": 5.0, **settings})
    bound = server.listen(made.host, made.port)
    with bound:
        running = server.make(made)
        failures: list[BaseException] = []

        def serve() -> None:
            try:
                running.run(sockets=[bound])
            except BaseException as error:  # noqa: BLE001 - the test's thread must hear of it
                failures.append(error)

        thread = threading.Thread(target=serve, name="test-service", daemon=True)
        thread.start()
        url = Running(server.url_of(bound))
        url.server, url.service = running, running.service
        try:
            until(lambda: running.started or failures)
            if failures:
                raise failures[0]
            if ready:
                until(lambda: httpx.get(f"{url}/readyz").status_code == 200)
            yield url
        finally:
            running.stop()
            thread.join(PATIENCE_S)
            assert not thread.is_alive(), "the service did not stop"


def until(happens: Any, seconds: float = PATIENCE_S) -> None:
    """Wait until `happens()` is true."""
    end = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < end, "waited for too long"
        time.sleep(0.01)
