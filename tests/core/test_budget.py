"""Budgets: what is accepted, and what is refused in words."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from rewarden.core.budget import Budget


@pytest.mark.parametrize("value", [0, -1, 0.0, float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("name", ["cpu_s", "wall_s"])
def test_a_limit_is_finite_and_above_zero(name: str, value: float) -> None:
    """A budget that never ends, or has ended already, cannot be made; the message names the field."""
    with pytest.raises(ValueError, match=name):
        Budget(**{name: value})


@pytest.mark.parametrize("value", ["2", None, True])
def test_a_limit_is_a_number(value: Any) -> None:
    """Text from a config file is not guessed at."""
    with pytest.raises(TypeError, match="wall_s"):
        Budget(wall_s=value)


def test_the_default_wall_is_several_times_the_cpu() -> None:
    """By default CPU decides, not the machine's load."""
    assert Budget().wall_s >= 4 * Budget().cpu_s


def test_budgets_are_values() -> None:
    """Budgets compare, hash and pickle."""
    assert pickle.loads(pickle.dumps(Budget(1, 3))) == Budget(1.0, 3.0)
    assert len({Budget(1, 3), Budget(1, 3)}) == 1
