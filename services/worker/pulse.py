"""What a worker does besides grading: it says that it lives, and puts right what others have left undone."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import threading
import time
from collections.abc import Sequence

from ...client.queue.broker import MOST, Waker
from ...client.queue.ledger import Ledger
from .grader import Grader

log = logging.getLogger(__name__)

HANG_S = 900.0
"""A batch under way for so long is given up: its lease is no longer renewed, and another worker gets it."""

_IDLE_S = 5.0
"""Work that is ready for so long, while this worker takes none, is taken without a message."""


class Pulse:
    """Beats while a worker lives. `kinds`: what it grades; `slots`: how many batches at once."""

    def __init__(self, grader: Grader, waker: Waker, kinds: Sequence[str], slots: int) -> None:
        self._grader = grader
        self._ledger = grader.ledger
        self._waker = waker
        self._kinds = kinds
        self._slots = slots
        self._started = time.time()
        self._stuck: set[str] = set()

    async def beat_for_ever(self) -> None:
        """Renew leases, reconcile and wake, every second; a Redis that is away is waited for."""
        every = min(1.0, self._ledger.lease_s / 4)
        while True:
            began = time.monotonic()
            try:
                await self.beat()
                await reconcile(self._ledger, self._waker)
                await self._look_for_work()
            except Exception as error:  # noqa: BLE001 - whatever fails now may succeed in a second
                log.warning("the queue cannot be reached: %s: %s", type(error).__name__, error)
            await asyncio.sleep(max(0.05, every - (time.monotonic() - began)))

    async def beat(self) -> None:
        """Say that this worker lives, and renew its leases."""
        held = self._grader.held(younger_than_s=HANG_S)
        stuck = set(self._grader.held()) - set(held)
        for batch in stuck - self._stuck:
            log.error("batch %s has been under way for %.0f s and is given up", batch, HANG_S)
        self._stuck = stuck
        about = {
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "kinds": list(self._kinds),
            "slots": self._slots,
            "busy": len(held),
            "graded": self._grader.graded,
            "started": self._started,
        }
        await self._ledger.beat(self._grader.name, about, held)

    async def _look_for_work(self) -> None:
        """Take work that nobody is woken for, in a thread: Celery may have stopped to listen after a broken line."""
        if len(self._grader.held()) >= self._slots or time.monotonic() - self._grader.taken_at < _IDLE_S:
            return
        if not self._grader.can_take:
            return
        kinds = (await self._ledger.depths()).kinds
        if any(kind in kinds and kinds[kind].age_s > _IDLE_S for kind in self._kinds):
            log.warning("work has waited for %.0f s without a message; taking it", _IDLE_S)
            threading.Thread(target=self._take_all, name="rewarden-unwoken", daemon=True).start()

    def _take_all(self) -> None:
        try:
            while self._grader.grade(self._kinds):
                pass
        except Exception:
            log.exception("work that nobody was woken for could not be graded")


async def reconcile(ledger: Ledger, waker: Waker) -> None:
    """Put the ledger right, and wake workers where fewer messages are out than there are batches ready."""
    await ledger.reconcile()
    missing = {}
    for kind, depth in (await ledger.depths()).kinds.items():
        if depth.age_s > 1.0:
            missing[kind] = min(depth.batches, MOST) - await ledger.redis.llen(waker.messages_of(kind))
    await waker.wake({kind: count for kind, count in missing.items() if count > 0})
