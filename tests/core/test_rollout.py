"""Rollouts: what is accepted, and what a scorer may see of them."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from rewarden import Rollout, RolloutError
from rewarden.core.rollout import view_of


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ({}, "completion"),
        ({"completion": 3}, "completion"),
        ({"completion": "x", "group_size": "many"}, "group_size"),
        ({"completion": "x", "colour": "red"}, "colour"),
        ([], "row"),
        (None, "row"),
        ({"completion": [{"content": "no role"}]}, r"completion\.0\.role: Field required$"),
    ],
)
def test_what_is_no_rollout_says_where(row: Any, complaint: str) -> None:
    """A bad row is refused with the name of the field that is wrong, in one short line."""
    with pytest.raises(RolloutError, match=complaint) as caught:
        Rollout.parse(row)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600


def test_messages_keep_what_trainers_add() -> None:
    """Unknown keys of a chat message survive."""
    rollout = Rollout.parse({"completion": [{"role": "assistant", "content": "x", "thinking": "y"}]})
    assert rollout.model_dump(exclude_unset=True)["completion"][0]["thinking"] == "y"


def test_a_view_shows_what_is_declared_and_nothing_else() -> None:
    """A scorer cannot read what its cache key does not cover, and is told how to declare it."""
    view = view_of(("completion",))(("7", "text"))
    assert (view.id, view.completion) == ("7", "text")
    with pytest.raises(AttributeError, match="reads"):
        _ = view.reference
    with pytest.raises(AttributeError, match="no field"):
        _ = view.colour


def test_views_pickle_with_their_fields_alone() -> None:
    """What crosses to a worker is the declared fields."""
    view = pickle.loads(pickle.dumps(view_of(("completion", "reference"))(("7", "text", [1]))))
    assert (view.id, view.completion, view.reference, view.reads) == ("7", "text", [1], ("completion", "reference"))


def test_a_view_of_an_unknown_field_is_refused() -> None:
    """`reads` names fields of a rollout."""
    with pytest.raises(RolloutError, match="colour"):
        view_of(("colour",))
