"""A pool for tests that leave no mark on it. Its workers import what they run from tests/support, by name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rewarden.core.pool import Pool


@pytest.fixture(scope="package")
def pool() -> Iterator[Pool]:
    """Two workers, shared by all."""
    with Pool(workers=2) as shared:
        yield shared
