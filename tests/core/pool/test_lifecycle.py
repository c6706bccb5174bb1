"""Processes: what a worker inherits, and that none outlives its pool, whatever becomes of the parent."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pool_handlers as handlers
import pytest

from rewarden.core.errors import PoolError
from rewarden.core.pool import Budget, Pool

BUDGET = Budget()
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(handlers.__file__).parent)}


def alive(pid: int) -> bool:
    """Whether a process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def open_descriptors(pid: int | str) -> int:
    """How many files, sockets and the like a process holds open."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def gone(pids: list[int], seconds: float = 10.0) -> bool:
    """Whether all these processes end soon."""
    until = time.monotonic() + seconds
    while any(alive(pid) for pid in pids):
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def processes(pool: Pool) -> list[int]:
    """The zygote and the workers, once they are all there."""
    while len(pool.pids) < pool.workers:
        time.sleep(0.01)
    return [pool.zygote_pid, *pool.pids]


@pytest.fixture
def facts(pool: Pool) -> dict[str, Any]:
    """What a worker looks like from inside."""
    value = pool.submit(handlers.facts, [0], BUDGET).wait(30)[0].value
    assert isinstance(value, dict)
    return value


def test_a_worker_inherits_no_descriptors(facts: dict[str, Any]) -> None:
    """Its own socket and page, the null device, and standard error: nothing else of the parent, zygote or siblings."""
    links = facts["links"]
    assert links.pop(0) == links.pop(1) == os.devnull
    links.pop(2)
    kinds = sorted(link.split(":")[0] for link in links.values())
    assert kinds == ["/memfd", "/memfd", "socket"], links  # the mapping holds a descriptor of its own


def test_a_worker_is_a_stranger_to_the_parent(facts: dict[str, Any], pool: Pool) -> None:
    """It has its own process group, no main script, no blocked signals, and the parent's import path."""
    assert facts["group"] == facts["pid"]
    assert facts["parent"] == pool.zygote_pid
    assert facts["main"] is None
    assert facts["blocked"] == []
    assert facts["threads"] == 1
    assert int(facts["oom"]) > 0  # the first to go when the machine's memory runs out
    assert set(sys.path) - {""} <= set(facts["path"])
    assert "pytest" not in facts["modules"]


def test_the_threads_signal_mask_does_not_matter() -> None:
    """A pool made in a thread that blocks signals has workers that can be ended by them."""
    found: dict[str, Any] = {}

    def make() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGCHLD, signal.SIGSEGV})
        with Pool(workers=1) as pool:
            found.update(pool.submit(handlers.facts, [0], BUDGET).wait(30)[0].value)  # type: ignore[call-overload]

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    assert found["blocked"] == []


def test_a_pool_outlives_the_thread_that_made_it() -> None:
    """The kernel's death signal follows the thread that starts a process: that must not be the caller's."""
    made: list[Pool] = []
    thread = threading.Thread(target=lambda: made.append(Pool(workers=1)))
    thread.start()
    thread.join()
    with made[0] as pool:
        pids = processes(pool)
        time.sleep(0.2)
        assert pool.submit(handlers.echo, [5], BUDGET).wait(30)[0].value == 5
        assert [pool.zygote_pid, *pool.pids] == pids


def test_close_leaves_nothing() -> None:
    """No process, no descriptor and no thread, also when workers are busy in C."""
    with Pool(workers=1) as pool:
        processes(pool)
    before = (open_descriptors("self"), threading.active_count())
    for _ in range(3):
        pool = Pool(workers=2)
        pool.submit(handlers.act, [("spin_in_c",), ("spin_without_the_gil",)], Budget(60, 60))
        pids = processes(pool)
        time.sleep(0.1)
        pool.close()
        assert gone(pids, 0.5)
    assert (open_descriptors("self"), threading.active_count()) == before


def test_replacing_workers_leaks_no_descriptors() -> None:
    """However many workers have come and gone."""
    with Pool(workers=1, max_tasks=1) as pool:
        pool.submit(handlers.echo, range(5), BUDGET).wait(30)
        processes(pool)
        before = open_descriptors("self")
        zygote_before = open_descriptors(pool.zygote_pid)
        pool.submit(handlers.echo, range(60), BUDGET).wait(60)
        processes(pool)
        assert open_descriptors("self") <= before + 4
        assert open_descriptors(pool.zygote_pid) <= zygote_before + 2


def test_a_forgotten_pool_closes_itself() -> None:
    """When nothing refers to it or to its batches any more; a batch alone keeps it."""
    batch = Pool(workers=1).submit(handlers.sleep, [0.3], BUDGET)
    gc.collect()
    assert batch.wait(30)[0].value == 0.3
    pool = Pool(workers=1)
    pids = processes(pool)
    del pool
    gc.collect()
    assert gone(pids)


PARENT = """
import sys, time
from rewarden.core.pool import Budget, Pool
import pool_handlers as handlers
pool = Pool(workers=3)
acts = [("spin_in_c",), ("spin_without_the_gil",), ("lingering_then_spin",)]
batch = pool.submit(handlers.act, acts, Budget(60, 60))
while len(pool.pids) < 3:
    time.sleep(0.01)
time.sleep(0.5)
print(pool.zygote_pid, *pool.pids, flush=True)
sys.stdin.readline()
"""


def run_parent(ending: str) -> list[int]:
    """Run a parent whose workers are busy in three ways, let it end, and return the processes that were below it."""
    command = [sys.executable, "-c", PARENT + ending]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=ENVIRONMENT
    ) as parent:
        assert parent.stdout is not None
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(pids) == 4
        assert all(alive(pid) for pid in pids)
        assert parent.stdin is not None
        parent.stdin.write("\n")
        parent.stdin.flush()
        parent.wait(30)
    return pids


@pytest.mark.parametrize(
    "ending",
    [
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
        "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
        "import os; os._exit(0)",
        "sys.exit(0)",
        "raise ValueError('the caller failed')",
        "import os, signal; os.kill(pool.zygote_pid, signal.SIGSTOP); os.kill(os.getpid(), signal.SIGKILL)",
        "pool.close(); time.sleep(0.1)",
    ],
)
def test_nothing_survives_the_parent(ending: str) -> None:
    """However the parent ends, its zygote and workers are gone at once, also in the middle of C code."""
    pids = run_parent(ending)
    if "SIGSTOP" in ending:
        os.kill(pids[0], signal.SIGCONT)  # a stopped zygote can only act once it runs
    assert gone(pids, 5)


def test_a_forked_child_does_not_disturb_the_pool() -> None:
    """In a child of the parent the pool refuses work and its close does nothing; the parent's goes on."""
    before = open_descriptors("self")
    with Pool(workers=2) as pool:
        batch = pool.submit(handlers.square, range(500), BUDGET)
        pids = processes(pool)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                pool.submit(handlers.echo, [1], BUDGET)
            except PoolError as error:
                code = 0 if "in each process" in str(error) else 2
            batch.cancel()
            pool.close()
            code += 4 * (open_descriptors("self") > before)  # none of the parent's ends of its workers
            with Pool(workers=1) as own:
                code += own.submit(handlers.echo, [3], BUDGET).wait(30)[0].value != 3
            gc.collect()
            os._exit(code)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        assert [report.value for report in batch.wait(30)] == [i * i for i in range(500)]
        assert [pool.zygote_pid, *pool.pids] == pids


def test_a_forked_child_that_outlives_the_parent_keeps_no_worker_alive() -> None:
    """It holds no copy of a worker's socket."""
    ending = (
        "import os, signal\nif os.fork() == 0:\n    time.sleep(20); os._exit(0)\nos.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert gone(run_parent(ending), 5)


def test_multiprocessing_children_do_not_disturb_the_pool() -> None:
    """A fork by multiprocessing while work is under way."""
    with Pool(workers=1) as pool:
        batch = pool.submit(handlers.square, range(300), BUDGET)
        process = multiprocessing.get_context("fork").Process(target=pool.close)
        process.start()
        process.join()
        assert process.exitcode == 0
        assert [report.value for report in batch.wait(30)] == [i * i for i in range(300)]


def test_a_busy_parent_thread_does_not_lose_anything() -> None:
    """A thread that never lets go of the interpreter slows the dispatcher down, and workers have work in store."""
    stop = False

    def spin() -> None:
        while not stop:
            pass

    thread = threading.Thread(target=spin)
    thread.start()
    try:
        with Pool(workers=2) as pool:
            reports = pool.submit(handlers.square, range(500), BUDGET).wait(60)
    finally:
        stop = True
        thread.join()
    assert [report.value for report in reports] == [i * i for i in range(500)]
