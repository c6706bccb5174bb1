"""Pebble, loky, concurrent.futures and Rewarden's pool, side by side in one run.

    python -m rewarden.benchmarks.pool_libraries [--items 20000] [--json FILE]

Each library runs each trial in a process of its own, two workers. Trials:
*overhead*: CPU of all processes for an item that returns at once, in chunks of 64 and, where a library enforces time
limits only for single items, one by one; *deadline*: an endless call of C among 200 items of a millisecond, 1 s
allowed; *kills*: 10 SIGKILLs of workers during 3,000 such items; *respawn*: from the SIGKILL of both
workers, idle and with sympy imported, to the next result; *busy*: items of a millisecond for each second while a thread
of the parent computes without pause.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import random
import resource
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from . import pool_items

LIBRARIES = ("rewarden", "pebble", "loky", "concurrent.futures")
LIMIT_S = 25
"""After so long a trial counts as hung."""

Outcome = tuple[int, Any]
Run = Callable[[Callable[[Any], Any], list[Any], int, float], Iterable[Outcome]]
"""(function, payloads, chunk, seconds allowed) -> (index, value or exception)."""


def rewarden(workers: int, preload: bool) -> tuple[Run, Callable[[], list[int]], Callable[[], None]]:
    """Our own."""
    from rewarden.core.pool import Budget, Pool

    pool = Pool(workers=workers, preload=["sympy"] if preload else [], max_tasks=1_000_000)

    def run(function: Callable[[Any], Any], payloads: list[Any], _chunk: int, seconds: float) -> Iterable[Outcome]:
        budget = Budget(seconds, 5 * seconds)
        for index, report in enumerate(pool.submit(function, payloads, budget).wait()):
            yield index, RuntimeError(report.detail) if report.fault else report.value

    return run, lambda: pool.pids, pool.close


def pebble(workers: int, preload: bool) -> tuple[Run, Callable[[], list[int]], Callable[[], None]]:
    """Kills by a time limit on a future, of one item or of a chunk."""
    from pebble import ProcessPool

    pool = ProcessPool(max_workers=workers, initializer=pool_items.import_sympy if preload else None)

    def run(function: Callable[[Any], Any], payloads: list[Any], chunk: int, seconds: float) -> Iterable[Outcome]:
        if chunk == 1:
            futures = [pool.schedule(function, args=[payload], timeout=seconds) for payload in payloads]
            yield from ((index, value_of(future.result)) for index, future in enumerate(futures))
            return
        values = pool.map(function, payloads, chunksize=chunk, timeout=seconds).result()
        for index in range(len(payloads)):
            yield index, value_of(lambda: next(values))

    def pids() -> list[int]:
        return list(pool._pool_manager.worker_manager.workers)  # noqa: SLF001 - it has no other way

    def close() -> None:
        pool.stop()
        pool.join()

    return run, pids, close


def executor(make: Callable[[], Any]) -> tuple[Run, Callable[[], list[int]], Callable[[], None]]:
    """Loky and concurrent.futures: no limits of time."""
    pool = make()

    def run(function: Callable[[Any], Any], payloads: list[Any], chunk: int, _seconds: float) -> Iterable[Outcome]:
        values = iter(pool.map(function, payloads, chunksize=chunk))
        for index in range(len(payloads)):
            yield index, value_of(lambda: next(values))

    def pids() -> list[int]:
        return list(pool._processes)  # noqa: SLF001 - they have no other way

    return run, pids, lambda: pool.shutdown(wait=True)


def value_of(get: Callable[[], Any]) -> Any:
    """A value, or the exception in its place."""
    try:
        return get()
    except Exception as error:  # noqa: BLE001 - whatever a library raises
        return error


def make(library: str, *, preload: bool = False) -> tuple[Run, Callable[[], list[int]], Callable[[], None]]:
    """A pool of two workers."""
    initializer = pool_items.import_sympy if preload else None
    if library == "rewarden":
        return rewarden(2, preload)
    if library == "pebble":
        return pebble(2, preload)
    if library == "loky":
        import loky

        return executor(lambda: loky.get_reusable_executor(max_workers=2, initializer=initializer, timeout=1000))
    return executor(lambda: concurrent.futures.ProcessPoolExecutor(2, initializer=initializer))


def overhead(library: str, items: int, chunk: int) -> dict[str, float]:
    """CPU of this process and all below it, and the clock, for `items` items."""
    run, _, close = make(library)
    list(run(pool_items.nothing, list(range(256)), chunk, 60))
    begun = time.perf_counter()
    found = list(run(pool_items.nothing, list(range(items)), chunk, 60))
    wall = time.perf_counter() - begun
    assert [value for _, value in found] == list(range(items))
    close()
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return {"cpu_s": sum(usage.ru_utime + usage.ru_stime for usage in used), "wall_s": wall}


def deadline(library: str, chunk: int) -> dict[str, float]:
    """How many of 200 good items get their value, and when all is done, with one that never ends."""
    run, _, close = make(library)
    payloads = list(range(200))
    payloads[100] = -1
    begun = time.perf_counter()
    found = list(run(pool_items.millisecond, payloads, chunk, 1.0))
    wall = time.perf_counter() - begun
    close()
    return {"right": sum(value == payloads[i] ** 2 for i, value in found if payloads[i] >= 0), "wall_s": wall}


def kills(library: str, chunk: int) -> dict[str, float]:
    """How many of 3,000 items get their value when workers are killed 10 times."""
    run, pids, close = make(library)
    list(run(pool_items.nothing, [1] * 10, 1, 60))
    stop = threading.Event()
    sent = 0

    def kill() -> None:
        nonlocal sent
        chance = random.Random(3)
        while sent < 10 and not stop.wait(chance.uniform(0.05, 0.15)):
            victims = pids()
            if victims:
                with suppress(ProcessLookupError):
                    os.kill(chance.choice(victims), signal.SIGKILL)
                    sent += 1

    killer = threading.Thread(target=kill)
    killer.start()
    found = list(run(pool_items.millisecond, list(range(3000)), chunk, 60.0))
    stop.set()
    killer.join()
    with suppress(Exception):
        close()
    return {"right": sum(value == i * i for i, value in found), "kills": sent}


def respawn(library: str) -> dict[str, float]:
    """Median milliseconds from the death of a worker to the next result, with sympy imported before work."""
    run, pids, close = make(library, preload=True)
    list(run(pool_items.nothing, [1] * 10, 1, 60))
    times = []
    for _ in range(9):
        while len(pids()) < 2:
            time.sleep(0.001)
        time.sleep(0.05)
        begun = time.perf_counter()
        for victim in pids():
            os.kill(victim, signal.SIGKILL)
        while True:
            ((_, value),) = run(pool_items.pid, [0], 1, 60)
            if isinstance(value, int):
                break
            if not type(value).__name__.startswith("ProcessExpired"):
                raise SystemExit(f"broken: {type(value).__name__}")
        times.append((time.perf_counter() - begun) * 1e3)
    close()
    return {"ms": statistics.median(times)}


def busy(library: str, chunk: int) -> dict[str, float]:
    """Items of a millisecond per second while a thread of the parent computes without pause."""
    run, _, close = make(library)
    list(run(pool_items.nothing, [1] * 10, 1, 60))
    stop = False

    def spin() -> None:
        while not stop:
            pass

    thread = threading.Thread(target=spin)
    thread.start()
    begun = time.perf_counter()
    list(run(pool_items.millisecond, list(range(2000)), chunk, 60.0))
    wall = time.perf_counter() - begun
    stop = True
    thread.join()
    close()
    return {"per_s": 2000 / wall}


TRIALS: dict[str, Callable[..., dict[str, float]]] = {f.__name__: f for f in (overhead, deadline, kills, respawn, busy)}


def trial(name: str, library: str, *arguments: int) -> dict[str, float] | str:
    """Run one trial in a process group of its own; text when it did not end well."""
    command = [
        sys.executable,
        "-m",
        "rewarden.benchmarks.pool_libraries",
        "--trial",
        name,
        library,
        *map(str, arguments),
    ]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        out, err = process.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return "hangs"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.returncode:
        return (err.strip().splitlines() or ["failed"])[-1][:40]
    result: dict[str, float] = json.loads(out.splitlines()[-1])
    return result


def main() -> None:
    """Run all trials and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--trial", nargs="+")
    options = parser.parse_args()
    if options.trial:
        name, library, *arguments = options.trial
        print(json.dumps(TRIALS[name](library, *map(int, arguments))))
        return
    found: dict[str, dict[str, Any]] = {}
    for library in LIBRARIES:
        row: dict[str, Any] = {}
        for chunk, items in ((64, options.items), (1, options.items // 10)):
            none, some = trial("overhead", library, 0, chunk), trial("overhead", library, items, chunk)
            row[f"CPU us/item, chunk {chunk}"] = (
                f"{(some['cpu_s'] - none['cpu_s']) / items * 1e6:.1f}"
                if isinstance(some, dict) and isinstance(none, dict)
                else some
            )
        for chunk in (16, 1):
            ended = trial("deadline", library, chunk)
            row[f"endless item, chunk {chunk}"] = (
                f"{ended['right']:.0f}/199 in {ended['wall_s']:.1f} s" if isinstance(ended, dict) else ended
            )
        for chunk in (16, 1):
            ended = trial("kills", library, chunk)
            row[f"SIGKILLs, chunk {chunk}"] = (
                f"{ended['right']:.0f}/3000 ({ended['kills']:.0f} kills)" if isinstance(ended, dict) else ended
            )
        ended = trial("respawn", library)
        row["respawn with sympy"] = f"{ended['ms']:.0f} ms" if isinstance(ended, dict) else ended
        ended = trial("busy", library, 16)
        row["1 ms items/s, busy parent"] = f"{ended['per_s']:.0f}" if isinstance(ended, dict) else ended
        found[library] = row
        print(f"{library} done", file=sys.stderr)
    names = list(found[LIBRARIES[0]])
    print("| | " + " | ".join(found) + " |")
    print("|---" * (len(found) + 1) + "|")
    for name in names:
        print(f"| {name} | " + " | ".join(str(row[name]) for row in found.values()) + " |")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
