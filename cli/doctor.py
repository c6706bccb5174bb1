"""`rewarden doctor`: whether this machine has what Rewarden needs."""

from __future__ import annotations

import os
import platform
import signal
import sys
import time
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from ..core.extras import installed, requirements
from .console import complain, table

PATIENCE_S = 60.0
"""Seconds until a self-test that does not end has failed."""


class State(StrEnum):
    """How a check ended."""

    GOOD = "ok"
    MISSING = "missing"
    """Something is not there that not everybody needs."""
    BAD = "BAD"
    """Rewarden cannot work like this."""


class Finding(NamedTuple):
    """One line of the report."""

    what: str
    state: State
    detail: str


def doctor() -> int:
    """Check Python, packages, processors, memory and the worker pool, and say how to get what is missing.

    Exit status: 0 Rewarden can work here, 1 something essential is broken.
    """
    findings = []
    for check in (_python, _packages, _machine, _pool):
        findings += list(check())
    table([(one.what, one.state.value, one.detail) for one in findings], heads=("", "", ""))
    bad = [one.what for one in findings if one.state is State.BAD]
    if bad:
        complain(f"cannot work here: {', '.join(bad)}")
    return int(bool(bad))


def _python() -> Iterator[Finding]:
    good = sys.version_info >= (3, 11)
    yield Finding("Python", State.GOOD if good else State.BAD, f"{platform.python_version()} ({sys.executable})")
    linux = sys.platform == "linux"
    detail = platform.platform() + ("" if linux else ": workers are not limited in memory here; Linux limits them")
    yield Finding("platform", State.GOOD if os.name == "posix" else State.BAD, detail)


def _packages() -> Iterator[Finding]:
    needed = requirements()
    if not needed:
        yield Finding("package", State.MISSING, "runs from a checkout that is not installed; `make setup` installs it")
    for extra, names in sorted(needed.items()):
        versions = {name: installed(name) for name in names}
        absent = [name for name, found in versions.items() if found is None]
        have = ", ".join(f"{name} {found}" for name, found in versions.items() if found is not None)
        what = f"extra {extra}" if extra else "base packages"
        if not absent:
            yield Finding(what, State.GOOD, have)
        else:
            target = f"rewarden[{extra}]" if extra else "rewarden"
            detail = f"without {', '.join(absent)}: pip install '{target}'"
            yield Finding(what, State.MISSING if extra else State.BAD, detail)


def _machine() -> Iterator[Finding]:
    from ..core.pool import system

    yield Finding("processors", State.GOOD, f"{system.cpus()} for this process, of {os.cpu_count()}")
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = _memory_limit()
    bounded = f", of which this process may use {limit / 2**30:.1f} GiB" if limit is not None and limit < total else ""
    yield Finding("memory", State.GOOD, f"{total / 2**30:.1f} GiB{bounded}; each worker may use half a GiB")


def _memory_limit() -> int | None:
    """The limit of this container, where it has one."""
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            return int(Path(path).read_text())
        except (OSError, ValueError):
            continue
    return None


def _pool() -> Iterator[Finding]:
    """Start two workers, have them work, kill one in the middle, and see that nothing is lost."""
    from ..core.budget import Budget
    from ..core.pool import Pool
    from .selftest import square

    numbers = list(range(40))
    try:
        started = time.monotonic()
        with Pool(workers=2) as pool:
            pool.submit(square, numbers[:2], Budget()).wait(PATIENCE_S)
            warm = time.monotonic() - started
            batch = pool.submit(square, numbers, Budget())
            time.sleep(0.1)
            victims = pool.pids
            if victims:
                os.kill(victims[0], signal.SIGKILL)
            reports = batch.wait(PATIENCE_S)
            killed = pool.stats.outside_kills + pool.stats.crashes
        right = [report.value for report in reports] == [number * number for number in numbers]
    except Exception as error:  # noqa: BLE001 - whatever keeps the pool from working is what this is about
        yield Finding("worker pool", State.BAD, f"{type(error).__name__}: {error}")
        return
    if right and killed:
        detail = f"started in {warm:.2f} s; a worker was killed, and nothing was lost"
        yield Finding("worker pool", State.GOOD, detail)
    elif right:
        yield Finding("worker pool", State.BAD, "a worker could not be killed, so nothing can stop a runaway one")
    else:
        lost = sum(report.fault is not None for report in reports)
        yield Finding("worker pool", State.BAD, f"{lost} of {len(numbers)} results were lost when a worker was killed")
