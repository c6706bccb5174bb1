"""What tests of the client share."""

from __future__ import annotations

import pytest

from rewarden.client import backoff


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits between tries are too short to notice, unless a service asks for more."""
    monkeypatch.setattr(backoff, "FIRST_S", 0.001)
