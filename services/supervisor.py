"""A child process that is started again when it dies, and that never outlives this one."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from ..core.pool.system import die_with_parent

log = logging.getLogger(__name__)

_SOON_S = 0.1
_LATE_S = 10.0
_STEADY_S = 60.0
"""A child that has lived so long was well; the next start is soon again."""


class Supervisor:
    """Runs `command` again and again until `stop`, or until it ends with status 0 or 2 (usage), in a thread.

    `environment` is asked before every start, so that each child can have a name of its own; `died` hears of each
    death, with the environment and the status. The thread has to live as long as the child: the kernel ends a child
    with the thread that started it. `pass_fds`: descriptors that the child holds too.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        environment: Callable[[], Mapping[str, str]] = dict,
        died: Callable[[Mapping[str, str], int], None] | None = None,
        pass_fds: Sequence[int] = (),
    ) -> None:
        self._command = list(command)
        self._environment = environment
        self._died = died
        self._pass_fds = tuple(pass_fds)
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._run, name="rewarden-supervisor", daemon=True)
        self.status: int | None = None
        """How the child ended, when it is not started again."""
        self.restarts = 0

    def start(self) -> None:
        """Start the child; returns at once."""
        self._thread.start()

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Wait until the child is not started again; its exit status, or None when that takes longer."""
        self._thread.join(timeout_s)
        return self.status

    @property
    def pid(self) -> int | None:
        """Of the child that lives now."""
        child = self._child
        return child.pid if child is not None and child.poll() is None else None

    def stop(self, patience_s: float = 30.0) -> None:
        """End the child in good order, by force after `patience_s`."""
        self._stopping.set()
        with self._lock:
            child = self._child
        if child is not None and child.poll() is None:
            child.send_signal(signal.SIGTERM)
        self._thread.join(patience_s)
        if child is not None and child.poll() is None:
            child.kill()
            self._thread.join(5)

    def _run(self) -> None:
        pause = _SOON_S
        while True:
            own = dict(self._environment())
            with self._lock:
                if self._stopping.is_set():
                    self.status = 0
                    return
                child = self._child = self._spawn(own)
            began = time.monotonic()
            status = child.wait()
            if self._stopping.is_set() or status in (0, 2):
                self.status = status
                return
            self.restarts += 1
            log.warning("%s (process %d) ended with status %d; starting it again", self._command[0], child.pid, status)
            if self._died is not None:
                with contextlib.suppress(Exception):  # it only makes things faster
                    self._died(own, status)
            pause = _SOON_S if time.monotonic() - began > _STEADY_S else min(pause * 2, _LATE_S)
            self._stopping.wait(pause)

    def _spawn(self, own: Mapping[str, str]) -> subprocess.Popen[bytes]:
        parent = os.getpid()
        return subprocess.Popen(  # noqa: S603 - whoever made this says what to run
            self._command,
            env={**os.environ, **own},
            stdin=subprocess.DEVNULL,
            pass_fds=self._pass_fds,
            # A terminal's Ctrl-C is for us; we end our children in order.
            start_new_session=True,
            preexec_fn=lambda: die_with_parent(signal.SIGTERM, parent),  # noqa: PLW1509 - imports and locks nothing
        )
