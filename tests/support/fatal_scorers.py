"""Scorers that end the process that they run in: what a fault in a scorer of one's own may do at worst."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from typing import Any

from rewarden import Scorer, Verdict, scored


class Fatal(Scorer):
    """Scores 1 inline, but kills its process, as a fault in native code would, over the completion `poison`."""

    name = "fatal"
    reads = ("completion",)

    def score(self, rollouts: Sequence[Any], prior: Sequence[Any]) -> list[Verdict]:
        if any(rollout.completion == "poison" for rollout in rollouts):
            time.sleep(0.05)  # so that whatever else this process has begun is there to be lost
            os.kill(os.getpid(), signal.SIGKILL)
        if any(rollout.completion == "slow" for rollout in rollouts):
            time.sleep(1.0)
        return [scored(1.0) for _ in rollouts]
