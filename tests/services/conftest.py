"""Services that tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import service_scorers
from service import Running, running_service

from rewarden import Recipe


@pytest.fixture(scope="module")
def url() -> Iterator[Running]:
    """A service without keys, with all kinds of work."""
    with running_service() as found:
        yield found


@pytest.fixture
def gated() -> Iterator[dict[str, Recipe]]:
    """The recipe `gated`, whose rollouts wait until the test opens the gate."""
    service_scorers.OPEN.clear()
    while service_scorers.WAITING.acquire(blocking=False):
        pass
    yield {"gated": Recipe.of("service_scorers:Gated")}
    service_scorers.OPEN.set()
