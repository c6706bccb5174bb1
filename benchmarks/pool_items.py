"""Items of `pool_libraries.py`, in a module of their own so that the workers of every library can import them."""

from __future__ import annotations

import os
import time


def nothing(payload: object) -> object:
    """Return at once."""
    return payload


def millisecond(payload: int) -> int:
    """About a millisecond of CPU; a negative number never returns, in one call of C."""
    if payload < 0:
        return sum(range(10**15))
    until = time.process_time() + 0.001
    while time.process_time() < until:
        pass
    return payload * payload


def pid(_: object) -> int:
    """Who works."""
    return os.getpid()


def import_sympy() -> None:
    """What a worker of a math grader needs before its first item."""
    __import__("sympy")
