"""What the kernel says about processes: descendants, memory, CPU, and who may be killed. Linux only."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Final, Self

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


def parents() -> dict[int, int]:
    """The parent of each process that is alive (zombies left out)."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            except (OSError, ValueError):
                continue
            if state != "Z":
                found[int(entry.name)] = int(parent)
    return found


def descendants(pid: int, depth: int | None = None) -> list[int]:
    """Processes below `pid`; with a depth those that many steps below it (1 = children)."""
    parent = parents()
    out = []
    for child in parent:
        steps, at = 0, child
        while at in parent and at != pid:
            steps, at = steps + 1, parent[at]
        if at == pid and steps and depth in (None, steps):
            out.append(child)
    return out


def workers(pid: int) -> list[int]:
    """The pool workers of a process: they are forked by its zygote."""
    return descendants(pid, depth=2)


def resident_mb(pid: int) -> float:
    """Resident memory, shared pages included; 0 when the process is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE / 2**20
    except (OSError, ValueError, IndexError):
        return 0.0


def peak_mb(pid: int) -> float:
    """The most resident memory that a process has had since it was started; 0 when it is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM")), 0.0)


def cpu_s(pid: int) -> float:
    """Seconds of CPU that a process has used, user and system, exactly; 0 when it is gone."""
    try:
        # The clock of another process, as the kernel names it: /proc/PID/stat counts in steps of 10 ms.
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return 0.0


class Memory:
    """Watches resident memory while its `with` block runs: the most that `pid`, one worker and all together had."""

    def __init__(self, pid: int, every_s: float = 0.01) -> None:
        self.own_mb = 0.0
        self.worker_mb = 0.0
        self.total_mb = 0.0
        """`pid` and all below it; pages that they share are counted for each."""
        self._pid = pid
        self._every_s = every_s
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        while not self._done.wait(self._every_s):
            below = {child: resident_mb(child) for child in descendants(self._pid)}
            of_workers = [below.get(child, 0.0) for child in workers(self._pid)]
            self.worker_mb = max([self.worker_mb, *of_workers])
            self.own_mb = max(self.own_mb, peak_mb(self._pid))
            self.total_mb = max(self.total_mb, self.own_mb, resident_mb(self._pid) + sum(below.values()))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()
