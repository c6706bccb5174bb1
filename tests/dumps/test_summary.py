"""The numbers of a run."""

from __future__ import annotations

import math
import random
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewarden.core.verdict import Trace
from rewarden.dumps.progress import Progress, Stage
from rewarden.dumps.summary import SHOWN, SLOWEST, Summary, Times

REWARDS = st.none() | st.sampled_from([0.0, 1.0, 0.5])
ROWS = st.lists(st.tuples(REWARDS, st.none() | st.sampled_from("abcd")), max_size=40)


@given(rows=ROWS)
def test_totals_are_those_of_the_rows(rows: list[tuple[float | None, str | None]]) -> None:
    """Mean, ungraded and silent groups agree with a count over all rows at once."""
    summary = Summary()
    groups: dict[str, list[float]] = defaultdict(list)
    for reward, group in rows:
        summary.add(reward, "ungraded" if reward is None else "scored", "deadline" if reward is None else None, group)
        if group is not None:
            groups[group] += [] if reward is None else [reward]
    graded = [reward for reward, _ in rows if reward is not None]
    assert summary.rows == len(rows)
    assert summary.ungraded == len(rows) - len(graded) == summary.reasons["deadline"]
    assert summary.mean_reward == (pytest.approx(math.fsum(graded) / len(graded)) if graded else None)
    silent = sum(len(set(members)) <= 1 for members in groups.values())
    assert summary.no_signal == (pytest.approx(silent / len(groups)) if groups else None)


@given(times=st.lists(st.floats(1e-7, 1e4), min_size=1, max_size=200), share=st.sampled_from([0.01, 0.5, 0.99, 1.0]))
def test_percentiles_are_within_a_percent(times: list[float], share: float) -> None:
    """A percentile is the time of the row at that rank, within one percent."""
    found = Times()
    for seconds in times:
        found.add(seconds)
    assert found.percentile(share) == pytest.approx(sorted(times)[math.ceil(share * len(times)) - 1], rel=0.01)


def test_percentiles_of_nothing_and_of_zero() -> None:
    """No times have no percentile, and rows from the cache take none."""
    times = Times()
    assert times.percentile(0.5) is None
    times.add(0.0)
    times.add(0.25)
    assert times.percentile(0.5) == 0.0
    assert times.percentile(1.0) == pytest.approx(0.25, rel=0.01)


@given(times=st.lists(st.sampled_from([0.0, 0.1, 0.2, 0.3, 1.5]), max_size=30), seed=st.integers(0, 9))
def test_slowest_rows(times: list[float], seed: int) -> None:
    """The slowest rows are kept with their numbers, the slowest first, in whatever order they come."""
    summary = Summary()
    numbered = list(enumerate(times, start=1))
    random.Random(seed).shuffle(numbered)
    for number, seconds in numbered:
        summary.add_trace(number, Trace(seconds=seconds))
    assert [seconds for _, seconds in summary.slowest] == sorted(times, reverse=True)[:SLOWEST]
    assert all(times[number - 1] == seconds for number, seconds in summary.slowest)


def test_time_left_leaves_out_what_was_there() -> None:
    """The pace is that of this run since its first verdict: neither rows that were there nor reading them count."""
    progress = Progress()
    progress.enter(Stage.RESUMING)
    progress.summary.rows = progress.summary.resumed = 1000
    progress.update(0.5)
    progress.enter(Stage.SCORING)
    progress.update(0.5)
    assert progress.seconds_left is None
    progress.summary.rows += 1
    progress.update(0.5)
    progress.summary.rows += 99
    progress.update(0.6)
    progress.seconds = 10.0
    assert progress.rows_per_s == 10.0
    assert progress.seconds_left == pytest.approx(40.0, rel=0.01)


def test_shares_are_rounded() -> None:
    """The summary as JSON has no digits that say nothing."""
    summary = Summary()
    for group in "aab":
        summary.add(1.0, "scored", None, group)
    summary.add(0.0, "scored", None, "a")
    summary.add(0.0, "scored", None, "c")
    assert summary.to_dict()["no_signal_share"] == 0.666667


def test_rejections_are_bounded_and_counted() -> None:
    """Only the first rejected rows are described, and all are counted."""
    summary = Summary()
    for number in range(1, 100):
        summary.add_rejected(number, "not JSON")
    assert summary.rejected == 99
    assert len(summary.rejections) == SHOWN
    assert summary.to_dict()["notes"][0] == "line 1 rejected: not JSON"


def test_the_first_cause_is_kept() -> None:
    """Of the rows without a reward, the first of each reason is told; what a completion caused is no such reason."""
    summary = Summary()
    for number, reason in enumerate(["too_complex", "scorer_error", "scorer_error", None, "worker_lost"], start=1):
        summary.add_source(number, "math", reason, f"why {number}")
    assert summary.causes == {"scorer_error": (2, "why 2"), "worker_lost": (5, "why 5")}
    assert summary.scorers == {"math": 5}
