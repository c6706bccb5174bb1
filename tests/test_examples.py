"""The example rollouts show what their notes say."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import rewarden


def test_examples_get_the_outcome_they_announce(root: Path) -> None:
    """Each row's `expect` is its outcome, and only ungraded rows have no reward."""
    rows = [json.loads(line) for line in (root / "examples/math_rollouts.jsonl").read_text().splitlines()]
    notes = ("expect", "shows")
    rollouts = [rewarden.Rollout.parse({k: v for k, v in row.items() if k not in notes}) for row in rows]
    with rewarden.Engine("math") as engine:
        verdicts = engine.score(rollouts)
    got = {row["id"]: str(verdict.outcome) for row, verdict in zip(rows, verdicts, strict=True)}
    assert got == {row["id"]: row["expect"] for row in rows}
    assert [verdict.reward is None for verdict in verdicts] == [row["expect"] == "ungraded" for row in rows]


def test_examples_show_every_kind_of_outcome(root: Path) -> None:
    """The groups have four members each, and right, wrong, missing and ungraded answers all occur."""
    rows = [json.loads(line) for line in (root / "examples/math_rollouts.jsonl").read_text().splitlines()]
    assert set(Counter(row["group"] for row in rows).values()) == {4}
    assert {row["expect"] for row in rows} == {"correct", "incorrect", "no_answer", "ungraded"}
