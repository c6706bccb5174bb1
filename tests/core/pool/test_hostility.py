"""Whatever one item does, it gets its own verdict, in time, and the others get theirs unchanged."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pool_handlers as handlers
import pytest

from rewarden.core.pool import Budget, Fault, Pool

BUDGET = Budget(cpu_s=0.3, wall_s=2.0)

HOSTILE: list[tuple[tuple[Any, ...], Fault | None]] = [
    (("spin_in_python",), Fault.CPU),
    (("spin_in_c",), Fault.CPU),
    (("power_tower",), Fault.CPU),
    (("spin_in_threads",), Fault.CPU),
    (("catch_everything",), Fault.CPU),
    (("change_group",), Fault.CPU),
    (("raise_endless",), Fault.CPU),
    (("SpinsWhenPickled",), Fault.CPU),
    (("allocate_at_once",), Fault.MEMORY),
    (("allocate_slowly",), Fault.MEMORY),
    (("allocate_shared",), Fault.MEMORY),
    (("segfault",), Fault.CRASH),
    (("signal_self", int(signal.SIGSEGV)), Fault.CRASH),
    (("signal_self", int(signal.SIGABRT)), Fault.CRASH),
    (("signal_self", int(signal.SIGALRM)), Fault.CRASH),
    (("signal_self", int(signal.SIGKILL)), Fault.KILLED),
    (("signal_self", int(signal.SIGTERM)), Fault.KILLED),
    (("signal_group",), Fault.CRASH),
    (("leave", 0), Fault.CRASH),
    (("leave", 7), Fault.CRASH),
    (("close_descriptors",), Fault.CRASH),
    (("scribble",), Fault.CRASH),
    (("recurse",), Fault.ERROR),
    (("sys_exit",), Fault.ERROR),
    (("raise_base",), Fault.ERROR),
    (("raise_odd",), Fault.ERROR),
    (("raise_long",), Fault.ERROR),
    (("interrupt",), Fault.ERROR),
    (("unpicklable",), Fault.ERROR),
    (("RefusesToReturn",), Fault.ERROR),
    (("many_threads",), Fault.ERROR),
    (("lingering_thread",), None),
    (("lingering_child",), None),
    (("escaped_child",), None),
    (("forked_twin",), None),
    (("print_a_lot",), None),
    (("read_stdin",), None),
    (("alarm_later",), None),
]


@pytest.mark.parametrize(("act", "fault"), HOSTILE, ids=lambda value: "-".join(map(str, value)) if value else "")
def test_a_hostile_item_hurts_only_itself(pool: Pool, act: tuple[Any, ...], fault: Fault | None) -> None:
    """Among forty others, any misbehaviour gets the right fault, and the others the right values."""
    payloads: list[Any] = [*range(20), act, *range(20, 40)]
    # Touching half a gigabyte takes CPU too.
    reports = pool.submit(handlers.act, payloads, Budget(5, 20) if fault is Fault.MEMORY else BUDGET).wait(30)
    hostile = reports.pop(20)
    assert [report.value for report in reports] == [i * i for i in range(40)]
    assert hostile.fault == fault, hostile
    assert bool(hostile.detail) == (fault is not None)
    assert len(hostile.detail) < 3000


def test_a_blocked_item_is_tried_twice(pool: Pool) -> None:
    """Work that uses no CPU may have been starved: it is tried again, alone, before it is a `deadline`."""
    begun = time.monotonic()
    (report,) = pool.submit(handlers.act, [("spin_without_the_gil",)], Budget(0.3, 0.6)).wait(30)
    assert (report.fault, report.attempts) == (Fault.DEADLINE, 2)
    assert report.cpu_s < 0.3
    assert 1.2 <= time.monotonic() - begun < 5


def test_work_that_is_swallowed_is_given_out_again(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    """An item that reads its neighbours' payloads from the socket delays them, and nothing more."""
    monkeypatch.setattr("rewarden.core.pool.watch.STALLED_NS", 10**9)
    payloads: list[Any] = [*range(100), ("swallow_work",), *range(100, 400)]
    reports = pool.submit(handlers.act, payloads, BUDGET).wait(30)
    assert [report.value for report in reports] == [1 if isinstance(p, tuple) else p * p for p in payloads]


def test_many_hostile_items_among_many(pool: Pool) -> None:
    """One in forty of every kind at once: all others are right, and each of them got its own fault."""
    payloads: list[Any] = []
    wanted: list[Fault | None] = []
    quick = [
        (act, fault)
        for act, fault in HOSTILE
        if act[0] not in {"power_tower", "allocate_slowly", "spin_in_c", "change_group"}
    ]
    for act, fault in quick:
        payloads += [*range(40), act]
        wanted += [*[None] * 40, fault]
    budgets = [Budget(5, 20) if fault is Fault.MEMORY else Budget(0.3, 3.0) for fault in wanted]
    reports = pool.submit(handlers.act, payloads, budgets).wait(60)
    assert [report.fault for report in reports] == wanted
    assert all(r.value == p * p for r, p in zip(reports, payloads, strict=True) if isinstance(p, int))


def test_neighbours_of_a_stuck_item_do_not_wait_for_its_end(pool: Pool) -> None:
    """What was queued behind a long item goes to a worker that has nothing to do."""
    batch = pool.submit(handlers.act, [("sleep", 2.0), *range(300)], Budget(3, 20))
    order = [index for index, _ in batch.as_completed(30)]
    assert order[-1] == 0
    assert batch.wait()[0].wall_s >= 2


def test_a_process_that_an_item_leaves_dies(pool: Pool) -> None:
    """In the worker's group or out of it, as a daemon: nothing that an item starts outlives it for long."""
    reports = pool.submit(handlers.act, [("lingering_child",), ("escaped_child",)], BUDGET).wait(30)
    for report in reports:
        assert isinstance(report.value, int)
        wait_until(lambda pid=report.value: not alive(pid))  # type: ignore[misc]


def test_unpickling_a_payload_counts_as_its_work(pool: Pool) -> None:
    """A payload that never finishes to arrive is over its budget like any other."""
    payloads = [1, handlers.SpinsWhenUnpickled(), 2]
    reports = pool.submit(handlers.echo, payloads, BUDGET).wait(30)
    assert [report.fault for report in reports] == [None, Fault.CPU, None]


def test_a_death_that_another_item_prepared_is_not_charged(pool: Pool) -> None:
    """Under suspicion an item runs in a worker that nothing has run in before."""
    for _ in range(3):
        pool.submit(handlers.act, [("poison",)] * 8, BUDGET).wait(30)
        brief = pool.submit(handlers.sleep, [0.05], BUDGET)
        (report,) = pool.submit(handlers.act, [("trip",)], BUDGET).wait(30)
        assert (report.fault, report.value) == (None, 1)
        brief.wait(30)


def test_a_child_that_returns_from_the_handler_is_no_worker(pool: Pool) -> None:
    """Its value is not taken for the item's, though it comes first."""
    reports = pool.submit(handlers.act, [("forked_twin",), *range(30)], BUDGET).wait(30)
    assert [report.value for report in reports] == [1, *(i * i for i in range(30))]


def test_a_worker_that_changed_its_group_is_killed(pool: Pool) -> None:
    """Leaving the process group is no way out."""
    wait_until(lambda: len(pool.pids) == pool.workers)
    pids = pool.pids
    (report,) = pool.submit(handlers.act, [("change_group",)], BUDGET).wait(30)
    assert report.fault is Fault.CPU
    wait_until(lambda: sum(map(alive, pids)) < len(pids))


def test_over_budget_is_over_budget_however_it_ends(pool: Pool) -> None:
    """An item that ends by itself before it can be killed has used too much all the same."""
    reports = pool.submit(handlers.burn, [0.03] * 6, Budget(0.02, 5)).wait(30)
    assert {report.fault for report in reports} == {Fault.CPU}


def test_memory_of_others_is_not_charged() -> None:
    """An item that fits into a fresh worker gets its result, whatever earlier items have used up and kept."""
    with Pool(workers=1, memory_mb=200) as pool:
        reports = pool.submit(handlers.Hoard(), [60] * 12, Budget(2, 10)).wait(30)
        assert [report.fault for report in reports] == [None] * 12


def test_a_worker_that_grows_is_replaced() -> None:
    """Before it reaches its limit, between items."""
    with Pool(workers=1, memory_mb=400) as pool:
        pool.submit(handlers.Hoard(pause=0.12), [40] * 12, Budget(2, 10)).wait(30)
        assert pool.stats.kills["recycled"] >= 1
        assert pool.stats.retries == 0


def test_output_of_an_item_goes_nowhere(capfd: pytest.CaptureFixture[str], pool: Pool) -> None:
    """Standard output of workers is no part of the caller's."""
    pool.submit(handlers.act, [("print_a_lot",)], BUDGET).wait(30)
    assert capfd.readouterr().out == ""


def test_the_budget_starts_with_the_work() -> None:
    """Items that wait their turn for much longer than their budget are not late."""
    with Pool(workers=1) as pool:
        reports = pool.submit(handlers.sleep, [0.1] * 15, Budget(0.5, 1.0)).wait(30)
        assert [report.fault for report in reports] == [None] * 15


def test_each_item_has_its_own_budget(pool: Pool) -> None:
    """Budgets go by index."""
    budgets = [Budget(0.1, 5), Budget(3, 10), Budget(0.1, 5), Budget(3, 10)]
    reports = pool.submit(handlers.burn, [0.5] * 4, budgets).wait(30)
    assert [report.fault for report in reports] == [Fault.CPU, None, Fault.CPU, None]
    assert 0.45 < (reports[1].cpu_s) < 1.0


def test_load_does_not_change_the_verdict() -> None:
    """With the machine full of others' work, CPU is still counted by what the item itself used."""
    with Pool(workers=1) as pool, Pool(workers=4) as others:
        noise = others.submit(handlers.act, [("spin_in_python",)] * 4, Budget(60, 60))
        reports = pool.submit(handlers.burn, [0.1, 0.1, 1.0], Budget(0.3, 60)).wait(60)
        noise.cancel()
    assert [report.fault for report in reports] == [None, None, Fault.CPU]
    assert reports[2].cpu_s < 0.6


def test_a_starved_item_gets_its_second_chance(pool: Pool) -> None:
    """A worker stopped under its item: the item is late with CPU to spare, and right when it runs again."""
    batch = pool.submit(handlers.act, [("sleep", 0.5), ("sleep", 0.5)], Budget(2, 1.2))
    time.sleep(0.2)
    for pid in pool.pids:
        os.kill(pid, signal.SIGSTOP)
    reports = batch.wait(30)
    assert [(report.fault, report.attempts) for report in reports] == [(None, 2)] * 2


def alive(pid: int) -> bool:
    """Whether a process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def wait_until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    """Wait for something that must happen soon."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.01)
