"""Scorers that let a test of a service decide when grading ends."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from rewarden import Resource, Scorer, Verdict, scored

OPEN = threading.Event()
"""What `gated` waits for."""

WAITING = threading.Semaphore(0)
"""Released for each rollout that waits."""


class Gated(Scorer):
    """Scores 1 once OPEN is set; `free` at once."""

    name = "gated"
    resource = Resource.SANDBOX
    reads = ("completion",)

    def score(self, rollouts: Sequence[Any], prior: Sequence[Any]) -> list[Verdict]:
        if rollouts[0].completion != "free":
            WAITING.release()
            OPEN.wait(60)
        return [scored(1.0) for _ in rollouts]
