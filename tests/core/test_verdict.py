"""Verdicts cannot lie, and survive every trip."""

from __future__ import annotations

import math
import pickle
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewarden import Outcome, Reason, Span, Verdict, correct, incorrect, no_answer, scored, ungraded
from rewarden.core.reasons import UNGRADED_REASONS
from rewarden.core.verdict import ScorerStamp

finite = st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | finite | st.text(), lambda v: st.lists(v) | st.dictionaries(st.text(), v), max_leaves=5
)
verdicts = st.builds(
    Verdict,
    outcome=st.sampled_from([o for o in Outcome if o is not Outcome.UNGRADED]),
    reward=finite,
    reason=st.none() | st.sampled_from([r for r in Reason if r not in UNGRADED_REASONS]),
    explanation=st.text(),
    advantage=st.none() | finite | st.lists(finite),
    components=st.none() | st.dictionaries(st.text(), st.none() | finite),
    spans=st.none() | st.lists(st.builds(Span, st.integers(0, 5), st.integers(0, 9), st.integers(0, 9), finite)),
    step_rewards=st.none() | st.lists(st.none() | finite),
    evidence=st.none() | st.dictionaries(st.text(), json_values),
    id=st.text(),
    scorer=st.none() | st.builds(ScorerStamp, st.text(), st.text(), st.text()),
) | st.builds(ungraded, st.sampled_from(sorted(UNGRADED_REASONS)), st.text())


@pytest.mark.parametrize("reward", [math.nan, math.inf, -math.inf])
def test_rewards_are_finite(reward: float) -> None:
    """A reward that is no finite number is refused."""
    with pytest.raises(ValueError, match="finite"):
        scored(reward)


def test_ungraded_means_no_reward_and_a_reason() -> None:
    """`reward` is None exactly when the outcome is ungraded, and then there is a reason that fits."""
    with pytest.raises(ValueError, match="reward None"):
        Verdict(Outcome.UNGRADED, 0.0, Reason.DEADLINE)
    with pytest.raises(ValueError, match="reason"):
        Verdict(Outcome.UNGRADED, None)
    with pytest.raises(ValueError, match="ungraded"):
        Verdict(Outcome.INCORRECT, None)


@pytest.mark.parametrize("reason", list(Reason))
def test_reasons_keep_to_their_side(reason: Reason) -> None:
    """A machine's fault never comes with a reward, nor the completion's own without one."""
    if reason in UNGRADED_REASONS:
        assert ungraded(reason, "why").reward is None
        with pytest.raises(ValueError, match="does not go"):
            incorrect(reason)
    else:
        assert no_answer(reason).reward == 0.0
        with pytest.raises(ValueError, match="does not go"):
            ungraded(reason, "why")


@given(verdicts)
def test_json_round_trip(verdict: Verdict) -> None:
    """JSON gives the same JSON again, and pickling the same verdict."""
    data: Any = orjson.loads(verdict.to_json())
    assert Verdict.from_dict(data).to_json() == verdict.to_json()
    assert pickle.loads(pickle.dumps(verdict)) == verdict


def test_unknown_keys_are_ignored_when_read() -> None:
    """A verdict written by a newer version can be read."""
    assert Verdict.from_dict({**correct().to_dict(), "invented": 1}) == correct()


def test_a_stamp_changes_nothing_else() -> None:
    """Stamping sets id and scorer on a copy."""
    stamp = ScorerStamp("s", "1", "d")
    first = scored(0.5, evidence={"a": 1}, components={"b": None}, advantage=[1.0], step_rewards=[None])
    second = first.stamped("x", stamp)
    assert (first.id, second.id, second.scorer) == ("", "x", stamp)
    assert {**second.to_dict(), "id": "", "scorer": None} == {**first.to_dict(), "scorer": None}


@pytest.mark.parametrize("wrong", [("incorrect", 0.0), (Outcome.CORRECT, True), (Outcome.CORRECT, "1")])
def test_fields_have_their_types(wrong: Any) -> None:
    """Texts are no outcomes, and truths are no rewards; an integer becomes a float."""
    with pytest.raises(TypeError):
        Verdict(*wrong)
    assert type(scored(3).reward) is float
