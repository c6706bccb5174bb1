"""The client over HTTP, beside services that are slow, full, broken or hostile."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from email.utils import formatdate
from typing import Any

import orjson
import pytest
from rough_service import Call, Jobs, Reply, grade, json, problem, scores, serving

from rewarden import PinError, Reason, RewardClient, Rollout, ServiceError, UngradedError, UnknownScorerError
from rewarden.client.transport import BusyError

pytestmark = pytest.mark.usefixtures("quick")


def rollouts(count: int, size: int = 1) -> list[Rollout]:
    """Rollouts of which every third is right, in groups of `size`."""
    return [
        Rollout(id=f"r{i}", completion=str(i % 3), reference="0", group=f"g{i // size}" if size > 1 else None)
        for i in range(count)
    ]


def expected(given: list[Rollout]) -> list[float]:
    """Their rewards."""
    return [1.0 if rollout.completion == rollout.reference else 0.0 for rollout in given]


def first(fault: Callable[[Call], Reply], count: int = 1) -> Callable[[Call], Reply]:
    """An answer that is `fault` for the first `count` calls, and then the truth."""
    seen = 0

    def answer(call: Call) -> Reply:
        nonlocal seen
        seen += 1
        return fault(call) if seen <= count else scores(call)

    return answer


def without(call: Call) -> Reply:
    """Verdicts on all rollouts but the first."""
    return json({"verdicts": orjson.loads(b"".join(scores(call).pieces))["verdicts"][1:]})


def shifted(call: Call) -> Reply:
    """All verdicts, one place off."""
    verdicts = orjson.loads(b"".join(scores(call).pieces))["verdicts"]
    return json({"verdicts": [*verdicts[1:], verdicts[0]]})


FAULTS = {
    "too few verdicts": without,
    "another's verdicts": shifted,
    "not JSON": lambda _: Reply(pieces=[b"<html>welcome</html>"]),
    "a JSON list": lambda _: json([]),
    "no verdicts": lambda _: json({"verdicts": None}),
    "cut off": lambda _: Reply(pieces=[b'{"verdicts": ['], cut=True),
    "no answer": lambda _: Reply(pieces=[], cut=True),
    "false encoding": lambda _: Reply(pieces=[b"{}"], headers={"Content-Encoding": "zstd"}),
    "busy": lambda _: problem(429, "busy"),
    "failed": lambda _: problem(500, "internal"),
    "draining": lambda _: problem(503, "draining"),
    "a proxy": lambda _: Reply(502, [b"bad gateway"]),
}


# -- order, batches, the wire -----------------------------------------------------------------------------------------


def test_order_is_kept_over_batches_and_groups() -> None:
    """Verdicts come in the order given, exactly one each, though groups are interleaved and batches run together."""
    given = [rollout for k in range(8) for rollout in rollouts(200, 8)[k::8]]
    with serving(scores) as (url, service), RewardClient(url, batch_size=24) as client:
        verdicts = client.score(given)
    assert [verdict.id for verdict in verdicts] == [rollout.id for rollout in given]
    assert [verdict.reward for verdict in verdicts] == expected(given)
    where: dict[str, set[int]] = {}
    for number, call in enumerate(service.calls):
        assert len(call.rollouts) <= 24
        for rollout in call.rollouts:
            where.setdefault(rollout["group"], set()).add(number)
    assert all(len(numbers) == 1 for numbers in where.values()), "a group was cut"
    assert service.connections <= 8, "connections are kept"


def test_the_wire() -> None:
    """A request has its key, its idempotency key and its options; a large body is compressed, a small one is not."""
    with serving(scores) as (url, service), RewardClient(url, recipe="exact@1", api_key="k-1", timeout_s=9) as client:
        client.score(rollouts(1))
        client.score([Rollout(completion="x" * 20_000)])
    small, large = service.calls
    assert small.headers["authorization"] == "Bearer k-1"
    assert small.headers["idempotency-key"] != large.headers["idempotency-key"]
    assert "content-encoding" not in small.headers
    assert large.headers["content-encoding"] == "zstd"
    assert int(large.headers["content-length"]) < 1000
    assert orjson.loads(small.body)["recipe"] == "exact@1"
    assert orjson.loads(small.body)["timeout_s"] == 9


def test_key_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without `api_key`, REWARDEN_API_KEY is shown."""
    monkeypatch.setenv("REWARDEN_API_KEY", "from-outside")
    with serving(scores) as (url, service), RewardClient(url) as client:
        client.score(rollouts(1))
    assert service.calls[0].headers["authorization"] == "Bearer from-outside"


def test_offers() -> None:
    """The recipes of a service, with the versions that pin them; what is no such list is an error that says so."""
    with serving(Jobs()) as (url, _), RewardClient(url) as client:
        assert client.offers() == {"exact": "1"}
    with (
        serving(lambda _: json({"hello": 1})) as (url, _),
        RewardClient(url, retries=0) as client,
        pytest.raises(BusyError, match="is it a rewarden service"),
    ):
        client.offers()


def test_nothing_to_score_asks_nobody() -> None:
    """No rollouts, no request."""
    with serving(scores) as (url, service), RewardClient(url) as client:
        assert client.score([]) == []
    assert service.calls == []


def test_in_flight_is_bounded() -> None:
    """No more than `max_in_flight` requests are under way, over everything that was submitted."""

    def slow(call: Call) -> Reply:
        reply = scores(call)
        reply.pause_s = 0.02
        return reply

    with serving(slow) as (url, service), RewardClient(url, batch_size=4, max_in_flight=3) as client:
        pendings = [client.submit(rollouts(20)) for _ in range(4)]
        assert [len(verdicts) for verdicts in client.gather(pendings)] == [20] * 4
    assert service.most_under_way == 3


# -- tries ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_passing_fault_changes_nothing(fault: Callable[[Call], Reply]) -> None:
    """What passes is tried again under the same idempotency key, and the rewards are those of a calm run."""
    given = rollouts(6)
    with serving(first(fault, 2)) as (url, service), RewardClient(url) as client:
        assert client.rewards(given) == expected(given)
    assert len({call.headers["idempotency-key"] for call in service.calls}) == 1
    assert len(service.calls) == 3


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_lasting_fault_is_never_a_reward(fault: Callable[[Call], Reply]) -> None:
    """When the tries are used up, that batch is `ungraded: backend_unavailable`; other batches keep their rewards."""

    def answer(call: Call) -> Reply:
        return fault(call) if call.rollouts[0]["id"] == "r0" else scores(call)

    given = rollouts(12)
    with serving(answer) as (url, service), RewardClient(url, batch_size=4, retries=2) as client:
        verdicts = client.score(given)
    assert [verdict.reward for verdict in verdicts] == [None] * 4 + expected(given)[4:]
    assert {verdict.reason for verdict in verdicts[:4]} == {Reason.BACKEND_UNAVAILABLE}
    assert all("after 3 tries" in verdict.explanation for verdict in verdicts[:4])
    assert [verdict.id for verdict in verdicts] == [rollout.id for rollout in given]
    assert len(service.calls) == 5


def test_nobody_there() -> None:
    """A service that is not there makes ungraded rollouts, not an exception."""
    with RewardClient("http://127.0.0.1:9", retries=1) as client:
        (verdict,) = client.score(rollouts(1))
    assert verdict.reason is Reason.BACKEND_UNAVAILABLE
    assert "127.0.0.1:9" in verdict.explanation


@pytest.mark.parametrize("when", ["1", formatdate(time.time() + 2.5, usegmt=True)], ids=["seconds", "date"])
def test_retry_after_is_honoured(when: str) -> None:
    """A full service is not asked again before it says so; it may give seconds or a date."""
    if not when.isdecimal():
        when = formatdate(time.time() + 2.5, usegmt=True)
    answer = first(lambda _: problem(429, "busy", Retry_After=when))
    with serving(answer) as (url, service), RewardClient(url) as client:
        assert client.rewards(rollouts(1)) == [1.0]
    assert service.calls[1].at - service.calls[0].at >= 1.0


def test_a_wait_beyond_the_total_time_is_not_begun() -> None:
    """A `Retry-After` of an hour does not hold a trainer that gives its requests a minute."""
    with (
        serving(lambda _: problem(503, "draining", Retry_After="3600")) as (url, service),
        RewardClient(url, retry_for_s=60) as client,
    ):
        assert client.score(rollouts(1))[0].reason is Reason.BACKEND_UNAVAILABLE
    assert len(service.calls) == 1


def test_a_trickle_does_not_hold_the_trainer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that sends a byte now and then is given up after the time of the request, not after its last byte."""
    monkeypatch.setattr("rewarden.client.http.GRACE_S", 0.2)
    trickle = Reply(pieces=[b" "] * 10_000, pause_s=0.05)
    with serving(lambda _: trickle) as (url, _), RewardClient(url, timeout_s=0.2, retries=0) as client:
        (verdict,) = client.score(rollouts(1))
    assert verdict.reason is Reason.BACKEND_UNAVAILABLE
    assert "did not answer within 0.4 s" in verdict.explanation


REFUSALS = [
    (401, "bad_key", ServiceError, "REWARDEN_API_KEY"),
    (403, "wrong_scope", ServiceError, "REWARDEN_API_KEY"),
    (404, "unknown_recipe", UnknownScorerError, "unknown_recipe!"),
    (409, "other_version", PinError, "other_version!"),
    (422, "invalid_request", ServiceError, "invalid_request!"),
    (501, "no_queue", ServiceError, "no_queue!"),
]


@pytest.mark.parametrize(("status", "code", "kind", "said"), REFUSALS, ids=[code for _, code, _, _ in REFUSALS])
def test_what_no_try_can_cure_raises_at_once(status: int, code: str, kind: type[ServiceError], said: str) -> None:
    """A refused key, an unknown recipe, another version: an error that says what to do, and no second try."""
    with serving(lambda _: problem(status, code)) as (url, service), RewardClient(url) as client:
        with pytest.raises(kind, match=said) as caught:
            client.score(rollouts(1))
        assert not isinstance(caught.value, BusyError)
    assert len(service.calls) == 1


def test_a_refusal_ends_the_other_batches() -> None:
    """The error of one batch is raised at once, and the others are given up rather than left running."""

    def answer(call: Call) -> Reply:
        if call.rollouts[0]["id"] == "r0":
            return problem(401, "bad_key")
        return Reply(pieces=[b" "] * 1000, pause_s=0.1)

    began = time.monotonic()
    with (
        serving(answer) as (url, _),
        RewardClient(url, batch_size=1) as client,
        pytest.raises(ServiceError, match="401"),
    ):
        client.score(rollouts(4))
    assert time.monotonic() - began < 60


def test_a_redirect_does_not_take_the_key_elsewhere() -> None:
    """The API key goes to the address that was given and to no other."""
    with serving(scores) as (elsewhere, other):
        moved = Reply(307, [b""], {"Location": f"{elsewhere}/v1/score"})
        with (
            serving(lambda _: moved) as (url, _),
            RewardClient(url, api_key="secret") as client,
            pytest.raises(ServiceError, match="307"),
        ):
            client.score(rollouts(1))
        assert other.calls == []


# -- rows at fault ----------------------------------------------------------------------------------------------------


def test_bad_rows_keep_their_place() -> None:
    """What is no rollout, or cannot be written as JSON, is `bad_rollout` at its place; the others are graded."""
    given: list[Any] = [
        {"completion": "1", "reference": "1", "id": "a"},
        {"id": "b", "nope": 1},
        Rollout(completion="\ud800", id="c"),
        7,
        {"completion": "1", "reference": "2"},
        {"completion": "1", "reference": object(), "id": "d"},
    ]
    with serving(scores) as (url, service), RewardClient(url) as client:
        verdicts = client.score(given)
    assert [verdict.reward for verdict in verdicts] == [1.0, None, None, None, 0.0, None]
    assert [verdict.id for verdict in verdicts] == ["a", "b", "c", "", "", "d"]
    assert {verdict.reason for verdict in verdicts if not verdict.graded} == {Reason.BAD_ROLLOUT}
    assert len(service.calls[0].rollouts) == 2


def test_only_bad_rows_ask_nobody() -> None:
    """A request that would be empty is not sent."""
    with serving(scores) as (url, service), RewardClient(url) as client:
        assert client.score([Rollout(completion="\ud800")])[0].reason is Reason.BAD_ROLLOUT
    assert service.calls == []


def test_a_verdict_that_lies_is_no_verdict() -> None:
    """A reward that is not finite, none for a right answer, or an unknown word is that row's `backend_unavailable`."""
    lies: list[Any] = [
        {"id": "r0", "outcome": "correct", "reward": None},
        {"id": "r1", "outcome": "ungraded", "reward": 1.0, "reason": "deadline"},
        {"id": "r2", "outcome": "splendid", "reward": 1.0},
        {"id": "r3", "outcome": "correct", "reward": "1.0"},
        {"id": "r4", "outcome": "correct", "reward": True},
        None,
        {"id": "r6", "outcome": "correct", "reward": 1.0, "spans": [{"start": 0}]},
        {"id": "r7", "outcome": "correct", "reward": 0.5},
    ]
    with serving(lambda _: json({"verdicts": lies})) as (url, _), RewardClient(url) as client:
        verdicts = client.score(rollouts(8))
    assert [verdict.reward for verdict in verdicts] == [None] * 7 + [0.5]
    assert {verdict.reason for verdict in verdicts[:7]} == {Reason.BACKEND_UNAVAILABLE}
    assert [verdict.id for verdict in verdicts] == [f"r{i}" for i in range(8)]


def test_too_large_is_sent_in_parts() -> None:
    """A batch that is too large goes in parts that keep groups whole; what is too large alone is one bad row."""

    def picky(call: Call) -> Reply:
        return problem(413, "too_large") if len(call.body) > 3000 else scores(call)

    given = rollouts(64, 4)
    given[20] = Rollout(id="r20", completion="x" * 5000)
    with serving(picky) as (url, service), RewardClient(url) as client:
        verdicts = client.score(given)
    assert verdicts[20].reason is Reason.BAD_ROLLOUT
    others = [row for row in range(64) if row != 20]
    assert [verdicts[row].reward for row in others] == [expected(given)[row] for row in others]
    taken = [call for call in service.calls if len(call.body) <= 3000]
    counts = Counter(key for call in taken for key in {r.get("group") for r in call.rollouts} if key)
    assert set(counts.values()) == {1}, "a group was cut"


# -- what becomes of the ungraded -------------------------------------------------------------------------------------


def failing(*ids: str, reason: str = "judge_failed", times: int = 10**6) -> Callable[[Call], Reply]:
    """The truth, but that these rollouts are ungraded the first `times` times they come."""
    seen: Counter[str] = Counter()

    def answer(call: Call) -> Reply:
        verdicts = []
        for rollout in call.rollouts:
            seen[rollout["id"]] += 1
            if rollout["id"] in ids and seen[rollout["id"]] <= times:
                verdict = {"id": rollout["id"], "reward": None, "outcome": "ungraded", "reason": reason}
            else:
                verdict = grade(Rollout.parse(rollout)).to_dict()
            verdicts.append(verdict)
        return json({"verdicts": verdicts})

    return answer


def test_mask() -> None:
    """`mask` leaves the reward out, and asks once."""
    with serving(failing("r1")) as (url, service), RewardClient(url) as client:
        assert client.rewards(rollouts(3)) == [1.0, None, 0.0]
    assert len(service.calls) == 1


def test_a_number_stands_for_a_reward_only_when_asked_for() -> None:
    """`on_ungraded=-1` is what `rewards` says; the verdict stays ungraded."""
    with serving(failing("r1")) as (url, _), RewardClient(url, on_ungraded=-1) as client:
        assert client.rewards(rollouts(3)) == [1.0, -1.0, 0.0]
        assert client.score(rollouts(3))[1].reward is None


def test_retry_asks_again_with_whole_groups() -> None:
    """`retry` asks again, with a new key, for groups with a member that another try may cure, and for nothing else."""
    given = rollouts(12, 4)
    with serving(failing("r1", times=2)) as (url, service), RewardClient(url, on_ungraded="retry") as client:
        assert client.rewards(given) == expected(given)
    assert [[r["id"] for r in call.rollouts] for call in service.calls[1:]] == [["r0", "r1", "r2", "r3"]] * 2
    assert len({call.headers["idempotency-key"] for call in service.calls}) == 3


def test_retry_keeps_the_better_verdicts_of_a_group() -> None:
    """A try that leaves a group with no more verdicts than it had changes nothing about it."""
    calls = 0

    def answer(call: Call) -> Reply:
        nonlocal calls
        calls += 1
        return failing("r0")(call) if calls == 1 else failing("r2", "r3")(call)

    with serving(answer) as (url, _), RewardClient(url, on_ungraded="retry", retries=3) as client:
        verdicts = client.score(rollouts(4, 4))
    assert [verdict.graded for verdict in verdicts] == [False, True, True, True]


def test_retry_leaves_what_no_try_can_cure() -> None:
    """A broken reference stays broken: it is not asked for again."""
    with (
        serving(failing("r1", reason="bad_reference")) as (url, service),
        RewardClient(url, on_ungraded="retry") as client,
    ):
        assert client.rewards(rollouts(3)) == [1.0, None, 0.0]
    assert len(service.calls) == 1


def test_retry_ends() -> None:
    """What stays ungraded is masked when the tries are used up."""
    with serving(failing("r1")) as (url, service), RewardClient(url, on_ungraded="retry", retries=3) as client:
        assert client.rewards(rollouts(3)) == [1.0, None, 0.0]
    assert len(service.calls) == 4


def test_raise_carries_the_verdicts() -> None:
    """`raise` says how many and why, and nothing that was graded is lost."""
    with (
        serving(failing("r1")) as (url, _),
        RewardClient(url, on_ungraded="raise") as client,
        pytest.raises(UngradedError, match=r"1 of 3 .*judge_failed.*row 1") as caught,
    ):
        client.score(rollouts(3))
    assert [verdict.reward for verdict in caught.value.verdicts] == [1.0, None, 0.0]


def test_drop_group() -> None:
    """`drop_group` takes the rewards of a group with an ungraded member, keeps them as evidence, and no other's."""
    given = [*rollouts(8, 4), Rollout(id="alone", completion="1", reference="1")]
    with serving(failing("r1")) as (url, _), RewardClient(url, on_ungraded="drop_group") as client:
        verdicts = client.score(given)
    assert [verdict.reward for verdict in verdicts] == [None] * 4 + expected(given)[4:]
    assert [verdict.reason for verdict in verdicts[:4]] == [
        Reason.INCOMPLETE_GROUP,
        Reason.JUDGE_FAILED,
        Reason.INCOMPLETE_GROUP,
        Reason.INCOMPLETE_GROUP,
    ]
    assert verdicts[0].evidence is not None
    assert verdicts[0].evidence["earlier"]["reward"] == 1.0
    assert verdicts[0].id == "r0"


def test_the_breaker_stops_a_run() -> None:
    """With `max_ungraded`, a dead service stops the run with its cause rather than masking everything for ever."""
    with RewardClient("http://127.0.0.1:9", retries=0, max_ungraded=0.2) as client:
        for _ in range(3):
            assert client.rewards(rollouts(16)) == [None] * 16
        with pytest.raises(UngradedError, match=r"64 of the last 64 .*backend_unavailable.*max_ungraded=0\.2"):
            client.score(rollouts(16))


def test_the_breaker_counts_bad_rows() -> None:
    """Rows that are no rollouts are ungraded too."""
    bad: list[dict[str, Any]] = [{"nope": 1}] * 64
    with (
        serving(scores) as (url, _),
        RewardClient(url, max_ungraded=0.5) as client,
        pytest.raises(UngradedError, match="64 bad_rollout"),
    ):
        client.score(bad)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"batch_size": 0}, "batch_size=0"),
        ({"max_in_flight": 0}, "max_in_flight=0"),
        ({"retries": -1}, "retries=-1"),
        ({"timeout_s": 0}, "timeout_s=0"),
        ({"max_ungraded": 2}, "max_ungraded=2"),
        ({"on_ungraded": "zero"}, "on_ungraded='zero'"),
        ({"on_ungraded": float("nan")}, "on_ungraded=nan"),
        ({"on_ungraded": True}, "on_ungraded=True"),
        ({"priority": "high"}, "priority='high'"),
        ({"api_key": "a\nb"}, "API key"),
        ({"target": "math"}, "option `recipe`"),
        ({"target": "http://"}, "no address"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_options_are_checked(options: dict[str, Any], said: str) -> None:
    """An option that means nothing is refused when the client is made, by name."""
    with pytest.raises(ValueError, match=said):
        RewardClient(**{"target": "http://127.0.0.1:9", **options})
