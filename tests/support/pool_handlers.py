"""Handlers that the pool's workers import by name."""

from __future__ import annotations

import _thread
import ctypes
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from rewarden.core.pool import stage


def echo(payload: Any) -> Any:
    """The payload."""
    return payload


def square(payload: int) -> int:
    """About half a millisecond of CPU, and a result that depends on the payload."""
    burn(0.0005)
    return payload * payload


def burn(seconds: float) -> float:
    """Use CPU."""
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass
    return seconds


def sleep(seconds: float) -> float:
    """Use the clock only."""
    time.sleep(seconds)
    return seconds


def spin_in_python() -> NoReturn:
    """A loop of byte codes."""
    while True:
        pass


def spin_in_c() -> int:
    """One call that does not return for hours, and sees no signal handler meanwhile."""
    return sum(range(10**15))


def power_tower() -> int:
    """The classic: one arithmetic operation."""
    return 10 ** (10**9)  # type: ignore[no-any-return]


def spin_without_the_gil() -> NoReturn:
    """Blocked for ever in C."""
    ctypes.CDLL(None).pause()
    raise AssertionError


def spin_in_threads() -> NoReturn:
    """Several threads, none of them the main one."""
    for _ in range(3):
        threading.Thread(target=spin_in_python, daemon=True).start()
    while True:
        time.sleep(1)


def catch_everything() -> NoReturn:
    """A loop that no exception would end."""
    while True:
        try:
            spin_in_python()
        except BaseException:  # noqa: BLE001
            continue


def allocate_at_once() -> int:
    """More than a worker may have, in one request."""
    return len(bytearray(1 << 33))


def allocate_slowly() -> int:
    """More and more."""
    blocks = []
    while True:
        blocks.append(bytearray(1 << 22))


def allocate_shared() -> NoReturn:
    """Memory that no limit of the process counts: a file in memory."""
    fd = os.memfd_create("big")
    import mmap

    os.ftruncate(fd, 1 << 31)
    memory = mmap.mmap(fd, 1 << 31)
    for offset in range(0, 1 << 31, 4096):
        memory[offset] = 1
    spin_in_python()


def segfault() -> None:
    """Read address 0."""
    ctypes.string_at(0)


def signal_self(number: int) -> None:
    """Die of a signal."""
    os.kill(os.getpid(), number)
    time.sleep(5)


def signal_group() -> None:
    """Take the whole group along."""
    os.killpg(0, signal.SIGSEGV)
    time.sleep(5)


def recurse(depth: int = 0) -> int:
    """Past the recursion limit."""
    return recurse(depth + 1) + 1


def recurse_in_c() -> int:
    """Past the end of the stack."""
    sys.setrecursionlimit(10**8)
    return recurse()


def many_threads() -> int:
    """Thousands of threads that stay."""
    for _ in range(5000):
        _thread.start_new_thread(time.sleep, (1000,))
    return 1


def lingering_thread() -> int:
    """A thread that would spoil a neighbour a little later."""

    def spoil() -> None:
        time.sleep(0.005)
        os._exit(3)

    _thread.start_new_thread(spoil, ())
    return 1


def lingering_child() -> int:
    """A process in the worker's group that outlives the item."""
    return subprocess.Popen(["sleep", "1000"]).pid


def escaped_child() -> int:
    """A daemon: its own session, and no parent."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(writer, str(os.getpid()).encode())
            time.sleep(1000)
        os._exit(0)
    os.wait()
    return int(os.read(reader, 100))


def forked_twin() -> int:
    """A child that returns from the handler as if it were the worker."""
    if os.fork():
        time.sleep(0.1)
        return 1
    return 2


def close_descriptors() -> int:
    """Every one there is."""
    os.closerange(0, 1000)
    return 1


def scribble() -> int:
    """Write to every descriptor there is."""
    for fd in range(64):
        try:
            os.set_blocking(fd, False)
            os.write(fd, b"RWD1 nonsense " * 10)
        except OSError:
            continue
    return 1


def swallow_work() -> int:
    """Read whatever the parent has sent for later."""
    for fd in range(64):
        try:
            socket.socket(fileno=os.dup(fd)).recv(1 << 16, socket.MSG_DONTWAIT)
        except OSError:
            continue
    return 1


def print_a_lot() -> int:
    """What a noisy library does."""
    sys.stdout.write("noise\n" * 10000)
    sys.stdout.flush()
    os.write(1, b"RWD1")
    print("more")  # noqa: T201
    return 1


def read_stdin() -> str:
    """End of file at once."""
    return sys.stdin.read()


def alarm_later() -> int:
    """An alarm that would go off in a neighbour."""

    def ring(*_: object) -> None:
        raise TimeoutError("not mine")

    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.002)
    return 1


class Odd(Exception):  # noqa: N818
    """Its text cannot be had."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


class Endless(Exception):  # noqa: N818
    """Its text never ends."""

    def __str__(self) -> str:  # noqa: PLE0307 - it does not get as far
        spin_in_python()


def raise_base() -> NoReturn:
    """Not an Exception."""
    raise BaseException("base")  # noqa: TRY002


def raise_odd() -> NoReturn:
    """See Odd."""
    raise Odd


def raise_endless() -> NoReturn:
    """See Endless."""
    raise Endless


def raise_long() -> NoReturn:
    """Ten megabytes of text."""
    raise ValueError("x" * 10**7)


def interrupt() -> NoReturn:
    """As if somebody had pressed Ctrl-C."""
    raise KeyboardInterrupt


def unpicklable() -> Any:
    """A result that cannot travel."""
    return lambda: 1


class SpinsWhenPickled:
    """A result that never finishes to be pickled."""

    def __reduce__(self) -> Any:
        spin_in_python()


class RefusesToReturn:
    """A result that pickles, and cannot be unpickled in the parent."""

    def __init__(self) -> None:
        self.value = 1

    def __setstate__(self, state: Any) -> None:
        raise ValueError("not here")


class RefusesToLeave:
    """A payload that cannot be pickled."""

    def __reduce__(self) -> Any:
        raise ValueError("not me")


class SpinsWhenUnpickled:
    """A payload that never arrives."""

    def __setstate__(self, state: Any) -> None:
        spin_in_python()

    def __init__(self) -> None:
        self.value = 1


ACTS: dict[str, Callable[..., Any]] = {
    name: value
    for name, value in list(globals().items())
    if callable(value) and getattr(value, "__module__", "") == __name__
}


def act(payload: Any) -> Any:
    """A number is squared, in about half a millisecond; a name (and arguments) is one of the things above."""
    if isinstance(payload, int):
        return square(payload)
    name, *arguments = payload
    return ACTS[name](*arguments)


def staged(payload: str) -> str:
    """Stop where the payload says."""
    for name in ("reference", "answer"):
        stage(name)
        if payload == name:
            spin_in_python()
        if payload == f"crash in {name}":
            segfault()
        if payload == f"raise in {name}":
            raise ValueError(name)
    return payload


def facts(_: Any) -> dict[str, Any]:
    """What the worker looks like from inside."""
    descriptors = [int(entry.name) for entry in Path("/proc/self/fd").iterdir()]
    links = {fd: str(Path(f"/proc/self/fd/{fd}").readlink()) for fd in descriptors if _is_open(fd)}
    return {
        "pid": os.getpid(),
        "group": os.getpgrp(),
        "parent": os.getppid(),
        "links": links,
        "main": getattr(sys.modules["__main__"], "__file__", None),
        "modules": sorted(sys.modules),
        "path": sys.path,
        "oom": Path("/proc/self/oom_score_adj").read_text().strip(),
        "hash": hash("stable"),
        "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
        "threads": threading.active_count(),
    }


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


class Table:
    """A handler that is expensive to build: counts how often it was."""

    built = 0

    def __init__(self, size: int) -> None:
        self.size = size

    def __setstate__(self, state: Any) -> None:
        self.__dict__ = state
        type(self).built += 1

    def __call__(self, payload: Any) -> tuple[int, int, int]:
        return os.getpid(), type(self).built, self.size


class Unloadable:
    """A handler that fails, in some way, when it is unpickled in a worker."""

    def __init__(self, how: str) -> None:
        self.how = how

    def __setstate__(self, state: Any) -> None:
        ACTS[state["how"]]()

    def __call__(self, payload: Any) -> Any:
        return payload


def count_runs(payload: tuple[str, int]) -> int:
    """Add a line to a file: what has run can be counted."""
    path, number = payload
    with Path(path).open("a") as file:
        file.write(f"{number}\n")
    burn(0.001)
    return number


class Hoard:
    """Keeps what it is asked to allocate, in MB, from item to item."""

    def __init__(self, pause: float = 0.0) -> None:
        self.kept: list[bytearray] = []
        self.pause = pause

    def __call__(self, payload: int) -> int:
        self.kept.append(bytearray(b"x") * (payload << 20))
        time.sleep(self.pause)
        return payload


def change_group() -> NoReturn:
    """Leave the group that would be killed, and do not end."""
    os.setpgid(0, os.getpgid(os.getppid()))
    spin_in_python()


poisoned = False


def poison() -> int:
    """Prepare the end of a later item in the same worker."""
    global poisoned  # noqa: PLW0603 - that is the point
    poisoned = True
    time.sleep(0.02)
    return 1


def trip() -> int:
    """Die, a little later, of what another has prepared."""
    time.sleep(0.2)
    if poisoned:
        segfault()
    return 1


def leave(code: int) -> None:
    """End the process without a word."""
    os._exit(code)


def sys_exit() -> None:
    """End the process, as Python code does."""
    sys.exit()


ACTS["change_group"] = change_group
ACTS["poison"] = poison
ACTS["trip"] = trip
ACTS["leave"] = leave
ACTS["sys_exit"] = sys_exit


def kill_zygote() -> None:
    """Kill the worker's own parent."""
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(5)


def lingering_then_spin() -> None:
    """Busy, with a process in the group."""
    subprocess.Popen(["sleep", "1000"])
    spin_in_python()


ACTS["kill_zygote"] = kill_zygote
ACTS["lingering_then_spin"] = lingering_then_spin
