"""Stops a run whose graders fail: a share of ungraded verdicts that nobody should train on."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable

from ..core.errors import UngradedError
from ..core.verdict import Verdict

WINDOW = 1024
"""Recent verdicts that are looked at."""

LEAST = 64
"""Verdicts that must be in the window before it can say anything."""


class Breaker:
    """Trips when more than the share `limit` of the last verdicts are ungraded, then counts anew."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._recent: deque[Verdict] = deque()
        self._failed = 0

    def add(self, verdicts: Iterable[Verdict]) -> None:
        """Look at these too. Raises UngradedError, with the window as its `verdicts`, when too many are ungraded."""
        for verdict in verdicts:
            self._recent.append(verdict)
            self._failed += not verdict.graded
            if len(self._recent) > WINDOW:
                self._failed -= not self._recent.popleft().graded
        if len(self._recent) >= LEAST and self._failed > self._limit * len(self._recent):
            self._trip()

    def _trip(self) -> None:
        recent = list(self._recent)
        self._recent.clear()
        self._failed = 0
        failed = [verdict for verdict in recent if not verdict.graded]
        reasons = Counter(str(verdict.reason) for verdict in failed)
        causes = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common(3))
        raise UngradedError(
            f"{len(failed)} of the last {len(recent)} rollouts were not graded ({causes}), more than the share "
            f"max_ungraded={self._limit:g}; the latest says: {failed[-1].explanation[:200] or failed[-1].reason}",
            recent,
        )
