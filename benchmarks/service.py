"""What a service costs and keeps: CPU that HTTP adds to a rollout, answers when it is busy or overrun, its memory.

    python -m rewarden.benchmarks.service [--rows 10240] [--times 5] [--seconds 10] [--requests 50000]

HTTP: the same real rollouts, new ones in every round, go through `Engine.score` in this process, through
`RewardClient` to `rewarden serve` in requests of 256, and, as the floor, to a bare FastAPI application that reads them
with pydantic and sends them back. CPU is that of this process, of the server and of their workers, together; what a way
adds is its CPU less that of the engine in the same round. The figures are medians of the rounds.

Busy: `/livez` is asked for every 20 ms while the workers, and then the service itself, have more to do than they can.

Overload: with room for 32 requests of 256 rollouts, 32 callers who ask again when answered are what the service can do.
Then requests come at ten times the rate at which these were answered, whatever the answers. Compared are the times of
what was admitted.

Memory: the cache of verdicts is filled, and then come 50,000 requests of one rollout each, all different.
"""

from __future__ import annotations

import argparse
import http.client
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpx
import orjson

import rewarden
from rewarden.client import RewardClient

from . import crash, data, results, serving
from .file_path import short_rows
from .processes import cpu_s, descendants, resident_mb
from .serving import Callers

BATCH = 256
"""Rollouts in a request."""

ROOM = 32
"""Requests that the overrun service takes at once."""


def echo() -> None:
    """The floor: FastAPI and pydantic, with the server and the parser that Rewarden has, and nothing to do."""
    import socket

    import uvicorn
    from fastapi import FastAPI
    from pydantic import BaseModel

    class Row(BaseModel):
        id: str
        completion: str
        reference: str

    class Rows(BaseModel):
        recipe: str
        rollouts: list[Row]

    app = FastAPI()

    async def ready() -> None:
        pass

    async def send_back(rows: Rows) -> Rows:
        return rows

    app.get("/readyz")(ready)
    # The annotations are of this function, so the framework cannot look them up by name.
    send_back.__annotations__ = {"rows": Rows, "return": Rows}
    app.post("/echo")(send_back)
    with socket.create_server(("127.0.0.1", 0)) as bound:
        print(f"listening on http://127.0.0.1:{bound.getsockname()[1]}", file=sys.stderr, flush=True)
        config = uvicorn.Config(app, loop="uvloop", http="httptools", log_level="warning", access_log=False)
        uvicorn.Server(config).run(sockets=[bound])


class Spent(NamedTuple):
    """Seconds of CPU, with those of the processes below."""

    result: Any
    """Of the work."""
    each: list[float]
    """Of this process, and of each that was named."""

    @property
    def total(self) -> float:
        """Of all together."""
        return sum(self.each)


def spent(pids: Sequence[int], work: Callable[..., Any], *arguments: Any) -> Spent:
    """What `work(*arguments)` costs here and in these processes."""
    families = [[os.getpid(), *_workers(os.getpid(), pids)], *([pid, *descendants(pid)] for pid in pids)]
    before = [sum(map(cpu_s, family)) for family in families]
    result = work(*arguments)
    return Spent(result, [sum(map(cpu_s, family)) - then for family, then in zip(families, before, strict=True)])


def _workers(pid: int, others: Sequence[int]) -> list[int]:
    """The processes below `pid`, without these others and what is below them."""
    apart = {below for other in others for below in (other, *descendants(other))}
    return [below for below in descendants(pid) if below not in apart]


def overhead(count: int, times: int) -> list[results.Figure]:
    """CPU that HTTP adds to a rollout."""
    pairs = data.stream(count * times + BATCH * 8)
    first, pairs = pairs[: BATCH * 8], pairs[BATCH * 8 :]
    alone, served, floor = [], [], []
    with (
        rewarden.Engine("math", workers=2) as engine,
        serving.service() as service,
        serving.listening([sys.executable, "-m", f"{__package__}.service", "--echo"]) as bare,
        RewardClient(service.url, recipe="math", batch_size=BATCH) as client,
        httpx.Client() as plain,
    ):

        def send_back(rollouts: Sequence[rewarden.Rollout]) -> None:
            for at in range(0, len(rollouts), BATCH):
                rows = [
                    {"id": one.id, "completion": one.completion, "reference": one.reference}
                    for one in rollouts[at : at + BATCH]
                ]
                body = orjson.dumps({"recipe": "math", "rollouts": rows})
                answer = plain.post(f"{bare.url}/echo", content=body, headers={"Content-Type": "application/json"})
                assert len(orjson.loads(answer.content)["rollouts"]) == len(rows)

        warm = serving.rollouts(first)
        engine.warm()
        engine.score(warm)
        client.score(warm)
        send_back(warm)
        for at in range(0, count * times, count):
            # Objects of their own for each way: a rollout may remember what was asked of it.
            here, there, back = (serving.rollouts(pairs[at : at + count], at) for _ in range(3))
            by_engine = spent([], engine.score, here)
            by_service = spent([service.pid], client.score, there)
            assert by_engine.result == by_service.result, "the service says other than the engine"
            alone.append(by_engine.total / count * 1e6)
            served.append(by_service.total / count * 1e6)
            floor.append(spent([bare.pid], send_back, back).total / count * 1e6)
    added = [over - without for over, without in zip(served, alone, strict=True)]
    return [
        results.plain("CPU of the engine, in this process", results.middle(alone), "us"),
        results.plain("CPU of a FastAPI and pydantic echo", results.middle(floor), "us"),
        results.plain("CPU over HTTP, of client, server and workers", results.middle(served), "us"),
        results.at_most(f"added by HTTP in requests of {BATCH}", results.middle(added), 60, "us"),
    ]


def requests_of(pairs: Sequence[data.Pair]) -> list[bytes]:
    """Requests of BATCH rollouts."""
    rows = [{"completion": pair.completion, "reference": pair.reference} for pair in pairs]
    return [serving.request("/v1/score", rows[at : at + BATCH]) for at in range(0, len(rows), BATCH)]


def probe(url: str, seconds: float) -> list[float]:
    """How long `/livez` took, asked every 20 ms."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=60)
    took = []
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        began = time.perf_counter()
        connection.request("GET", "/livez")
        connection.getresponse().read()
        took.append(time.perf_counter() - began)
        time.sleep(0.02)
    connection.close()
    return took


def liveness(seconds: float) -> list[results.Figure]:
    """How fast `/livez` answers while everything else is busy."""
    slow = [serving.request("/v1/score", [row]) for row in crash.rows(2000)]
    figures = []
    for what, requests, callers in (
        ("while every worker is busy", slow, 16),
        (f"while it grades requests of {BATCH}", requests_of(data.stream(BATCH * 32)), 16),
    ):
        with serving.service("--no-cache") as service, serving.busy(service.url, requests, callers) as load:
            time.sleep(min(1.0, seconds))
            took = serving.Answers(seconds=probe(service.url, seconds))
        p50, p99 = took.percentile(50) * 1e3, took.percentile(99) * 1e3
        answered = load.statuses.total()
        figures += [
            results.plain(
                f"/livez {what} ({answered} answered)", f"p50 {p50:.1f} ms, max {max(took.seconds) * 1e3:.0f} ms"
            ),
            results.at_most(f"/livez {what}, p99", p99, 50, "ms"),
        ]
    return figures


def overload(seconds: float) -> list[results.Figure]:
    """What becomes of admitted work when ten times too much comes."""
    requests = requests_of(data.stream(BATCH * 64))
    with serving.service("--no-cache", "--max-requests", str(ROOM)) as service:
        Callers(service.url).steadily(requests, ROOM, seconds=min(2.0, seconds))
        full = Callers(service.url).steadily(requests, ROOM, seconds=seconds)
        rate = full.statuses[200] / full.took
        over = Callers(service.url).at_rate(requests, 10 * rate, seconds=seconds)
        after = Callers(service.url).steadily(requests, ROOM, seconds=min(1.0, seconds))
    sent = over.statuses.total()
    other = sent - over.statuses[200] - over.statuses[429]
    return [
        results.plain("as much as it can do", f"{rate:.0f} requests/s, p99 {full.percentile(99) * 1e3:.0f} ms"),
        results.plain(
            "ten times as much",
            f"{sent / over.took:.0f} requests/s: {over.statuses[200]} graded, {over.statuses[429]} answered with 429, "
            f"p99 {over.percentile(99) * 1e3:.0f} ms",
        ),
        results.at_most("other answers than 200 and 429", other, 0),
        results.at_most(
            "p99 of admitted requests, times that without overload",
            over.percentile(99) / full.percentile(99),
            1.25,
            "x",
        ),
        results.at_least(
            "graded under overload, of what it can do", over.statuses[200] / over.took / rate * 100, 50, "%"
        ),
        results.at_most("refused after it", after.statuses[429], 0),
    ]


def memory(count: int) -> list[results.Figure]:
    """Memory of the server over very many small requests."""
    known = 200_000 if count >= 10_000 else count
    rows = [{key: row[key] for key in ("id", "completion", "reference")} for row in short_rows(known + count)]
    whole = [serving.request("/v1/score", rows[at : at + 4000]) for at in range(0, known, 4000)]
    seen = []
    with serving.service() as service:
        callers = Callers(service.url)
        answers = callers.steadily(whole, 2, count=len(whole))
        assert set(answers.statuses) == {200}
        began = time.perf_counter()
        sent = 0
        for share in (0.1, 0.5, 1.0):
            some = [serving.request("/v1/score", [row]) for row in rows[known + sent : known + int(count * share)]]
            answers = callers.steadily(some, 8, count=len(some))
            assert set(answers.statuses) == {200}
            sent += len(some)
            seen.append((sent, resident_mb(service.pid)))
        took = time.perf_counter() - began
    return [
        results.plain(f"{count:,} requests of one rollout", f"{took:.0f} s"),
        results.plain("memory of the server", ", ".join(f"{mb:.1f} MB after {sent:,}" for sent, mb in seen)),
        results.at_most("growth over the second half", seen[2][1] - seen[1][1], 5, "MB"),
    ]


def main() -> None:
    """Measure cost, then behaviour."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_240)
    parser.add_argument("--times", type=int, default=5, help="how often each is measured")
    parser.add_argument("--seconds", type=float, default=10.0, help="how long each kind of load goes on")
    parser.add_argument("--requests", type=int, default=50_000)
    parser.add_argument("--only", choices=["overhead", "liveness", "overload", "memory"])
    parser.add_argument("--echo", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.echo:
        echo()
        return
    data.require()
    parts: dict[str, Callable[[], list[results.Figure]]] = {
        "overhead": lambda: overhead(options.rows, options.times),
        "liveness": lambda: liveness(options.seconds),
        "overload": lambda: overload(options.seconds),
        "memory": lambda: memory(options.requests),
    }
    figures = [figure for name, part in parts.items() if options.only in (None, name) for figure in part()]
    del options.echo
    results.save("service", figures, **vars(options))


if __name__ == "__main__":
    main()
