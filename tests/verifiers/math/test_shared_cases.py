"""The handed cases and gold answers, where they are present.

What differs by policy is listed in docs/reference/math.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rewarden.core.rollout import Rollout
from rewarden.verifiers.math import canonical, quick
from rewarden.verifiers.math.scorer import MathScorer

ROOT = Path(__file__).resolve().parents[3]
SCORER = MathScorer()
PAGE = ROOT / "docs" / "reference" / "math.md"


def rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a JSONL file; the test is skipped without it."""
    if not path.exists():
        pytest.skip(f"needs {path.name} in ../shared (beside the checkout), which is not there")
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def outcome(row: dict[str, Any]) -> str:
    """What the scorer says in the caller; `open` for the last layer."""
    rollout = Rollout(id=row["id"], prompt="", completion=row["completion"], reference=row["reference"])
    verdict = SCORER.quick(rollout)
    return "open" if verdict is None else str(verdict.outcome)


@pytest.mark.parametrize(("name", "least"), [("math_answers", 260), ("math_pairs_upstream", 485)])
def test_labelled_pairs(shared: Path, name: str, least: int) -> None:
    """The handed pairs agree with their labels, and every remaining difference is listed with its reason."""
    right, differing = 0, []
    for row in rows(shared / "cases" / f"{name}.jsonl"):
        got = outcome(row)
        if got == row["expected"] or (got in ("no_answer", "open") and row["expected"] == "incorrect"):
            right += 1
        else:
            differing.append(row["id"])
    listed = set(re.findall(r"\b(?:mc|lab)\d{4,5}\b", PAGE.read_text(encoding="utf-8")))
    assert right >= least
    assert set(differing) <= listed


def test_hostile_answers_are_settled_in_process(shared: Path) -> None:
    """At least 30 of the hostile answers never reach a worker, and none gets an outcome that is not allowed."""
    settled = 0
    for row in rows(shared / "cases" / "math_hostile.jsonl"):
        got = outcome(row)
        if got != "open":
            settled += 1
            assert got in row["expected"], row["id"]
    assert settled >= 30


def test_golds_equal_themselves_and_not_their_neighbours(shared: Path) -> None:
    """Every gold answer equals itself; two neighbours are equal only where they are the same number or mark."""
    golds = [row["answer"] for row in rows(shared / "data" / "math" / "golds.jsonl")]
    equal_pairs = []
    for answer, following in zip(golds, [*golds[1:], golds[0]], strict=True):
        own = quick(answer, answer)
        assert own is not None
        assert own.equal is True, answer
        match = quick(answer, following)
        assert match is not None
        assert match.equal is not None, (answer, following)
        if match.equal and answer != following:
            equal_pairs.append((answer, following))
        if canonical(answer) == canonical(following):
            assert match.equal is True
    assert sorted(equal_pairs) == [("120^\\circ", "120"), ("7\\%", "7"), ("\\frac{3}{4}", "\\frac34")]
