"""What the service has done in the last minutes, for people: rates, outcomes, what could not be graded, what was slow.

Numbers for machines are in `metrics.py`. Nothing here holds a completion or a prompt.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..core.rollout import Rollout
from ..core.verdict import Graded
from ..core.wire import Item

STEP_S = 5
STEPS = 180
"""15 minutes."""

LAST = 50
"""Rows kept of what was ungraded, and of what was slow."""

SHOWN = 200
"""Characters of an id or an explanation."""


@dataclass(slots=True)
class Bucket:
    """Five seconds."""

    start: int
    """Seconds since 1970."""
    requests: int = 0
    refused: int = 0
    """429 and 503."""
    failed: int = 0
    """500."""
    rollouts: int = 0
    cached: int = 0
    seconds: float = 0.0
    """Of the scorers, added up."""
    outcomes: Counter[str] = field(default_factory=Counter)

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "start": self.start,
            "requests": self.requests,
            "refused": self.refused,
            "failed": self.failed,
            "rollouts": self.rollouts,
            "cached": self.cached,
            "seconds": round(self.seconds, 6),
            "outcomes": dict(self.outcomes),
        }


class Record:
    """The last 15 minutes in steps of 5 s. May be used from any thread."""

    def __init__(self, slow_s: float) -> None:
        self._slow_s = slow_s
        self._lock = threading.Lock()
        self._buckets: deque[Bucket] = deque(maxlen=STEPS)
        self._ungraded: deque[dict[str, Any]] = deque(maxlen=LAST)
        self._slow: deque[dict[str, Any]] = deque(maxlen=LAST)
        self.outcomes: dict[str, Counter[str]] = {}
        """By scorer, since the start."""

    def request(self, status: int) -> None:
        """A request was answered."""
        with self._lock:
            bucket = self._now()
            bucket.requests += 1
            if status in (429, 503):
                bucket.refused += 1
            elif status >= 500:
                bucket.failed += 1

    def batch(
        self, recipe: str, items: Sequence[Item], graded: Sequence[Graded], counts: Counter[tuple[str, str]]
    ) -> list[dict[str, Any]]:
        """Rollouts were graded; `counts` by scorer and outcome. Returns the slow ones."""
        ungraded, slow = [], []
        cached = 0
        seconds = 0.0
        limit = self._slow_s
        for row, one in enumerate(graded):
            trace = one.trace
            seconds += trace.seconds
            cached += trace.cached
            if one.verdict.reward is None:
                ungraded.append(row)
            if trace.seconds > limit:
                slow.append(row)
        now = time.time()
        lost = [ungraded_row(recipe, graded[row], now) for row in ungraded[-LAST:]]
        late = [slow_row(recipe, items[row], graded[row], now) for row in slow[-LAST:]]
        with self._lock:
            bucket = self._now()
            bucket.rollouts += len(graded)
            bucket.cached += cached
            bucket.seconds += seconds
            for (scorer, outcome), number in counts.items():
                bucket.outcomes[outcome] += number
                self.outcomes.setdefault(scorer, Counter())[outcome] += number
            self._ungraded.extend(lost)
            self._slow.extend(late)
        return late

    def _now(self) -> Bucket:
        start = int(time.time()) // STEP_S * STEP_S
        if not self._buckets or self._buckets[-1].start < start:
            self._buckets.append(Bucket(start))
        return self._buckets[-1]

    def to_dict(self) -> dict[str, Any]:
        """As JSON values; times without traffic are left out of `buckets`."""
        with self._lock:
            oldest = time.time() - STEP_S * STEPS
            return {
                "step_s": STEP_S,
                "buckets": [bucket.to_dict() for bucket in self._buckets if bucket.start >= oldest],
                "scorers": {scorer: dict(counts) for scorer, counts in sorted(self.outcomes.items())},
                "ungraded": [*reversed(self._ungraded)],
                "slow": [*reversed(self._slow)],
            }


def ungraded_row(recipe: str, one: Graded, now: float) -> dict[str, Any]:
    """What people are shown of a rollout that could not be graded."""
    verdict = one.verdict
    return {
        "time": round(now, 3),
        "id": _short(verdict.id),
        "recipe": _short(recipe),
        "scorer": verdict.scorer.name if verdict.scorer is not None else None,
        "reason": str(verdict.reason),
        "explanation": _short(verdict.explanation),
    }


def slow_row(recipe: str, item: Item, one: Graded, now: float) -> dict[str, Any]:
    """What people are shown of a rollout that took long."""
    verdict = one.verdict
    return {
        "time": round(now, 3),
        "id": _short(item.id if isinstance(item, Rollout) else ""),
        "recipe": _short(recipe),
        "scorer": verdict.scorer.name if verdict.scorer is not None else None,
        "seconds": round(one.trace.seconds, 3),
        "outcome": verdict.outcome.value,
    }


def _short(text: str) -> str:
    return text[:SHOWN].encode("utf-8", "replace").decode()
