"""What the pool says about one piece of work: its value, or the fault that prevented one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Fault(StrEnum):
    """Why a piece of work has no value. Who is to blame for it (answer, reference, nobody) is the caller's to say."""

    CPU = "cpu"
    """It used more CPU than its budget. Independent of the machine's load; not retried."""
    DEADLINE = "deadline"
    """It was still running at its wall deadline with CPU to spare, twice: it slept, blocked, or was starved."""
    MEMORY = "memory"
    """It wanted more memory than a fresh worker may have."""
    CRASH = "crash"
    """Its worker died of it twice: the second time it ran alone in a fresh worker and nobody killed that from outside.
    """
    KILLED = "killed"
    """Others kept killing its workers, also when it was alone: nothing is known about it."""
    CANCELLED = "cancelled"
    """Its batch was cancelled, or the pool closed, before it ended."""
    ERROR = "error"
    """The handler raised, or the payload or the result does not pickle: `detail` holds the exception's text."""


@dataclass(slots=True)
class Report:
    """The outcome of one payload: `value` when `fault` is None, otherwise the fault and what is known about it."""

    value: object | None
    """What the handler returned; None with a fault."""
    fault: Fault | None
    """None when the handler returned."""
    detail: str
    """One line for a person; empty without a fault."""
    stage: str
    """The last name given to `stage()` while the payload was worked on; empty when none was."""
    cpu_s: float
    """Seconds of CPU of the last run."""
    wall_s: float
    """Seconds on the clock of the last run."""
    attempts: int
    """How often work on it started: 0 when it never did, more than 1 when a worker died under it."""
