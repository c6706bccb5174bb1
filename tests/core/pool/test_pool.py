"""What a caller sees of the pool when nothing goes wrong, and when the caller does."""

from __future__ import annotations

import asyncio
import os
import pickle
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pool_handlers as handlers
import pytest

from rewarden.core.errors import PoolError
from rewarden.core.pool import Budget, Fault, Pool, Report, stage
from rewarden.core.pool.batch import Batch, Ledger, Outcome, Work

BUDGET = Budget()


def values(reports: list[Report]) -> list[Any]:
    """The values, none of them missing."""
    assert [report.detail for report in reports if report.fault] == []
    return [report.value for report in reports]


def test_reports_come_in_the_order_of_the_payloads(pool: Pool) -> None:
    """Exactly one report for each payload, in order, with the value that the handler returned."""
    payloads = [1, "a", None, [1, 2], {"x": (1.5, b"\0")}, 2**200] * 50
    batch = pool.submit(handlers.echo, payloads, BUDGET)
    assert len(batch) == 300
    assert values(batch.wait(30)) == payloads
    assert all(report.attempts == 1 and report.stage == "" for report in batch.wait())


def test_waiting_again_gives_the_same(pool: Pool) -> None:
    """A batch may be read several times, in every way."""
    batch = pool.submit(handlers.echo, range(100), BUDGET)
    first = batch.wait(30)
    assert batch.wait() == first
    assert sorted((index, report.value) for index, report in batch) == [(i, i) for i in range(100)]


def test_of_several_results_the_first_counts() -> None:
    """An item that ran twice is reported once."""
    ledger = Ledger(Work(b"", b"", []), [b"1", b"2"], BUDGET)
    batch = Batch(ledger, lambda _: None)
    for value in (1, 2):
        batch.settle([(0, Outcome(None, pickle.dumps(value)))])
    batch.settle([(1, Outcome(None, pickle.dumps(3)))])
    assert [(index, report.value) for index, report in batch] == [(0, 1), (1, 3)]


def test_an_empty_batch_is_done(pool: Pool) -> None:
    """No payloads, no wait."""
    batch = pool.submit(handlers.echo, [], [])
    assert batch.wait(0) == []
    assert list(batch) == []
    assert asyncio.run(batch.reports()) == []


def test_large_payloads_and_results(pool: Pool) -> None:
    """What does not fit into a socket's buffer still arrives, both ways at once."""
    payloads = [bytes([i]) * 3_000_000 for i in range(8)]
    assert values(pool.submit(handlers.echo, payloads, BUDGET).wait(30)) == payloads


def test_results_come_as_they_end(pool: Pool) -> None:
    """A slow item does not hold back the others' reports."""
    batch = pool.submit(handlers.sleep, [1.5, *[0.0] * 30], Budget(2, 20))
    order = [index for index, _ in batch.as_completed(timeout=20)]
    assert sorted(order) == list(range(31))
    assert order[-1] == 0


def test_several_threads_at_once(pool: Pool) -> None:
    """Every thread gets its own results."""
    found: dict[int, list[Any]] = {}

    def ask(number: int) -> None:
        payloads = [number * 1000 + i for i in range(200)]
        found[number] = values(pool.submit(handlers.echo, payloads, BUDGET).wait(30))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: [number * 1000 + i for i in range(200)] for number in range(8)}


def test_a_small_batch_does_not_wait_for_a_large_one(pool: Pool) -> None:
    """Batches take turns: one item is answered while a long batch has hardly begun."""
    large = pool.submit(handlers.square, range(4000), BUDGET)
    small = pool.submit(handlers.echo, [1], BUDGET)
    small.wait(30)
    left = sum(outcome is None for outcome in large.outcomes)
    large.cancel()
    assert left > 2000


async def test_asyncio_is_not_blocked(pool: Pool) -> None:
    """The event loop runs on while a batch is awaited, by several tasks at once."""
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    ticking = asyncio.create_task(tick())
    one = pool.submit(handlers.sleep, [0.5] * 2, BUDGET)
    two = pool.submit(handlers.echo, [1, 2], BUDGET)
    first, second, again = await asyncio.gather(one.reports(), two.reports(), one.reports())
    ticking.cancel()
    assert (values(first), values(second), values(again)) == ([0.5] * 2, [1, 2], [0.5] * 2)
    assert ticks > 10


async def test_a_cancelled_task_leaves_the_batch(pool: Pool) -> None:
    """Giving up the wait gives up nothing else."""
    batch = pool.submit(handlers.sleep, [0.3], BUDGET)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(batch.reports(), 0.05)
    assert values(await batch.reports()) == [0.3]


def test_a_timeout_of_the_wait_is_not_one_of_the_work(pool: Pool) -> None:
    """`wait` raises, says what to do, and the work goes on."""
    batch = pool.submit(handlers.sleep, [0.5, 0.5, 0.5], BUDGET)
    with pytest.raises(TimeoutError, match="cancel"):
        batch.wait(0.05)
    with pytest.raises(TimeoutError):
        list(batch.as_completed(timeout=0.05))
    assert values(batch.wait(30)) == [0.5] * 3


def test_cancelling_ends_what_runs_and_what_waits(pool: Pool) -> None:
    """Running work is killed and waiting work dropped, at once; other batches do not notice."""
    stuck = pool.submit(handlers.act, [("spin_in_c",)] * 50, Budget(60, 60))
    other = pool.submit(handlers.act, list(range(100)), BUDGET)
    time.sleep(0.3)
    begun = time.monotonic()
    stuck.cancel()
    reports = stuck.wait(30)
    assert time.monotonic() - begun < 5
    assert {report.fault for report in reports} == {Fault.CANCELLED}
    assert values(other.wait(30)) == [i * i for i in range(100)]


def test_cancelling_keeps_what_has_ended(pool: Pool) -> None:
    """A result that is there stays; cancelling twice, or after the end, changes nothing."""
    batch = pool.submit(handlers.sleep, [0.0, 60.0, 60.0], Budget(60, 60))
    next(iter(batch))
    batch.cancel()
    batch.cancel()
    assert sorted(str(report.fault) for report in batch.wait(30)) == ["None", "cancelled", "cancelled"]
    batch.cancel()
    assert batch.wait()[0].value == 0.0


def test_a_payload_that_does_not_pickle_is_that_rows_error(pool: Pool) -> None:
    """Its neighbours are not touched."""
    payloads = [1, handlers.RefusesToLeave(), lambda: 1, 2]
    reports = pool.submit(handlers.echo, payloads, BUDGET).wait(30)
    assert [report.fault for report in reports] == [None, Fault.ERROR, Fault.ERROR, None]
    assert "payload cannot be sent: ValueError: not me" in reports[1].detail
    assert (reports[0].value, reports[3].value, reports[1].attempts) == (1, 2, 0)


def test_a_handler_of_the_main_script_is_refused_with_advice(tmp_path: Path) -> None:
    """Workers never run the main script again; who needs that is told to move the function."""
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\n"
        "from functools import partial\n"
        "from rewarden.core.pool import Budget, Pool\n"
        "print('main runs')\n"
        "class Row: pass\n"
        "def f(x): return x\n"
        "if __name__ == '__main__':\n"
        "    import pool_handlers\n"
        "    with Pool(workers=1) as pool:\n"
        "        for handler in (f, partial(f), Row):\n"
        "            try: pool.submit(handler, [1], Budget())\n"
        "            except Exception as error: print(type(error).__name__, error)\n"
        "        print(pool.submit(pool_handlers.echo, [Row()], Budget()).wait(30)[0].detail)\n"
    )
    path = str(Path(handlers.__file__).parent)
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}, check=True
    )
    lines = done.stdout.splitlines()
    assert lines.count("main runs") == 1
    assert sum("PoolError" in line and "Move it to a module" in line for line in lines) == 3
    assert "move it to a module" in lines[-1]


@pytest.mark.parametrize("handler", [lambda x: x, threading.Lock().acquire, 3])
def test_a_handler_that_cannot_travel_is_refused(pool: Pool, handler: Any) -> None:
    """At submission, with the reason, and before anything runs."""
    with pytest.raises(PoolError, match=r"handler"):
        pool.submit(handler, [1], BUDGET)


def test_budgets_must_match(pool: Pool) -> None:
    """One for all, or one for each."""
    with pytest.raises(ValueError, match="2 payloads with 1 budgets"):
        pool.submit(handlers.echo, [1, 2], [BUDGET])


@pytest.mark.parametrize("options", [{"workers": 0}, {"memory_mb": 0}, {"max_tasks": 0}])
def test_senseless_options_are_refused(options: dict[str, int]) -> None:
    """Before any process starts."""
    with pytest.raises(ValueError, match="at least 1"):
        Pool(**options)  # type: ignore[arg-type]


def test_a_handler_with_a_table_is_built_once_in_each_worker(pool: Pool) -> None:
    """An object as a handler is unpickled once for a worker, over several submissions, and again when it differs."""
    seen: dict[int, set[int]] = {}
    for _ in range(5):
        for pid, built, size in values(pool.submit(handlers.Table(7), range(200), BUDGET).wait(30)):
            assert size == 7
            seen.setdefault(pid, set()).add(built)
    assert all(len(builds) == 1 for builds in seen.values())
    sizes = {size for _, _, size in values(pool.submit(handlers.Table(8), range(20), BUDGET).wait(30))}
    assert sizes == {8}


def test_a_handler_that_cannot_be_loaded_says_so() -> None:
    """Raised while loading: an error for each row, with the text. Died while loading: a crash, after three tries."""
    with Pool(workers=2) as pool:
        raised = pool.submit(handlers.Unloadable("raise_base"), [1, 2, 3], BUDGET).wait(30)
        assert {report.fault for report in raised} == {Fault.ERROR}
        assert "cannot be loaded in a worker: BaseException: base" in raised[0].detail
        died = pool.submit(handlers.Unloadable("segfault"), range(5), BUDGET).wait(30)
        assert {report.fault for report in died} == {Fault.CRASH}
        assert "SIGSEGV" in died[0].detail
        assert values(pool.submit(handlers.echo, [1], BUDGET).wait(30)) == [1]


def test_stage_does_nothing_outside_a_worker() -> None:
    """A scorer that names its stages runs in the caller's process too."""
    stage("answer")


def test_the_stage_is_known_however_the_work_ends(pool: Pool) -> None:
    """Killed, crashed or raised: the report says what was being worked on."""
    payloads = ["done", "reference", "answer", "crash in answer", "crash in reference", "raise in reference"]
    reports = pool.submit(handlers.staged, payloads, Budget(0.3, 5)).wait(30)
    assert [(report.fault, report.stage) for report in reports] == [
        (None, "answer"),
        (Fault.CPU, "reference"),
        (Fault.CPU, "answer"),
        (Fault.CRASH, "answer"),
        (Fault.CRASH, "reference"),
        (Fault.ERROR, "reference"),
    ]


def test_workers_are_recycled_by_task_count() -> None:
    """After `max_tasks` items a worker is replaced, and no item is lost by that."""
    with Pool(workers=1, max_tasks=10) as pool:
        found = values(pool.submit(handlers.Table(1), range(100), BUDGET).wait(30))
        assert len({pid for pid, _, _ in found}) >= 10
        assert pool.stats.kills["recycled"] in {9, 10}


def test_preloaded_modules_are_there_at_birth() -> None:
    """A worker finds the preloaded modules imported, without having imported them itself."""
    with Pool(workers=1, preload=["fractions", "sqlite3.dump"]) as pool:
        (facts,) = values(pool.submit(handlers.facts, [0], BUDGET).wait(30))
        assert {"fractions", "sqlite3.dump"} <= set(facts["modules"])


def test_a_module_that_cannot_be_preloaded_breaks_the_pool_with_its_name() -> None:
    """Nobody waits for workers that cannot be had; the message names the module."""
    with Pool(workers=1, preload=["no_such_module_here"]) as pool:
        with pytest.raises(PoolError, match="no_such_module_here"):
            pool.submit(handlers.echo, [1], BUDGET).wait(30)
        with pytest.raises(PoolError, match="no_such_module_here"):
            pool.submit(handlers.echo, [1], BUDGET)


def test_a_memory_limit_below_what_a_worker_needs_breaks_the_pool_with_advice() -> None:
    """A limit that no worker can live under is an error of the caller's, not an endless row of dead workers."""

    def work(pool: Pool) -> None:
        for _ in range(100):  # the first item may still end, in what memory there is
            pool.submit(handlers.echo, [1], BUDGET).wait(30)
            time.sleep(0.05)

    with Pool(workers=1, memory_mb=1) as pool, pytest.raises(PoolError, match="memory_mb"):
        work(pool)


def test_a_closed_pool_says_so() -> None:
    """Closing ends what runs and what waits, can be repeated, and later work is refused."""
    pool = Pool(workers=1)
    batch = pool.submit(handlers.sleep, [60.0, 60.0], Budget(60, 60))
    time.sleep(0.5)
    pool.close()
    pool.close()
    assert [report.fault for report in batch.wait(5)] == [Fault.CANCELLED] * 2
    batch.cancel()
    with pytest.raises(PoolError, match="closed"):
        pool.submit(handlers.echo, [1], BUDGET)


def test_counters_tell_what_happened() -> None:
    """`stats` is a snapshot: it counts, and does not change afterwards."""
    with Pool(workers=1) as pool:
        values(pool.submit(handlers.square, range(50), BUDGET).wait(30))
        before = pool.stats
        pool.submit(handlers.act, [("raise_base",), ("segfault",)], BUDGET).wait(30)
        after = pool.stats
    assert (before.items, before.zygotes, before.crashes, dict(before.faults)) == (50, 1, 0, {})
    assert before.cpu_s >= 0.02
    assert before.chunks < 50
    assert (after.items, after.crashes, dict(after.faults)) == (52, 2, {"error": 1, "crash": 1})
    assert after.respawned >= 1
