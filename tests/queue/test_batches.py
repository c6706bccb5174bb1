"""Cutting a job into batches."""

from __future__ import annotations

from collections import Counter

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewarden import Outcome, PinError, Reason, Rollout, UnknownScorerError
from rewarden.client.queue.batches import CHARACTERS, HEAVY, LIGHT, Cut, cut, cut_again
from rewarden.core.catalog import Catalog
from rewarden.core.wire import Item

CATALOG = Catalog()

items: st.SearchStrategy[Item] = st.one_of(
    st.builds(
        Rollout,
        completion=st.sampled_from(["\\boxed{4}", "B", "", "lone \ud800"]),
        reference=st.sampled_from([None, "4", "B", {"schema": {"type": "object"}}, {"other": 1}]),
        group=st.sampled_from([None, "a", "b", "c"]),
        group_size=st.sampled_from([None, 1, 2, 50]),
        scorer=st.sampled_from([None, "math", "choice", "majority", "math@1", "math@9", "../x.py:Y", "os.system"]),
    ),
    st.just("completion: Field required"),
)


def rows_of(parts: Cut) -> list[int]:
    """Every row that is anywhere in the parts."""
    batches = [row for batch in parts.batches for row in batch.rows]
    return batches + [one.row for one in parts.waiting] + [row for row, _ in parts.settled]


@given(st.lists(items, max_size=60), st.sampled_from(["auto", "math", "majority"]), st.sampled_from([None, 5.0]))
def test_every_row_is_in_one_part(rows: list[Item], recipe: str, wait_s: float | None) -> None:
    """No row is lost or doubled, whatever is in it, and every batch holds the rollouts of its rows, in its order."""
    parts = cut(CATALOG, recipe, rows, group_wait_s=wait_s)
    assert Counter(rows_of(parts)) == Counter(range(len(rows)))
    for batch in parts.batches:
        sent = [Rollout.parse(row) for row in orjson.loads(batch.payload)]
        assert sent == [rows[row] for row in batch.rows]
        assert sum(batch.units) == len(batch.rows)


@given(st.lists(items, max_size=60), st.sampled_from(["auto", "majority"]))
def test_groups_are_whole_in_a_batch(rows: list[Item], recipe: str) -> None:
    """Members of a group that are graded together are one unit of one batch."""
    parts = cut(CATALOG, recipe, rows)
    seen: set[tuple[str, str, str]] = set()
    for batch in parts.batches:
        if not CATALOG.grouped(batch.recipe, batch.kind):
            assert set(batch.units) == {1}
            continue
        at = 0
        for size in batch.units:
            members = [rows[row] for row in batch.rows[at : at + size]]
            keys = {member.group_key for member in members if isinstance(member, Rollout)}
            assert len(keys) == 1
            (key,) = keys
            assert size == 1 or key is not None
            if key is not None:
                assert (batch.recipe, batch.kind, key) not in seen
                seen.add((batch.recipe, batch.kind, key))
            at += size


@pytest.mark.parametrize("count", [1, HEAVY, 256, 2048, 5000])
def test_sizes(count: int) -> None:
    """Light work is cut into batches of 32 to 256, and small jobs are not cut into crumbs."""
    parts = cut(CATALOG, "math", [Rollout(completion="1", reference="1")] * count)
    sizes = [len(batch.rows) for batch in parts.batches]
    assert sum(sizes) == count
    assert max(sizes) <= LIGHT
    assert all(size >= min(HEAVY, count) for size in sizes[:-1])


def test_large_texts_make_small_batches() -> None:
    """The texts of a batch are bounded; a rollout that alone is larger has a batch of its own."""
    rows: list[Item] = [Rollout(completion="x" * (CHARACTERS // 4)) for _ in range(20)]
    rows.append(Rollout(completion="y" * (2 * CHARACTERS)))
    sizes = [len(batch.rows) for batch in cut(CATALOG, "exact", rows).batches]
    assert max(sizes) <= 4
    assert sizes[-1] == 1


def test_incomplete_groups_wait_only_when_asked() -> None:
    """A group that is not whole waits for members when a time is given, and goes with what there is when none is."""
    rows: list[Item] = [Rollout(completion="4", group="g", group_size=4) for _ in range(2)]
    rows += [Rollout(completion="4", group="whole", group_size=2) for _ in range(2)]
    at_once = cut(CATALOG, "majority", rows)
    assert [batch.rows for batch in at_once.batches] == [[0, 1, 2, 3]]
    waits = cut(CATALOG, "majority", rows, group_wait_s=3)
    assert [one.row for one in waits.waiting] == [0, 1]
    assert [(one.size, one.wait_s) for one in waits.waiting] == [(4, 3), (4, 3)]
    assert [batch.rows for batch in waits.batches] == [[2, 3]]


def test_rollouts_that_need_no_group_do_not_wait() -> None:
    """Under a recipe of several kinds, only the kinds that look at groups wait for them."""
    row = Rollout(completion="4", reference="4", group="g", group_size=4)
    parts = cut(CATALOG, "auto", [row, row.model_copy(update={"reference": None})], group_wait_s=3)
    assert [batch.kind for batch in parts.batches] == ["math"]
    assert [one.kind for one in parts.waiting] == ["pseudo-label"]


def test_faults_are_verdicts_of_their_rows() -> None:
    """What cannot be graded is settled with its true reason, and the recipe of the request alone raises."""
    rows: list[Item] = [
        "completion: Field required",
        Rollout(completion="lone \ud800"),
        Rollout(completion="1", scorer="nobody"),
        Rollout(completion="1", scorer="math@77"),
        Rollout(completion="1", reference="1"),
    ]
    parts = cut(CATALOG, "math", rows)
    reasons = {row: verdict.reason for row, verdict in parts.settled}
    assert reasons == {0: Reason.BAD_ROLLOUT, 1: Reason.BAD_ROLLOUT, 2: Reason.NO_ROUTE, 3: Reason.NO_ROUTE}
    assert all(verdict.outcome is Outcome.UNGRADED for _, verdict in parts.settled)
    with pytest.raises(UnknownScorerError):
        cut(CATALOG, "nobody", rows)
    with pytest.raises(PinError):
        cut(CATALOG, "math@77", rows)


def test_cut_again_needs_no_catalog() -> None:
    """Rollouts whose kind is known are cut without knowing the recipe, groups whole."""
    rows = [Rollout(completion=str(i), group=str(i % 3)) for i in range(9)]
    (batch,) = cut_again("math", "somebodys", rows).batches
    assert (batch.kind, batch.recipe, batch.units) == ("math", "somebodys", [3, 3, 3])
