"""A service for tests of the client: real sockets, the wire format, and whatever misbehaviour a test asks for."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
import zstandard

from rewarden import Rollout, Verdict, correct, incorrect
from rewarden.core.verdict import ScorerStamp
from rewarden.core.wire import JobOptions, ScoreOptions, bad_rollout, decode_request


@dataclass
class Call:
    """A request as it came, and when."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    at: float = field(default_factory=time.monotonic)

    @property
    def rollouts(self) -> list[Any]:
        """The rollouts in the body, as JSON values."""
        return list(orjson.loads(self.body)["rollouts"])


@dataclass
class Reply:
    """What to answer. `pieces` go out one by one, `pause_s` apart; `cut` breaks the connection instead of ending."""

    status: int = 200
    pieces: Sequence[bytes] = (b"{}",)
    headers: dict[str, str] = field(default_factory=dict)
    pause_s: float = 0.0
    cut: bool = False


Answer = Callable[[Call], Reply]


def json(value: Any, status: int = 200, **headers: str) -> Reply:
    """A JSON document."""
    return Reply(status, [orjson.dumps(value)], {name.replace("_", "-"): text for name, text in headers.items()})


def problem(status: int, code: str, **headers: str) -> Reply:
    """An error as the service describes it."""
    retryable = status in (429, 500, 502, 503, 504)
    return json(
        {"title": code, "status": status, "detail": f"{code}!", "code": code, "retryable": retryable}, status, **headers
    )


def grade(rollout: Rollout | str) -> Verdict:
    """Right when the completion is the reference."""
    if isinstance(rollout, str):
        return bad_rollout(rollout)
    verdict = correct() if rollout.completion == rollout.reference else incorrect()
    return verdict.stamped(rollout.id, ScorerStamp("exact", "1", "0" * 16))


def scores(call: Call) -> Reply:
    """The true answer to a request for scores."""
    _, items = decode_request(call.body, ScoreOptions)
    return json({"verdicts": [grade(item).to_dict() for item in items]})


class Jobs:
    """The true answers about jobs; results are there at once, in an order of their own."""

    def __init__(self) -> None:
        self.verdicts: dict[str, list[tuple[int, Verdict]]] = {}
        self.by_key: dict[str, str] = {}
        self.cancelled: set[str] = set()

    def __call__(self, call: Call) -> Reply:
        """Answer any request of the wire format."""
        path, _, query = call.path.partition("?")
        if path == "/v1/score":
            return scores(call)
        if path == "/v1/scorers":
            return json({"recipes": [{"name": "exact", "version": "1", "kinds": ["exact"]}]})
        if path == "/v1/jobs":
            job = self.by_key.setdefault(call.headers["idempotency-key"], f"job-{len(self.by_key)}")
            _, items = decode_request(call.body, JobOptions)
            verdicts = [(row, grade(item)) for row, item in enumerate(items)]
            self.verdicts[job] = verdicts[::2] + verdicts[1::2]
            return json(self.status(job), 202)
        job = path.rpartition("/")[2]
        if job not in self.verdicts:
            return problem(404, "unknown_job")
        if call.method == "DELETE":
            self.cancelled.add(job)
        if "ndjson" in call.headers["accept"]:
            return Reply(pieces=self.lines(job, int(query.partition("=")[2])))
        return json(self.status(job))

    def status(self, job: str) -> dict[str, Any]:
        """A JobStatus as JSON values."""
        state = "cancelled" if job in self.cancelled else "done"
        total = len(self.verdicts[job])
        return {
            "id": job,
            "state": state,
            "recipe": "exact",
            "total": total,
            "done": total,
            "outcomes": {},
            "created": 1.0,
            "deadline": None,
            "of_a_newer_version": True,
        }

    def lines(self, job: str, cursor: int) -> list[bytes]:
        """The stream of a job after a cursor, one piece for each line."""
        found = [
            orjson.dumps({"cursor": number, "row": row, "verdict": verdict.to_dict()}) + b"\n"
            for number, (row, verdict) in enumerate(self.verdicts[job], 1)
        ]
        last = orjson.dumps({"state": "done", "cursor": len(found)}) + b"\n"
        return [*found[cursor:], b"\n", last]


class RoughService:
    """Answers every request with what `answer` says. `calls` are all requests, in order."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.calls: list[Call] = []
        self.connections = 0
        self.under_way = 0
        self.most_under_way = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        self.connections += 1
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        method, path, _ = head[0].split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        if headers.get("content-encoding") == "zstd":
            body = zstandard.ZstdDecompressor().decompress(body)
        call = Call(method, path, headers, body)
        self.calls.append(call)
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            return await self._send(writer, self.answer(call))
        finally:
            self.under_way -= 1

    async def _send(self, writer: asyncio.StreamWriter, reply: Reply) -> bool:
        lines = [f"{name}: {value}" for name, value in {"Transfer-Encoding": "chunked", **reply.headers}.items()]
        writer.write("\r\n".join([f"HTTP/1.1 {reply.status} Said", *lines, "", ""]).encode())
        for piece in reply.pieces:
            if reply.pause_s:
                await writer.drain()
                await asyncio.sleep(reply.pause_s)
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        if reply.cut:
            await writer.drain()
            return False
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True


@contextmanager
def serving(answer: Answer) -> Iterator[tuple[str, RoughService]]:
    """The address of a service on a thread of its own, and the service."""
    service = RoughService(answer)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    starting = asyncio.start_server(service.serve, "127.0.0.1", 0)
    server = asyncio.run_coroutine_threadsafe(starting, loop).result(10)

    async def end() -> None:
        server.close()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", service
    finally:
        asyncio.run_coroutine_threadsafe(end(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
