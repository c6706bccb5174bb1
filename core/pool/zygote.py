"""The zygote: a process that has imported what workers need, and forks a warm worker in milliseconds.

It is started with exec, so it is the same whatever the parent's threads hold, and it never imports the parent's main
script. It runs no work itself: it forks, watches, and cleans up. When the parent dies it kills every worker's process
group and leaves; when it dies itself, the kernel kills its workers. Processes that left a worker's group are adopted
here as their worker dies, and killed.

Not covered: modules that start threads while they are imported. A fork copies only the main thread; name such modules
in the handler's own imports instead of `preload`.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import select
import signal
import socket
import sys
from typing import TypedDict

from ..errors import describe
from . import system
from .protocol import RECORD, Record
from .worker import Worker


class Config(TypedDict):
    """What the parent tells its zygote, marshalled on standard input."""

    module: str
    path: list[str]
    preload: list[str]
    memory_bytes: int
    parent: int


BOOT = """
import marshal, sys
config = marshal.loads(sys.stdin.buffer.read())
sys.path[:] = config["path"]
import importlib
importlib.import_module(config["module"]).main(int(sys.argv[1]), config)
"""
"""The zygote's program; run with -P, so that nothing in the current folder is imported by mistake."""


def main(control_fd: int, config: Config) -> None:
    """Import, report ready, and serve the parent until it goes away."""
    control = socket.socket(fileno=control_fd)
    # Whatever the parent's thread had blocked or ignored must not reach the workers.
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGCHLD, signal.SIGALRM):
        signal.signal(name, signal.SIG_DFL)
    system.die_with_parent(signal.SIGTERM, config["parent"])
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    for module in config["preload"]:
        try:
            importlib.import_module(module)
        except BaseException as error:  # noqa: BLE001 - whatever a module raises
            text = f"the module {module!r} cannot be preloaded: {describe(error)}".encode("utf-8", "replace")
            control.sendall(RECORD.pack(Record.UNUSABLE, 0, len(text)) + text)
            return
    gc.collect()
    gc.freeze()  # so that a collection in a worker does not copy every page that they share
    Zygote(control, config["memory_bytes"]).serve()


class Zygote:
    """The workers that are alive or not reaped yet, by the parent's number for each."""

    def __init__(self, control: socket.socket, memory_bytes: int) -> None:
        self._control = control
        self._memory_bytes = memory_bytes
        self._pids: dict[int, int] = {}
        self._exited: set[int] = set()
        self._kept = set(system.children(os.getpid()))
        """What a preloaded module started on purpose."""
        self._stopping = False
        self._wake_r, self._wake_w = socket.socketpair()
        self._wake_r.setblocking(False)
        self._wake_w.setblocking(False)

    def serve(self) -> None:
        """Fork and clean up as told, until the parent closes the control socket or dies."""
        system.adopt_orphans()
        signal.set_wakeup_fd(self._wake_w.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._stop)
        try:
            self._tell(Record.READY, 0, 0)
            while not self._stopping:
                ready, _, _ = select.select([self._control, self._wake_r], [], [])
                if self._wake_r in ready:
                    with contextlib.suppress(BlockingIOError):
                        self._wake_r.recv(4096)
                    self._watch()
                if self._control in ready and not self._obey():
                    break
        except OSError:
            pass  # the parent is gone
        finally:
            self._end()

    def _stop(self, *_: object) -> None:
        self._stopping = True

    def _tell(self, kind: Record, worker: int, value: int) -> None:
        self._control.sendall(RECORD.pack(kind, worker, value))

    def _obey(self) -> bool:
        """Carry out one record of the parent; False when there are no more."""
        data, fds, _, _ = socket.recv_fds(self._control, RECORD.size, 2)
        if data and len(data) < RECORD.size:
            data += self._control.recv(RECORD.size - len(data), socket.MSG_WAITALL)
        if len(data) < RECORD.size:
            return False
        kind, worker, _ = RECORD.unpack(data)
        if kind == Record.SPAWN:
            self._spawn(worker, fds)
        elif kind == Record.REAP:
            self._reap(worker)
        return True

    def _spawn(self, worker: int, fds: list[int]) -> None:
        zygote = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:
            self._tell(Record.REFUSED, worker, error.errno or 0)
        else:
            if pid == 0:
                self._become_worker(zygote, *fds)
            # In both processes, so that the group exists before either goes on.
            with contextlib.suppress(OSError):
                os.setpgid(pid, pid)
            self._pids[worker] = pid
            self._tell(Record.SPAWNED, worker, pid)
        finally:
            for fd in fds:
                os.close(fd)

    def _become_worker(self, zygote: int, sock_fd: int, page_fd: int) -> None:
        """Never returns."""
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            for name in (signal.SIGCHLD, signal.SIGTERM):
                signal.signal(name, signal.SIG_DFL)
            os.setpgid(0, 0)
            system.die_with_parent(signal.SIGKILL, zygote)
            system.adopt_orphans()
            for ours in (self._control, self._wake_r, self._wake_w):
                ours.close()
            for fd in (sock_fd, page_fd):
                os.set_inheritable(fd, False)
            system.limit_this_process(self._memory_bytes)
            Worker(socket.socket(fileno=sock_fd), page_fd).serve()
            code = 0
        except BaseException as error:  # noqa: BLE001 - a worker never returns into the zygote's code
            with contextlib.suppress(BaseException):
                sys.stderr.write(f"rewarden worker: {describe(error)}\n")
        finally:
            os._exit(code)

    def _watch(self) -> None:
        """Report workers that died. They stay zombies, so that the parent may still kill their groups safely."""
        for worker, pid in self._pids.items():
            if worker in self._exited:
                continue
            found = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if found is not None:
                self._exited.add(worker)
                exited = found.si_code == os.CLD_EXITED
                self._tell(Record.EXITED, worker, found.si_status if exited else -found.si_status)
        self._sweep()

    def _reap(self, worker: int) -> None:
        pid = self._pids.pop(worker, 0)
        self._exited.discard(worker)
        if pid:
            _kill_group(pid)
            os.waitpid(pid, 0)
            self._sweep()

    def _sweep(self) -> None:
        """Kill and reap descendants of dead workers that had left their group."""
        known = self._kept.union(self._pids.values())
        for pid in system.children(os.getpid()):
            if pid not in known:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)

    def _end(self) -> None:
        for pid in self._pids.values():
            _kill_group(pid)
        for pid in self._pids.values():
            with contextlib.suppress(OSError):
                os.waitpid(pid, 0)
        self._pids.clear()
        self._kept.clear()
        # Killing an orphan may orphan its own children: look until there are none.
        while system.children(os.getpid()):
            self._sweep()


def _kill_group(pid: int) -> None:
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(OSError):
        os.killpg(pid, signal.SIGKILL)
