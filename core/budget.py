"""What one piece of work may cost: seconds of CPU, and seconds on the clock.

Covered: the two limits and their validation. Not covered: how they are enforced (`core/pool/`), and memory, which is a
property of a worker and not of an item.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Budget:
    """The limits of one piece of work. Both start when the work starts, never while it waits its turn.

    `cpu_s` is what the work itself may burn, measured by the kernel, so that a verdict based on it does not depend on
    how busy the machine is. `wall_s` bounds work that sleeps, blocks or is starved by others; it is several times the
    CPU budget by default, so that it decides only where CPU cannot.
    """

    cpu_s: float = 2.0
    """Seconds of CPU of the worker process, all its threads together (finite, > 0)."""
    wall_s: float = 10.0
    """Seconds from start to end (finite, > 0). Below `cpu_s` the machine's load decides before CPU can."""

    def __post_init__(self) -> None:
        for name in ("cpu_s", "wall_s"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise TypeError(f"Budget.{name} must be a number of seconds, not {type(value).__name__}.")
            if not math.isfinite(value) or value <= 0:
                raise ValueError(f"Budget.{name} must be a finite number of seconds above 0, not {value!r}.")
