"""When to try again: exponential waits with full jitter, never sooner than a service asks for."""

from __future__ import annotations

import random
import time

FIRST_S = 0.5
"""The longest that the first wait can be."""

LONGEST_S = 30.0
"""What the waits grow to, unless a service asks for more."""


class Backoff:
    """The waits of one piece of work: at most `retries` of them, and none that ends later than `total_s` from now.

    A wait is drawn from all of 0 to its limit, so that many clients that failed together do not come back together.
    """

    def __init__(self, retries: int, total_s: float) -> None:
        self._retries = retries
        self._total_s = total_s
        self.start_again()

    def start_again(self) -> None:
        """Something has succeeded: count and time begin anew."""
        self.used = 0
        self._until = time.monotonic() + self._total_s

    def wait_s(self, retry_after: float | None = None) -> float | None:
        """How long to wait before the next try, at least `retry_after`; None when there is none left."""
        if self.used >= self._retries:
            return None
        wait = max(retry_after or 0.0, 0.0) + random.uniform(0, min(LONGEST_S, FIRST_S * 2.0**self.used))  # noqa: S311 - spreads load
        if time.monotonic() + wait > self._until:
            return None
        self.used += 1
        return wait
