"""What a run over a file has shown, in numbers: kept up to date row by row, in memory that does not grow with the rows.

Only groups need room, about 200 bytes for each, because a group's members may lie anywhere in the file.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from typing import Any

from ..core.reasons import UNGRADED_REASONS
from ..core.verdict import Trace

SLOWEST = 5

SHOWN = 20
"""Rejected rows that are described."""

_STEPS = 64
"""Buckets to a doubling of the time, so that a percentile is within 1 % of the true one."""

_ZERO = -(10**9)


class Times:
    """Percentiles of times, as a histogram on a logarithmic scale. Equal inputs give equal results in any order."""

    def __init__(self) -> None:
        self._buckets: Counter[int] = Counter()

    def add(self, seconds: float) -> None:
        """Count one time, in seconds."""
        mantissa, exponent = math.frexp(seconds)
        # The mantissa is 0 for no time at all, which is less than any, and otherwise from 0.5 to 1.
        self._buckets[2 * _STEPS * exponent + int(2 * _STEPS * mantissa) if mantissa else _ZERO] += 1

    def percentile(self, share: float) -> float | None:
        """The time in seconds that this share (0 to 1) of all stays below; None without any."""
        rest = math.ceil(share * self._buckets.total())
        for bucket in sorted(self._buckets):
            rest -= self._buckets[bucket]
            if rest <= 0:
                exponent, step = divmod(bucket, 2 * _STEPS)
                return 0.0 if bucket == _ZERO else math.ldexp((step + 0.5) / (2 * _STEPS), exponent)
        return None


class Summary:
    """Running totals over the rows of a file."""

    def __init__(self) -> None:
        self.rows = 0
        """Rows with a verdict."""
        self.rejected = 0
        self.outcomes: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.cached = 0
        self.pooled = 0
        self.retried = 0
        """Rows that took more than one attempt."""
        self.times = Times()
        self.seconds = 0.0
        """Of the scorers' time, over all rows."""
        self.resumed = 0
        """Rows whose verdict an earlier, interrupted run has left."""
        self.scorers: Counter[str] = Counter()
        """Rows by who gave the verdict: a scorer, or the recipe where it combines several."""
        self.causes: dict[str, tuple[int, str]] = {}
        """Line and explanation of the first row without a reward, by reason."""
        self.rejections: list[str] = []
        """The first rejected rows, in lines."""
        self.notes: list[str] = []
        """What a person should know about this run, in lines."""
        self._rewards = 0.0
        self._slowest: list[tuple[float, int]] = []
        self._first_rewards: dict[int, float] = {}
        self._varied: set[int] = set()

    @property
    def ungraded(self) -> int:
        """Rows without a reward."""
        return self.outcomes["ungraded"]

    @property
    def mean_reward(self) -> float | None:
        """Over the graded rows; None without any."""
        graded = self.rows - self.ungraded
        return self._rewards / graded if graded else None

    @property
    def groups(self) -> int:
        """Different groups."""
        return len(self._first_rewards)

    @property
    def no_signal(self) -> float | None:
        """Share of the groups that teach nothing: all graded members have the same reward. None without groups."""
        return 1 - len(self._varied) / self.groups if self.groups else None

    @property
    def slowest(self) -> list[tuple[int, float]]:
        """Row numbers and seconds, the slowest first."""
        return [(-number, seconds) for seconds, number in sorted(self._slowest, reverse=True)]

    def add(self, reward: float | None, outcome: str, reason: str | None, group: str | None) -> None:
        """Count a verdict by its columns."""
        self.rows += 1
        self.outcomes[outcome] += 1
        if reason is not None:
            self.reasons[reason] += 1
        if reward is not None:
            self._rewards += reward
        if group is not None:
            key = hash(group)
            first = self._first_rewards.setdefault(key, math.nan if reward is None else reward)
            if reward is not None and first != reward:
                if first == first:  # noqa: PLR0124 - not NaN, which stands for a group without a reward so far
                    self._varied.add(key)
                else:
                    self._first_rewards[key] = reward

    def add_source(self, number: int, scorer: str | None, reason: str | None, explanation: str) -> None:
        """Count who gave the verdict on row `number`, and keep the first explanation of why it is none."""
        if scorer is not None:
            self.scorers[scorer] += 1
        if reason in UNGRADED_REASONS and reason not in self.causes:
            self.causes[str(reason)] = number, explanation

    def add_rejected(self, number: int, error: str) -> None:
        """Count a row that is no rollout."""
        self.rejected += 1
        if self.rejected <= SHOWN:
            self.rejections.append(f"line {number} rejected: {error}")

    def add_trace(self, number: int, trace: Trace) -> None:
        """Count how the verdict on row `number` came about."""
        seconds = trace.seconds
        self.seconds += seconds
        self.times.add(seconds)
        if trace.cached:
            self.cached += 1
        if trace.pooled:
            self.pooled += 1
        if trace.attempts > 1:
            self.retried += 1
        slowest = self._slowest
        if len(slowest) < SLOWEST:
            heapq.heappush(slowest, (seconds, -number))
        elif seconds > slowest[0][0]:
            heapq.heapreplace(slowest, (seconds, -number))

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "rows": self.rows,
            "rejected": self.rejected,
            "resumed": self.resumed,
            "outcomes": dict(sorted(self.outcomes.items())),
            "reasons": dict(sorted(self.reasons.items())),
            "scorers": dict(sorted(self.scorers.items())),
            "mean_reward": self.mean_reward,
            "ungraded_share": self.ungraded / self.rows if self.rows else None,
            "groups": self.groups,
            "no_signal_share": None if self.no_signal is None else round(self.no_signal, 6),
            "cached": self.cached,
            "pooled": self.pooled,
            "retried": self.retried,
            "seconds": round(self.seconds, 6),
            "p50_s": self.times.percentile(0.5),
            "p99_s": self.times.percentile(0.99),
            "slowest": [{"line": number, "seconds": round(seconds, 6)} for number, seconds in self.slowest],
            "causes": {name: {"line": line, "explanation": why} for name, (line, why) in sorted(self.causes.items())},
            "notes": [*self.rejections, *self.notes],
        }
