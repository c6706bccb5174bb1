"""Services and workers in processes of their own, and callers that cost little CPU, for what is measured of them."""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson
import zstandard

import rewarden
from rewarden.services.embedded import EmbeddedRedis, worker_command

from . import data
from .file_path import COMMAND

PATIENCE_S = 60.0
"""How long a process may take until it serves."""


class Serving:
    """A process that serves at `url`."""

    def __init__(self, url: str, pid: int) -> None:
        self.url = url
        self.pid = pid


@contextmanager
def listening(command: Sequence[str], ready: str = "/readyz") -> Iterator[Serving]:
    """A server that says `listening on URL` on standard error; ended with the block."""
    with tempfile.TemporaryFile() as said, subprocess.Popen(command, stdout=said, stderr=said) as process:
        try:
            url = _url(process, said.fileno())
            _until_ready(url + ready)
            yield Serving(url, process.pid)
        finally:
            process.terminate()
            try:
                process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()


def _url(process: subprocess.Popen[bytes], log: int) -> str:
    until = time.monotonic() + PATIENCE_S
    while process.poll() is None and time.monotonic() < until:
        words = os.pread(log, 1 << 20, 0).split()
        for before, word in pairwise(words):
            if before == b"on" and word.startswith(b"http://"):
                return word.decode()
        time.sleep(0.02)
    raise RuntimeError(f"the server did not start:\n{os.pread(log, 1 << 20, 0).decode()[-2000:]}")


def _until_ready(url: str) -> None:
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE_S):
                return
        except urllib.error.URLError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


def service(*arguments: str) -> Any:
    """`rewarden serve` on a free port with two workers."""
    return listening([*COMMAND, "serve", "--port", "0", "--workers", "2", "--log-level", "WARNING", *arguments])


@contextmanager
def workers() -> Iterator[tuple[str, list[int]]]:
    """A private Redis and `rewarden worker` on it: the address, and the processes that both are."""
    with tempfile.TemporaryDirectory(prefix="rw-") as folder:  # a socket's path must be short
        redis = EmbeddedRedis(Path(folder))
        redis.start()
        try:
            command = worker_command(["--queue", redis.url, "--workers", "2"])
            with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as worker:
                try:
                    assert redis.pid is not None
                    yield redis.url, [redis.pid, worker.pid]
                finally:
                    worker.terminate()
                    worker.wait(PATIENCE_S)
        finally:
            redis.stop()


def rollouts(pairs: Sequence[data.Pair], first: int = 0) -> list[rewarden.Rollout]:
    """As a trainer makes them, for the recipe `math`."""
    return [
        rewarden.Rollout(id=str(first + i), completion=pair.completion, reference=pair.reference)
        for i, pair in enumerate(pairs)
    ]


def request(path: str, rows: Sequence[dict[str, Any]]) -> bytes:
    """The bytes of a request for the verdicts on these rows, compressed as the client does it."""
    body = orjson.dumps({"recipe": "math", "rollouts": rows})
    coding = ""
    if len(body) >= 10_000:
        body, coding = zstandard.ZstdCompressor(level=1).compress(body), "content-encoding: zstd\r\n"
    head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{coding}"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


@dataclass
class Answers:
    """What came back for requests."""

    statuses: Counter[int] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    """Of those with status 200."""
    took: float = 0.0

    def percentile(self, percent: float) -> float:
        """Seconds within which so many of those with status 200 came back."""
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))] if ordered else float("nan")


class Callers:
    """Connections to one server that are kept, on an event loop of their own in a thread."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._where = parts.hostname, parts.port
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    def steadily(
        self, requests: Sequence[bytes], callers: int, *, seconds: float = 1e9, count: int = 1 << 60
    ) -> Answers:
        """So many callers, each of whom asks again when answered, until the time is over or `count` were sent."""

        async def run() -> Answers:
            answers, began = Answers(), time.perf_counter()
            sent = iter(range(count))

            async def one() -> None:
                for number in sent:
                    if time.perf_counter() - began > seconds:
                        return
                    await self._ask(requests[number % len(requests)], answers)

            await asyncio.gather(*(one() for _ in range(callers)))
            answers.took = time.perf_counter() - began
            await self._close()
            return answers

        return asyncio.run(run())

    def at_rate(self, requests: Sequence[bytes], rate: float, *, seconds: float) -> Answers:
        """So many requests a second, whether or not the ones before are answered."""

        async def run() -> Answers:
            answers, began = Answers(), time.perf_counter()
            tasks: set[asyncio.Task[None]] = set()
            number = 0
            while (now := time.perf_counter() - began) < seconds:
                while number < now * rate:
                    task = asyncio.create_task(self._ask(requests[number % len(requests)], answers))
                    tasks.add(task)
                    task.add_done_callback(tasks.discard)
                    number += 1
                await asyncio.sleep(1 / rate)
            answers.took = time.perf_counter() - began
            await asyncio.gather(*tasks)
            await self._close()
            return answers

        return asyncio.run(run())

    async def _ask(self, request: bytes, answers: Answers) -> None:
        began = time.perf_counter()
        reader, writer = self._idle.pop() if self._idle else await asyncio.open_connection(*self._where)
        try:
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
            await reader.readexactly(int(length))
        except (OSError, asyncio.IncompleteReadError):
            answers.statuses[0] += 1
            writer.close()
            return
        status = int(head[9:12])
        answers.statuses[status] += 1
        if status == 200:
            answers.seconds.append(time.perf_counter() - began)
        if b"connection: close" in head.lower():
            writer.close()
        else:
            self._idle.append((reader, writer))

    async def _close(self) -> None:
        while self._idle:
            self._idle.pop()[1].close()


@contextmanager
def busy(url: str, requests: Sequence[bytes], callers: int) -> Iterator[Answers]:
    """Keep a service busy during the block; the answers are there after it."""
    stop = threading.Event()
    answers = Answers()

    def load() -> None:
        while not stop.is_set():
            some = Callers(url).steadily(requests, callers, seconds=0.5)
            answers.statuses.update(some.statuses)
            answers.seconds += some.seconds

    thread = threading.Thread(target=load)
    thread.start()
    try:
        yield answers
    finally:
        stop.set()
        thread.join(PATIENCE_S)
