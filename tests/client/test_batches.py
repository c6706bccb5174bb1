"""Cutting rollouts into requests."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rewarden import Rollout
from rewarden.client.batches import BATCH_CHARACTERS, batches, groups

GROUPS = st.lists(st.one_of(st.none(), st.sampled_from("abcdef")), max_size=60)


def rollouts(keys: list[str | None]) -> dict[int, Rollout]:
    """A rollout for each group."""
    return {row: Rollout(completion="", group=key) for row, key in enumerate(keys)}


@given(GROUPS, st.integers(1, 20))
def test_groups_stay_whole(keys: list[str | None], size: int) -> None:
    """Every row is in one batch, all of a group in the same, and only a single group makes a batch too large."""
    known = rollouts(keys)
    parts = batches(known, size)
    assert sorted(row for part in parts for row in part) == list(known)
    for rows in groups(known).values():
        assert sum(bool(set(rows) & set(part)) for part in parts) == 1
    for part in parts:
        assert part
        assert len(part) <= size or len({known[row].group for row in part}) == 1


@given(st.integers(0, 50), st.integers(1, 20))
def test_rows_without_groups_keep_their_order(count: int, size: int) -> None:
    """Without groups, batches are full but for the last, and in order."""
    parts = batches(rollouts([None] * count), size)
    assert [row for part in parts for row in part] == list(range(count))
    assert all(len(part) == size for part in parts[:-1])


def test_prompt_id_groups() -> None:
    """Where `group` is missing, rollouts with the same `prompt_id` are a group."""
    known = {row: Rollout(completion="", prompt_id=str(row % 2)) for row in range(6)}
    assert batches(known, 3) == [[0, 2, 4], [1, 3, 5]]


def test_long_texts_make_smaller_batches() -> None:
    """Batches are bounded by their text, so that a service does not refuse the body."""
    text = "x" * (BATCH_CHARACTERS // 3)
    known = {row: Rollout(completion=text) for row in range(4)}
    assert batches(known, 256) == [[0, 1], [2, 3]]
