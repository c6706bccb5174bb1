"""What is kept for people is bounded, short, and right."""

from __future__ import annotations

import time
from collections import Counter
from itertools import pairwise

import pytest

from rewarden import Graded, Reason, Rollout, Trace, correct, ungraded
from rewarden.services import record
from rewarden.services.metrics import Histogram
from rewarden.services.record import LAST, STEPS, Record


def graded(seconds: float = 0.0, *, lost: bool = False, why: str = "because") -> Graded:
    """A verdict as an engine gives it."""
    verdict = ungraded(Reason.DEADLINE, why, id="r" * 1000) if lost else correct(id="r")
    return Graded(verdict, Trace(seconds=seconds))


def test_lists_are_bounded() -> None:
    """However much is ungraded or slow, the last 50 are kept, the newest first, and no long text."""
    kept = Record(slow_s=1.0)
    for number in range(200):
        item = Rollout(id=f"slow-{number}", completion="secret")
        found = kept.batch("math", [item, item], [graded(2.0), graded(lost=True, why="y" * 9999)], Counter())
        assert [row["id"] for row in found] == [f"slow-{number}"]
    shown = kept.to_dict()
    assert len(shown["ungraded"]) == len(shown["slow"]) == LAST
    assert shown["slow"][0]["id"] == "slow-199"
    assert max(len(row["explanation"]) for row in shown["ungraded"]) <= record.SHOWN
    assert "secret" not in str(shown)


def test_buckets_are_of_the_last_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers fall into steps of five seconds, and those of more than 15 minutes ago are gone."""
    now = [1_000_000.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    kept = Record(slow_s=1.0)
    for step in range(STEPS + 20):
        now[0] = 1_000_000.0 + 5 * step
        kept.request(200)
        kept.request(429)
        kept.request(500)
    shown = kept.to_dict()["buckets"]
    assert len(shown) == STEPS
    assert [shown[0][name] for name in ("requests", "refused", "failed")] == [3, 1, 1]
    assert {after["start"] - before["start"] for before, after in pairwise(shown)} == {5}
    now[0] += 3600
    assert kept.to_dict()["buckets"] == []


def test_histogram() -> None:
    """A value counts in the first bucket that is not below it, and buckets add up."""
    histogram = Histogram((0.0, 1.0))
    for value in (-3.0, 0.0, 0.5, 1.0, 7.0):
        histogram.add(value)
    assert histogram.buckets() == [("0.0", 2.0), ("1.0", 4.0), ("+Inf", 5.0)]
    assert histogram.total == 5.5
