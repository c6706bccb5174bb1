"""Workers import the handlers of these tests by name, on the path that the pool takes from its parent."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent / "workload"))

from rewarden.core.pool import Pool


@pytest.fixture(scope="package")
def pool() -> Iterator[Pool]:
    """Two workers, shared by tests that leave no mark on a pool."""
    with Pool(workers=2) as shared:
        yield shared
