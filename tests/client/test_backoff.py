"""When the client tries again."""

from __future__ import annotations

from rewarden.client.backoff import FIRST_S, LONGEST_S, Backoff


def test_waits_are_spread_and_bounded() -> None:
    """Waits are between nothing and a limit that doubles up to the longest; then there are none left."""
    backoff = Backoff(20, 1e9)
    waits = [backoff.wait_s() for _ in range(20)]
    for used, wait in enumerate(waits):
        assert wait is not None
        assert 0 <= wait <= min(LONGEST_S, FIRST_S * 2**used)
    assert len(set(waits)) > 1
    assert backoff.wait_s() is None


def test_a_service_is_never_asked_sooner_than_it_says() -> None:
    """`Retry-After` is a lower bound of the wait."""
    backoff = Backoff(100, 1e9)
    assert all((backoff.wait_s(7.0) or 0) >= 7.0 for _ in range(100))


def test_no_wait_beyond_the_total() -> None:
    """A wait that would end after the total time is not begun, however many tries are left."""
    assert Backoff(10, 5.0).wait_s(60.0) is None
    assert Backoff(10, 0.0).wait_s() is None


def test_success_starts_again() -> None:
    """After a success, the count begins anew."""
    backoff = Backoff(1, 1e9)
    assert backoff.wait_s() is not None
    assert backoff.wait_s() is None
    backoff.start_again()
    assert backoff.wait_s() is not None
