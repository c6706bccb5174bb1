"""A budget of work, counted and not timed, so that no answer can stall the caller.

Costs are units of about a microsecond, estimated before or right after an operation from the size of its operands. Each
reading of a text and each comparison of two readings starts with a full tank, so the count depends on the texts alone:
never on the machine or its load, nor on what some cache holds.
"""

from __future__ import annotations

import threading

BUDGET = 60_000.0


class ExhaustedError(Exception):
    """The budget is spent: the text stays unread, or the comparison unsettled."""


class _Tank(threading.local):
    left = BUDGET


_TANK = _Tank()


def refill() -> None:
    """Start a reading or a comparison in this thread."""
    _TANK.left = BUDGET


def spend(units: float) -> None:
    """Pay for an operation; raises `ExhaustedError` when the budget is spent, and from then on until the refill."""
    _TANK.left -= units
    if _TANK.left < 0:
        raise ExhaustedError
