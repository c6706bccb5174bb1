"""Rollouts and verdicts as bytes: nothing changes on its way, and a fault is that of its own row."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewarden import Outcome, Reason, Rollout, RolloutError, Verdict, scored, ungraded
from rewarden.core import wire
from rewarden.core.reasons import RETRYABLE_REASONS, UNGRADED_REASONS
from rewarden.core.wire import Item, JobOptions, RequestError, ScoreOptions

TEXT = st.text(st.characters(codec="utf-8"))
NUMBERS = st.one_of(
    st.integers(),
    st.integers(min_value=-(10**300), max_value=10**300),
    st.floats(allow_nan=False, allow_infinity=False),
)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXT),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXT, inner, max_size=4)),
    max_leaves=12,
)
OBJECTS = st.dictionaries(TEXT, JSON, max_size=3)
MESSAGES = st.lists(
    st.fixed_dictionaries(
        {"role": TEXT},
        optional={
            "content": st.one_of(TEXT, st.lists(OBJECTS, max_size=3)),
            "reasoning_content": TEXT,
            "tool_calls": st.lists(OBJECTS, max_size=2),
            "name": TEXT,
            "somebody_elses": JSON,
        },
    ),
    max_size=3,
)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
ROLLOUTS = st.fixed_dictionaries(
    {"completion": st.one_of(TEXT, MESSAGES)},
    optional={
        "id": TEXT,
        "prompt": st.one_of(TEXT, MESSAGES),
        "reference": JSON,
        "group": TEXT,
        "group_size": st.integers(1, 2**40),
        "scorer": TEXT,
        "step": st.integers(-(2**70), 2**70),
        "metadata": OBJECTS,
        "tokens": st.fixed_dictionaries(
            {},
            optional={
                "ids": st.lists(st.integers(), max_size=3),
                "offsets": st.lists(st.tuples(st.integers(), st.integers(), st.integers()), max_size=3),
                "logprobs": st.lists(FINITE, max_size=3),
                "top_logprobs": st.lists(st.dictionaries(TEXT, FINITE, max_size=2), max_size=2),
            },
        ),
    },
).map(Rollout.parse)

SURROGATE = Rollout(id="surrogate", completion="a\ud800b")
DEEP: Any = "x"
for _ in range(230):
    DEEP = [DEEP]
UNSENDABLE = [
    SURROGATE,
    Rollout(completion="a", reference=float("nan")),
    Rollout(completion="a", metadata={"x": [float("inf")]}),
    Rollout.parse({"completion": "a", "tokens": {"logprobs": [-1.0, float("-inf")]}}),
    Rollout.parse({"completion": [{"role": "assistant", "theirs": float("nan")}]}),
    Rollout(completion="a", reference=10**400),
    Rollout(completion="a", reference=DEEP),
]


def body(*rows: str, **options: Any) -> bytes:
    """A request with these rows, which are JSON texts."""
    head = "".join(f'"{name}":{json.dumps(value)},' for name, value in options.items())
    return f'{{{head}"rollouts":[{",".join(rows)}]}}'.encode("utf-8", "surrogatepass")


def decoded(*rows: str) -> list[Item]:
    """What a service makes of these rows."""
    return wire.decode_request(body(*rows), ScoreOptions)[1]


# -- there and back ---------------------------------------------------------------------------------------------------


@given(st.lists(ROLLOUTS, min_size=1, max_size=4), st.sampled_from([ScoreOptions, JobOptions]))
def test_rollouts_arrive_as_they_were_sent(rollouts: list[Rollout], kind: type[ScoreOptions]) -> None:
    """What a client encodes is what a service decodes, and what a queue holds is what a worker decodes."""
    encoded, faults = wire.encode_rollouts(rollouts)
    assert not faults
    options = kind(recipe="math", timeout_s=2.5)
    assert wire.decode_request(wire.encode_request(options, encoded), kind) == (options, rollouts)
    assert wire.decode_rollouts(encoded) == rollouts


@given(ROLLOUTS)
def test_types_survive(rollout: Rollout) -> None:
    """1 stays 1, and 1.0 and true stay what they are: scorers tell them apart."""
    encoded, _ = wire.encode_rollouts([rollout])
    assert repr(wire.decode_rollouts(encoded)[0]) == repr(rollout)


@given(st.lists(st.one_of(ROLLOUTS, st.sampled_from(UNSENDABLE), TEXT.filter(bool)), min_size=1, max_size=6))
def test_every_row_keeps_its_place(items: list[Item]) -> None:
    """What is no rollout, or fits in no request, arrives as a text in its place, and all others as they are."""
    sent = wire.encode_request(ScoreOptions(), wire.encode_items(items))
    _, arrived = wire.decode_request(sent, ScoreOptions)
    assert len(arrived) == len(items)
    for before, after in zip(items, arrived, strict=True):
        if any(before is one for one in UNSENDABLE):
            assert isinstance(after, str)
        else:
            assert after == before


@given(st.lists(st.one_of(ROLLOUTS, st.sampled_from(UNSENDABLE)), max_size=6))
def test_what_no_request_can_hold_is_a_fault_of_its_row(rollouts: list[Rollout]) -> None:
    """The others are encoded, and `with_faults` puts all back in their rows. Never does NaN become null."""
    encoded, faults = wire.encode_rollouts(rollouts)
    bad = {row for row, rollout in enumerate(rollouts) if any(rollout is one for one in UNSENDABLE)}
    assert set(faults) == bad
    rest = wire.decode_rollouts(encoded)
    assert rest == [rollout for row, rollout in enumerate(rollouts) if row not in bad]
    items = wire.with_faults(rest, faults)
    assert [isinstance(item, str) for item in items] == [row in bad for row in range(len(rollouts))]


@pytest.mark.parametrize("depth", [150, 180, 190, 192, 193, 194, 195, 196, 197, 198, 200, 250])
def test_what_is_encoded_can_be_read(depth: int) -> None:
    """One value that is too deep for a reader costs its own row, not the request."""
    value: Any = 1
    for _ in range(depth):
        value = [value]
    rollouts = [Rollout(completion="fine"), Rollout.model_construct(completion="deep", reference=value)]
    arrived = decoded(wire.encode_items(rollouts)[1:-1].decode())
    assert arrived[0] == rollouts[0]
    assert isinstance(arrived[1], str) or arrived[1].reference == value


@pytest.mark.parametrize("row", [{"completion": "x", "\ud800": 1}, {"completion": "x", "k" * 10_000: 1}])
def test_a_fault_can_itself_be_sent(row: Any) -> None:
    """The line about a bad row is short and holds no lone surrogates, whatever the row's keys are."""
    with pytest.raises(RolloutError) as caught:
        Rollout.parse(row)
    fault = str(caught.value)
    assert len(fault) < 500
    assert json.loads(wire.encode_items([fault])) == [fault]
    assert wire.bad_rollout(fault).to_json()


# -- requests are strict ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b" ",
        b"\xff",
        b"{",
        b'{"rollouts":[{"completion":"\xff"}]}',
        b'\xef\xbb\xbf{"rollouts":[{"completion":"a"}]}',
        b"null",
        b"[]",
        b"5",
        b'"text"',
        b"{}",
        b'{"rollouts":null}',
        b'{"rollouts":{}}',
        b'{"rollouts":"abc"}',
        b'{"rollouts":[]}',
        b"[" * 100_000,
    ],
)
def test_what_is_no_request_is_refused(text: bytes) -> None:
    """A body that is not a JSON object with rollouts is one error, which pickles with its places."""
    for options in (ScoreOptions, JobOptions):
        with pytest.raises(RequestError) as caught:
            wire.decode_request(text, options)
        again = pickle.loads(pickle.dumps(caught.value))
        assert (str(again), again.faults) == (str(caught.value), caught.value.faults)


@pytest.mark.parametrize(
    "number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1" + "0" * 400, "01", "1.", "+1"]
)
@pytest.mark.parametrize(
    "place",
    [
        '{{"rollouts":[{{"completion":"a","reference":{0}}}]}}',
        '{{"rollouts":[{{"completion":"a","metadata":{{"x":[{0}]}}}}]}}',
        '{{"rollouts":[{{"completion":[{{"role":"a","theirs":{0}}}]}}]}}',
        '{{"rollouts":[{{"completion":"a","tokens":{{"logprobs":[{0}]}}}},{{"completion":1}}]}}',
        '{{"timeout_s":{0},"rollouts":[{{"completion":"a"}}]}}',
        '{{"rollouts":[{{"completion":"a"}}],"unknown":{0}}}',
    ],
)
def test_numbers_that_no_json_has_are_refused_anywhere(place: str, number: str) -> None:
    """Neither a rollout nor an option holds a number that is not finite."""
    with pytest.raises(RequestError):
        wire.decode_request(place.format(number).encode(), ScoreOptions)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"colour": 1}, "/colour"),
        ({"recipe": ""}, "/recipe"),
        ({"recipe": "x" * 201}, "/recipe"),
        ({"recipe": 5}, "/recipe"),
        ({"recipe": None}, "/recipe"),
        ({"timeout_s": "5"}, "/timeout_s"),
        ({"timeout_s": True}, "/timeout_s"),
        ({"timeout_s": 0}, "/timeout_s"),
        ({"timeout_s": 1e6}, "/timeout_s"),
        ({"priority": "urgent"}, "/priority"),
        ({"group_wait_s": -1}, "/group_wait_s"),
    ],
)
def test_options_are_strict(options: dict[str, Any], field: str) -> None:
    """A wrong option refuses the request and is named, also where a row is bad too."""
    for row in ('{"completion":"a"}', "5"):
        with pytest.raises(RequestError) as caught:
            wire.decode_request(body(row, **options), JobOptions)
        assert [place for place, _ in caught.value.faults] == [field]


def test_only_jobs_have_the_options_of_jobs() -> None:
    """A priority means nothing where somebody waits for the answer."""
    with pytest.raises(RequestError, match="priority"):
        wire.decode_request(body('{"completion":"a"}', priority="bulk"), ScoreOptions)
    options, _ = wire.decode_request(body('{"completion":"a"}', priority="bulk", group_wait_s=3), JobOptions)
    assert options == JobOptions(priority="bulk", group_wait_s=3)


BAD_ROWS = [
    "null",
    "5",
    "[]",
    "{}",
    '""',
    '{"completion":null}',
    '{"completion":5}',
    '{"completion":"a","colour":1}',
    '{"completion":"a","id":5}',
    '{"completion":"a","group":7}',
    '{"completion":"a","group_size":0}',
    '{"completion":"a","group_size":true}',
    '{"completion":"a","group_size":"4"}',
    '{"completion":"a","step":1.5}',
    '{"completion":"a","metadata":[]}',
    '{"completion":"a","tokens":{"ids":["1"]}}',
    '{"completion":"a","tokens":{"colour":1}}',
    '{"completion":"a","tokens":{"offsets":[[1,2]]}}',
    '{"completion":[{"content":"no role"}]}',
    '{"completion":[{"role":"a","content":5}]}',
    '{"completion":["a"]}',
]


@given(st.lists(st.one_of(st.sampled_from(BAD_ROWS), ROLLOUTS), min_size=1, max_size=6))
def test_a_bad_row_is_told_in_its_place(rows: list[str | Rollout]) -> None:
    """Wrong types, unknown fields and missing ones are that row's own; every other row is read."""
    texts = [row if isinstance(row, str) else wire.encode_rollouts([row])[0][1:-1].decode() for row in rows]
    arrived = decoded(*texts)
    assert len(arrived) == len(rows)
    for before, after in zip(rows, arrived, strict=True):
        if isinstance(before, str):
            assert isinstance(after, str)
            assert after
        else:
            assert repr(after) == repr(before)


# -- the queue is lenient ---------------------------------------------------------------------------------------------


def test_messages_of_a_newer_writer_can_be_read() -> None:
    """Fields that are not known are dropped, in a rollout and in its tokens; keys of a chat message are kept."""
    row = {
        "completion": [{"role": "assistant", "content": "a", "theirs": 1}],
        "tokens": {"ids": [1], "new": 2},
        "new": {"x": 1},
    }
    (rollout,) = wire.decode_rollouts(json.dumps([row]).encode())
    del row["new"]
    assert rollout == Rollout.parse({**row, "tokens": {"ids": [1]}})


@pytest.mark.parametrize(
    "data", [b"", b"\xff", b"5", b"{}", b'{"a":1}', b"[5]", b"[null]", b"[{}]", b'[{"completion":1}]']
)
def test_a_message_that_is_none_is_one_error(data: bytes) -> None:
    """Whoever wrote it had checked it, so that nothing of it is graded."""
    with pytest.raises(RolloutError):
        wire.decode_rollouts(data)


# -- verdicts ---------------------------------------------------------------------------------------------------------

VERDICTS = st.one_of(
    st.builds(
        scored,
        st.floats(allow_nan=False, allow_infinity=False),
        explanation=TEXT,
        id=TEXT,
        evidence=st.none() | OBJECTS,
        components=st.none() | st.dictionaries(TEXT, st.none() | FINITE, max_size=3),
        step_rewards=st.none() | st.lists(st.none() | FINITE, max_size=3),
        advantage=st.none() | FINITE | st.lists(FINITE, max_size=3),
    ),
    st.builds(ungraded, st.sampled_from(sorted(UNGRADED_REASONS)), TEXT, id=TEXT),
)


@given(st.lists(VERDICTS, max_size=4))
def test_verdicts_arrive_as_they_were_sent(verdicts: list[Verdict]) -> None:
    """A verdict is the same after a trip as JSON."""
    try:
        data = wire.encode_verdicts(verdicts)
    except TypeError:  # evidence beyond 64 bits is refused where it is made
        return
    assert [wire.decode_verdict(row) for row in json.loads(data)] == verdicts


@pytest.mark.parametrize("data", [None, 5, "x", [], {}, {"reward": 1.0}, {"outcome": "correct"}])
def test_what_is_no_verdict_is_refused(data: Any) -> None:
    """A ValueError, whatever it is."""
    with pytest.raises(ValueError):  # noqa: PT011 - the law is the type
        wire.decode_verdict(data)


@pytest.mark.parametrize(
    "change",
    [
        {"reward": None},
        {"reward": True},
        {"reward": "1"},
        {"reward": float("nan")},
        {"reward": float("inf")},
        {"reward": 10**400},
        {"outcome": "ungraded"},
        {"outcome": "ungraded", "reward": 0.0, "reason": "deadline"},
        {"outcome": "ungraded", "reward": None},
        {"outcome": "ungraded", "reward": None, "reason": "empty"},
        {"outcome": "fine"},
        {"outcome": []},
        {"reason": "deadline"},
        {"reason": "because"},
        {"id": 5},
        {"explanation": ["x"]},
        {"evidence": [1]},
        {"components": {"a": "1"}},
        {"components": {"a": float("nan")}},
        {"advantage": float("inf")},
        {"advantage": [None]},
        {"step_rewards": "abc"},
        {"spans": [1]},
        {"spans": [{"message": 0, "start": 0, "end": 1}]},
        {"spans": [{"message": 0, "start": 0, "end": 1, "reward": float("inf")}]},
        {"scorer": {"name": "a"}},
        {"scorer": {"name": "a", "version": 1, "digest": "x"}},
    ],
)
def test_a_verdict_that_lies_is_refused(change: dict[str, Any]) -> None:
    """Neither a reward that is none, nor a reason that contradicts it, nor a field of the wrong type gets through."""
    honest = {"id": "1", "reward": 1.0, "outcome": "correct", "new": "of a newer writer"}
    assert wire.decode_verdict(honest).reward == 1.0
    with pytest.raises(ValueError):  # noqa: PT011 - the law is the type
        wire.decode_verdict({**honest, **change})


@given(TEXT)
def test_what_is_no_rollout_has_no_reward(fault: str) -> None:
    """`ungraded: bad_rollout`, in a line of bounded length; another try cannot cure it."""
    verdict = wire.bad_rollout(fault * 100, "7")
    assert (verdict.outcome, verdict.reward, verdict.reason) == (Outcome.UNGRADED, None, Reason.BAD_ROLLOUT)
    assert verdict.id == "7"
    assert len(verdict.explanation) <= 500


def test_only_machines_are_tried_again() -> None:
    """What another try may cure is ungraded, and nobody's input: the same rollout would fail again otherwise."""
    assert RETRYABLE_REASONS < UNGRADED_REASONS
    blamed = {"bad_rollout", "bad_reference", "no_route", "scorer_error", "over_budget", "incomplete_group"}
    assert not RETRYABLE_REASONS & {Reason(name) for name in (*blamed, "no_consensus", "cancelled")}
