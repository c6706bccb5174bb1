"""What the self-test of the pool has its workers do. A module of its own: workers import it, and it must be quick."""

from __future__ import annotations

import time


def square(number: object) -> int:
    """Slow enough that a worker can be killed in the middle of its work."""
    assert isinstance(number, int)
    time.sleep(0.02)
    return number * number
