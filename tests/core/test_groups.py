"""Groups come together, and what waits does not fill the memory."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewarden import Rollout
from rewarden.core.groups import Assembler
from rewarden.core.spill import Spill


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), max_size=40), st.integers(1, 5))
def test_every_rollout_is_in_one_group(members: list[tuple[int, bool]], in_memory: int) -> None:
    """Whatever comes in whatever order leaves exactly once, with its own kind, in order; spilled or not."""
    assembler = Assembler(in_memory=in_memory)
    out = []
    for row, (name, alone) in enumerate(members):
        whole = assembler.add(row, Rollout(id=str(row), completion="", group=None if alone else str(name)))
        if whole is not None:
            out.append((whole, assembler.take(whole)))
    out += [(group, assembler.take(group)) for group in assembler.rest()]
    assert sorted(row for group, _ in out for row in group.rows) == list(range(len(members)))
    for group, rollouts in out:
        assert group.rows == sorted(group.rows)
        assert [int(rollout.id) for rollout in rollouts] == group.rows
        assert {rollout.group for rollout in rollouts} == {group.key}


def test_a_group_of_known_size_leaves_when_it_is_full() -> None:
    """`group_size` members make a group; more than that begin another one."""
    assembler = Assembler()
    made = [assembler.add(i, Rollout(completion="", group="g", group_size=2)) for i in range(5)]
    assert [group.rows if group else None for group in made] == [None, [0, 1], None, [2, 3], None]
    assert [group.complete for group in assembler.rest()] == [False]


def test_prompt_id_stands_in_for_group() -> None:
    """Without `group`, rollouts of one prompt belong together; without both, each stands alone."""
    assembler = Assembler()
    assert assembler.add(0, Rollout(completion="", prompt_id="p")) is None
    assert assembler.add(1, Rollout(completion="", prompt_id="p")) is None
    alone = assembler.add(2, Rollout(completion=""))
    assert alone is not None
    assert alone.rows == [2]
    assert [group.rows for group in assembler.rest()] == [[0, 1]]


def test_a_group_that_waits_too_long_is_given_up() -> None:
    """After `wait_s`, by the clock, in the order of first members; later members begin anew."""
    now = [0.0]
    assembler = Assembler(wait_s=10, clock=lambda: now[0])
    assembler.add(0, Rollout(completion="", group="a", group_size=3))
    now[0] = 6
    assembler.add(1, Rollout(completion="", group="b", group_size=3))
    assert assembler.overdue() == []
    now[0] = 11
    assert [group.rows for group in assembler.overdue()] == [[0]]
    assembler.add(2, Rollout(completion="", group="a", group_size=3))
    assert [group.rows for group in assembler.rest()] == [[1], [2]]


@given(st.integers(1, 8), st.randoms(use_true_random=False))
def test_spill_gives_back_what_was_put(in_memory: int, order: random.Random) -> None:
    """Any order of taking, any memory: each object comes back once, equal, and then is gone."""
    spill: Spill[str] = Spill(in_memory)
    rows = list(range(30))
    for row in rows:
        spill.put(row, f"value {row}")
        assert len(spill._held) <= in_memory + 1
    order.shuffle(rows)
    for taken, row in enumerate(rows):
        assert len(spill) == 30 - taken
        assert row in spill
        assert spill.pop(row) == f"value {row}"
        assert row not in spill
        with pytest.raises(KeyError):
            spill.pop(row)
    spill.close()


def test_spill_counts_what_objects_weigh() -> None:
    """Few but heavy objects leave the memory too."""
    spill: Spill[str] = Spill(in_memory=1000, weight=100)
    for row in range(10):
        spill.put(row, f"value {row}", weight=60)
        assert len(spill._held) <= 2
    assert [spill.pop(row) for row in range(10)] == [f"value {row}" for row in range(10)]
    spill.close()
