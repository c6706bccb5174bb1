"""What is full says so at once, to those who still send too, and what was let in goes on."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import service_scorers
from problem_document import problem
from service import Running, running_service, until

from rewarden import Recipe
from rewarden.services import keys
from rewarden.services.limits import Admission
from rewarden.services.problems import Problem
from rewarden.services.settings import Settings

WAIT = {"recipe": "gated", "rollouts": [{"completion": "wait"}]}
FREE = {"recipe": "gated", "rollouts": [{"completion": "free"}]}


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    """Threads for requests that wait."""
    with ThreadPoolExecutor(32) as found:
        yield found


def post(url: str, sent: Any, **more: Any) -> httpx.Response:
    """Ask for scores."""
    return httpx.post(f"{url}/v1/score", json=sent, timeout=60, **more)


def test_full_service(gated: dict[str, Recipe], threads: ThreadPoolExecutor) -> None:
    """At its limit of requests a service answers 429 with Retry-After; those under way are answered all the same."""
    with running_service(recipes=gated, max_requests=2) as url:
        waiting = [threads.submit(post, url, WAIT) for _ in range(2)]
        until(lambda: url.service.admission.rollouts == 2)
        refused = post(url, FREE)
        problem(refused, 429, "busy")
        assert int(refused.headers["retry-after"]) >= 1
        assert refused.json()["retryable"] is True
        assert httpx.get(f"{url}/livez").status_code == 200
        service_scorers.OPEN.set()
        assert [one.result().json()["verdicts"][0]["reward"] for one in waiting] == [1.0, 1.0]
        until(lambda: url.service.admission.requests == 0)
        assert post(url, FREE).status_code == 200
        admission = url.service.admission
        assert (admission.requests, admission.rollouts, admission.bytes) == (0, 0, 0)


def test_rollouts_in_flight(gated: dict[str, Recipe], threads: ThreadPoolExecutor) -> None:
    """So it does at its limit of rollouts."""
    with running_service(recipes=gated, max_rollouts_in_flight=3) as url:
        waiting = threads.submit(post, url, {"recipe": "gated", "rollouts": [{"completion": "wait"}] * 3})
        until(lambda: url.service.admission.rollouts == 3)
        problem(post(url, FREE), 429, "busy")
        service_scorers.OPEN.set()
        assert waiting.result().status_code == 200


@pytest.mark.parametrize("chunked", [False, True])
def test_who_still_sends_sees_the_refusal(gated: dict[str, Recipe], threads: ThreadPoolExecutor, chunked: bool) -> None:
    """A client that sends its whole body before it reads gets the 429, not a broken connection."""
    with running_service(recipes=gated, max_requests=1) as url:
        waiting = threads.submit(post, url, WAIT)
        until(lambda: url.service.admission.requests == 1)
        parts = urlsplit(url)
        size = 8 << 20
        head = b"POST /v1/score HTTP/1.1\r\nHost: localhost\r\n"
        with socket.create_connection((parts.hostname, parts.port), timeout=30) as connection:
            if chunked:
                piece = b"10000\r\n" + b" " * 65536 + b"\r\n"
                connection.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n" + piece * 64 + b"0\r\n\r\n")
            else:
                connection.sendall(head + b"Content-Length: %d\r\n\r\n" % size + b" " * size)
            assert connection.recv(65536).startswith(b"HTTP/1.1 429")
        service_scorers.OPEN.set()
        assert waiting.result().status_code == 200


def test_ten_times_overload(gated: dict[str, Recipe], threads: ThreadPoolExecutor) -> None:
    """Under ten times what it takes, every request gets an answer: a verdict, or 429; and nothing stays counted."""
    with running_service(recipes=gated, max_requests=3) as url:
        gate = threading.Barrier(30)

        def ask() -> int:
            gate.wait(30)
            return post(url, WAIT).status_code

        asked = [threads.submit(ask) for _ in range(30)]
        until(lambda: sum(one.done() for one in asked) == 27)
        assert {one.result() for one in asked if one.done()} == {429}
        service_scorers.OPEN.set()
        assert sorted(one.result() for one in asked) == [200] * 3 + [429] * 27
        until(lambda: url.service.admission.requests == 0)
        assert sum(bucket.refused for bucket in url.service.record._buckets) == 27


def test_limits_of_a_key(gated: dict[str, Recipe], threads: ThreadPoolExecutor, tmp_path: Path) -> None:
    """A key is held to its own limits, and its neighbours are not."""
    file = tmp_path / "keys.json"
    made = {}
    limits: list[tuple[str, dict[str, Any]]] = [
        ("one", {"max_requests": 1}),
        ("few", {"rollouts_per_minute": 5}),
        ("free", {}),
    ]
    for name, more in limits:
        text, key = keys.make(name, ("score",), created=datetime.now(UTC), **more)
        made[name] = {"X-API-Key": text}
        keys.save(file, (keys.load(file) if file.exists() else {}) | {key.id: key})
    with running_service(recipes=gated, keys=file) as url:
        waiting = threads.submit(post, url, WAIT, headers=made["one"])
        until(lambda: url.service.admission.rollouts == 1)
        problem(post(url, FREE, headers=made["one"]), 429, "rate_limited")
        assert post(url, FREE, headers=made["free"]).status_code == 200
        service_scorers.OPEN.set()
        assert waiting.result().status_code == 200
        seven = {"recipe": "gated", "rollouts": [{"completion": "free"}] * 7}
        assert post(url, seven, headers=made["few"]).status_code == 200
        refused = post(url, FREE, headers=made["few"])
        problem(refused, 429, "rate_limited")
        assert 1 <= int(refused.headers["retry-after"]) <= 30


def test_bytes_in_flight() -> None:
    """Bodies that would not fit beside those under way wait; one alone is always let in."""
    admission = Admission(Settings(max_bytes_in_flight=100))
    large = admission.admit(None, 1000)
    with pytest.raises(Problem):
        admission.admit(None, 1)
    admission.release(large)
    tickets = [admission.admit(None, 50), admission.admit(None, 50)]
    with pytest.raises(Problem):
        admission.admit(None, 1)
    for ticket in tickets:
        admission.release(ticket)
    assert admission.bytes == 0


def test_a_rejected_request_is_cheap_to_the_engine(url: Running) -> None:
    """A request that is refused for its head is never counted as work."""
    before = url.service.admission.requests
    problem(httpx.post(f"{url}/v1/score", content=b"x" * (17 << 20)), 413, "too_large")
    assert url.service.admission.requests == before
