"""Workers and the zygote are killed from outside: nothing is lost, doubled, changed or blamed."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pool_handlers as handlers
import pytest

from rewarden.core.pool import Budget, Fault, Pool

BUDGET = Budget()


class Killer(threading.Thread):
    """Sends signals to random workers at random moments until it has sent enough."""

    def __init__(self, pool: Pool, count: int, number: int = signal.SIGKILL, pause: float = 0.08) -> None:
        super().__init__()
        self._pool = pool
        self._left = count
        self._number = number
        self._pause = pause
        self._random = random.Random(7)

    def run(self) -> None:
        while self._left:
            time.sleep(self._random.uniform(0, 2 * self._pause))
            pids = self._pool.pids
            if pids:
                with suppress(ProcessLookupError):
                    os.kill(self._random.choice(pids), self._number)
                    self._left -= 1


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_kills_from_outside_change_nothing(number: int) -> None:
    """5,000 items and 30 kills: 0 lost, 0 doubled, 0 wrong, and nobody is blamed."""
    size, kills = (5000, 30) if number == signal.SIGKILL else (300, 5)
    with Pool(workers=2) as pool:
        killer = Killer(pool, kills, number, pause=0.04 if kills == 30 else 0.01)
        killer.start()
        batch = pool.submit(handlers.square, range(size), BUDGET)
        completed = list(batch.as_completed(60))
        killer.join()
        assert sorted(index for index, _ in completed) == list(range(size))
        assert [report.value for report in batch.wait()] == [i * i for i in range(size)]
        assert pool.stats.outside_kills >= kills / 2
        assert pool.stats.crashes == 0
        assert pool.stats.items == size


def test_work_is_not_repeated_without_need(tmp_path: Path) -> None:
    """A kill costs the results that were not sent yet, and no more: most items run once."""
    path = str(tmp_path / "runs")
    with Pool(workers=2) as pool:
        killer = Killer(pool, 10, pause=0.03)
        killer.start()
        reports = pool.submit(handlers.count_runs, [(path, i) for i in range(1000)], BUDGET).wait(60)
        killer.join()
    assert [report.value for report in reports] == list(range(1000))
    runs = [int(line) for line in Path(path).read_text().splitlines()]
    assert set(runs) == set(range(1000))
    assert len(runs) < 1000 + 10 * 30


def test_kills_among_hostile_items() -> None:
    """Both at once: deaths by an item's own fault and deaths from outside are told apart."""
    payloads: list[Any] = []
    for number in range(10):
        payloads += [*range(40), ("segfault",) if number % 3 else ("leave", 3)]
    with Pool(workers=2) as pool:
        killer = Killer(pool, 15, pause=0.02)
        killer.start()
        reports = pool.submit(handlers.act, payloads, BUDGET).wait(60)
        killer.join()
    for report, payload in zip(reports, payloads, strict=True):
        if isinstance(payload, int):
            assert (report.fault, report.value) == (None, payload**2)
        else:
            assert report.fault is Fault.CRASH


def test_an_item_whose_workers_are_always_killed_is_given_up() -> None:
    """Kills from outside are never its fault, but they are not endured for ever: `killed`, not `crash`."""
    with Pool(workers=1) as pool:
        batch = pool.submit(handlers.sleep, [30.0], Budget(30, 30))
        until = time.monotonic() + 30
        while not batch.done and time.monotonic() < until:
            for pid in pool.pids:
                time.sleep(0.03)
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        (report,) = batch.wait(1)
        assert report.fault is Fault.KILLED
        assert "from outside" in report.detail
        assert report.attempts >= 8
        assert pool.stats.crashes == 0


def test_a_lost_zygote_is_rebuilt() -> None:
    """When the zygote dies its workers die with it; another is started and no item is lost."""
    with Pool(workers=2) as pool:
        batch = pool.submit(handlers.square, range(1500), BUDGET)
        for _ in range(3):
            time.sleep(0.15)
            zygote = pool.zygote_pid
            if zygote:
                os.kill(zygote, signal.SIGKILL)
        assert [report.value for report in batch.wait(60)] == [i * i for i in range(1500)]
        assert pool.stats.zygotes >= 2


def test_an_item_that_kills_the_zygote_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its worker's death looks like one from outside; it ends all the same, and so do the others."""
    monkeypatch.setattr("rewarden.core.pool.inquest.OUTSIDE_MAX", 3)
    with Pool(workers=2) as pool:
        reports = pool.submit(handlers.act, [1, ("kill_zygote",), 2], BUDGET).wait(60)
    assert [report.fault for report in reports] == [None, Fault.KILLED, None]


def test_a_stopped_zygote_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that does not answer is as good as dead."""
    monkeypatch.setattr("rewarden.core.pool.crew.SPAWN_S", 0.5)
    with Pool(workers=1) as pool:
        pool.submit(handlers.echo, [1], BUDGET).wait(30)
        os.kill(pool.zygote_pid, signal.SIGSTOP)
        os.kill(pool.pids[0], signal.SIGKILL)
        (report,) = pool.submit(handlers.echo, [2], BUDGET).wait(30)
        assert report.value == 2
        assert pool.stats.zygotes == 2


def test_a_stopped_idle_worker_does_not_hold_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was given to a worker that does not move is given to another."""
    monkeypatch.setattr("rewarden.core.pool.watch.STALLED_NS", 10**9)
    with Pool(workers=1) as pool:
        pool.submit(handlers.echo, [1], BUDGET).wait(30)
        os.kill(pool.pids[0], signal.SIGSTOP)
        (report,) = pool.submit(handlers.echo, [2], BUDGET).wait(30)
        assert (report.value, report.fault) == (2, None)
        assert pool.stats.kills["stalled"] == 1


def test_a_killed_worker_is_replaced_at_once() -> None:
    """A new worker with sympy imported is there in milliseconds (a wide margin here; docs/design/002 has figures)."""
    pytest.importorskip("sympy")
    with Pool(workers=1, preload=["sympy"]) as pool:
        pool.submit(handlers.echo, [1], BUDGET).wait(60)
        begun = time.monotonic()
        for number in range(5):
            os.kill(pool.pids[0], signal.SIGKILL)
            assert pool.submit(handlers.echo, [number], BUDGET).wait(30)[0].value == number
            while not pool.pids:
                time.sleep(0.001)
        assert time.monotonic() - begun < 1.5
        assert "sympy" in pool.submit(handlers.facts, [0], BUDGET).wait(30)[0].value["modules"]  # type: ignore[index]
