"""Who pays for what cannot be settled: the one that makes it so."""

from __future__ import annotations

import pytest

from rewarden.verifiers.math import compare as compare_pair
from rewarden.verifiers.math import fuel, quick
from rewarden.verifiers.math.compare import _is_dear

HARD = (r"\int_0^1 x^{x^x} dx", r"\sum_{k=1}^{\infty} f(k^k)")
DEAR = "+".join(rf"\sqrt{{{i}x+{i}}}" for i in range(2, 60))


@pytest.mark.parametrize("hard", HARD)
def test_what_algebra_cannot_settle_is_the_fault_of_who_wrote_it(hard: str) -> None:
    """An integral or sum without a value: as reference it is unusable, as answer it is wrong."""
    assert compare_pair(hard, "1").reason == "bad_reference"
    assert compare_pair(hard, "1").equal is None
    wrong = compare_pair("1", hard)
    assert (wrong.equal, wrong.reason) == (False, "too_complex")


def test_work_beyond_the_budget_is_the_fault_of_who_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The counted budget: a reference that needs more on its own is unusable, an answer that does is wrong."""
    _is_dear.cache_clear()
    monkeypatch.setattr(fuel, "BUDGET", 30.0)
    spent = quick(DEAR, "x+1")
    assert spent is not None
    assert (spent.equal, spent.reason) == (None, "bad_reference")
    spent = quick("x+1", DEAR)
    assert spent is not None
    assert (spent.equal, spent.reason) == (False, "too_complex")
    _is_dear.cache_clear()
