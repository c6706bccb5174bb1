"""The breaker on the share of ungraded verdicts."""

from __future__ import annotations

import pytest

from rewarden import Reason, UngradedError, correct, ungraded
from rewarden.client.breaker import LEAST, WINDOW, Breaker

GOOD = correct()
FAILED = ungraded(Reason.JUDGE_FAILED, "the judge is away")


def test_trips_above_its_share_only() -> None:
    """As many as the share are let through; one more is an error that says how many, why, and holds the verdicts."""
    breaker = Breaker(0.5)
    breaker.add([GOOD, FAILED] * LEAST)
    with pytest.raises(UngradedError, match=r"65 of the last 129 .*65 judge_failed.*max_ungraded=0\.5.*away") as caught:
        breaker.add([FAILED])
    assert len(caught.value.verdicts) == 2 * LEAST + 1


def test_few_verdicts_say_nothing() -> None:
    """Below the least number of verdicts nothing trips; at that number it does."""
    breaker = Breaker(0.0)
    breaker.add([FAILED] * (LEAST - 1))
    with pytest.raises(UngradedError):
        breaker.add([GOOD])


def test_old_verdicts_are_forgotten() -> None:
    """Only the window counts: failures that have left it do not."""
    breaker = Breaker(0.5)
    breaker.add([GOOD] * WINDOW)
    breaker.add([FAILED] * (WINDOW // 2))
    breaker.add([GOOD] * WINDOW)
    breaker.add([FAILED] * (WINDOW // 2))
    with pytest.raises(UngradedError):
        breaker.add([FAILED])


def test_counts_anew_once_it_has_tripped() -> None:
    """A run that was stopped, repaired and started again is not stopped for what is past."""
    breaker = Breaker(0.1)
    with pytest.raises(UngradedError):
        breaker.add([FAILED] * LEAST)
    breaker.add([GOOD] * LEAST)


def test_no_failure_never_trips_the_strictest() -> None:
    """A share of 0 lets a perfect run go on."""
    Breaker(0.0).add([GOOD] * (2 * WINDOW))
