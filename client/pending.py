"""Scores that are under way in the background."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Generator, Mapping, Sequence
from typing import Any

from ..core.rollout import Rollout
from ..core.verdict import Verdict


class AsyncPending:
    """Scores under way; awaiting it gives the verdicts on its `rollouts`, or raises what `score` would."""

    def __init__(self, rollouts: Sequence[Rollout | Mapping[str, Any]], task: asyncio.Task[list[Verdict]]) -> None:
        self.rollouts = rollouts
        self.task = task

    def __await__(self) -> Generator[Any, None, list[Verdict]]:
        return asyncio.shield(self.task).__await__()

    @property
    def done(self) -> bool:
        """Whether awaiting it would return at once."""
        return self.task.done()

    def cancel(self) -> bool:
        """Give it up; awaiting it then raises CancelledError. False when it was done already."""
        return self.task.cancel()


class Pending:
    """Scores under way, for code that runs on no event loop."""

    def __init__(
        self, rollouts: Sequence[Rollout | Mapping[str, Any]], future: concurrent.futures.Future[list[Verdict]]
    ) -> None:
        self.rollouts = rollouts
        self.future = future

    def result(self, timeout: float | None = None) -> list[Verdict]:
        """The verdicts on its `rollouts`; raises what `score` would, and TimeoutError after `timeout` seconds."""
        return self.future.result(timeout)

    @property
    def done(self) -> bool:
        """Whether `result` would return at once."""
        return self.future.done()

    def cancel(self) -> bool:
        """Give it up; `result` then raises CancelledError. False when it was done already."""
        return self.future.cancel()
