"""What every test may ask for, and how property tests run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent

# A deadline would make the outcome depend on what else the machine is doing.
settings.register_profile("local", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# In CI the same examples are tried every time, so that a red run can be repeated.
settings.register_profile("ci", parent=settings.get_profile("local"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the checkout."""
    return ROOT


@pytest.fixture(scope="session")
def shared(root: Path) -> Path:
    """The folder of test data beside the checkout; a test that needs it is skipped where it is absent."""
    folder = root.parent / "shared"
    if not folder.is_dir():
        pytest.skip("needs the test data in ../shared (beside the checkout), which is not there")
    return folder
