"""The few system calls that the pool needs and the standard library does not spell.

Covered: Linux. On other POSIX systems the calls answer "not available" and the pool degrades: no death signal from the
parent (workers see the end of their socket, so one inside C code outlives a killed parent until that code returns), no
CPU clock of another process (work is killed at its wall deadline; CPU above the budget is noticed when the work ends),
no look at the resident memory from outside (RLIMIT_DATA alone, which such systems may not enforce), and no adoption of
processes that left the worker's process group. Windows is not supported.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

LINUX = sys.platform == "linux"

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PF_EXITING = 4
_PAGE = resource.getpagesize()


def _prctl(option: int, value: int) -> None:
    """Call prctl(2); a refusal (an old kernel, a sandbox) leaves the weaker guarantee of other systems."""
    if LINUX:
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def die_with_parent(signum: int, parent: int) -> None:
    """Have the kernel send us `signum` when `parent` dies, at once, whatever we are doing; exit if it already has."""
    _prctl(_PR_SET_PDEATHSIG, signum)
    if os.getppid() != parent:
        os._exit(1)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent died, so that a daemonised process cannot escape."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def children(pid: int) -> list[int]:
    """The direct children of a single-threaded process, zombies included; empty where the kernel does not tell."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (OSError, ValueError):
        return []


def cpu_ns(pid: int) -> int | None:
    """CPU time of another process so far, all its threads, in ns; None when it is gone or cannot be asked.

    The clock's number is the kernel's own encoding (man clock_getcpuclockid), which Python has for threads only.
    """
    if not LINUX:
        return None
    try:
        return time.clock_gettime_ns((~pid << 3) | 2)
    except OSError:
        return None


def exiting(pid: int) -> bool:
    """Whether a process is dead or on its way out; False where the kernel does not tell."""
    try:
        state, *numbers = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return state in (b"Z", b"X") or bool(int(numbers[5]) & _PF_EXITING)
    except FileNotFoundError:
        return LINUX
    except (OSError, ValueError, IndexError):
        return False


def native_threads() -> int:
    """Threads of this process that the kernel knows, plus a constant; 0 where it does not tell."""
    try:
        return os.stat("/proc/self/task").st_nlink  # noqa: PTH116 - once for each item: the cheapest way
    except OSError:
        return 0


def resident_bytes(pid: int) -> int | None:
    """Resident memory of another process, pages shared with the zygote included; None when it cannot be told."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):
        return None


def cpus() -> int:
    """How many CPUs this process may use: its affinity, and the quota of its control group where there is one."""
    count = len(os.sched_getaffinity(0)) if LINUX else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        count = min(count, max(1, round(int(quota) / int(period))))
    except (OSError, ValueError):
        pass  # no control group of version 2, or no limit ("max")
    return count


def anonymous_file() -> int:
    """A file without a name, for memory shared between two processes."""
    if LINUX:
        return os.memfd_create("rewarden-worker")
    fd, name = tempfile.mkstemp(prefix="rewarden-worker-")
    os.unlink(name)  # noqa: PTH108 - the file lives on through its descriptor
    return fd


def limit_this_process(memory_bytes: int) -> None:
    """Cap private memory, forbid core dumps, and offer this process to the out-of-memory killer before any other.

    RLIMIT_DATA and not RLIMIT_AS: it counts what can be written (heap, anonymous mappings, thread stacks), not the
    libraries and reserved ranges that a large import maps without using.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    soft = memory_bytes if hard == resource.RLIM_INFINITY else min(memory_bytes, hard)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_DATA, (soft, soft))
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("800")
