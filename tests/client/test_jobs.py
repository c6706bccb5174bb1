"""Durable jobs: followed over breaks, found again after a crash, and each verdict exactly once."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from rough_service import Call, Jobs, Reply, RoughService, json, problem, serving

from rewarden import Reason, RewardClient, Rollout, RolloutError, ServiceError
from rewarden.client.transport import BusyError, UnknownJobError

pytestmark = pytest.mark.usefixtures("quick")


class Rough(Jobs):
    """Jobs whose answers a test may change."""

    def stream(self, job: str, cursor: int) -> Reply:
        """The answer to one who follows a job."""
        return Reply(pieces=self.lines(job, cursor))

    def __call__(self, call: Call) -> Reply:
        if "ndjson" in call.headers.get("accept", ""):
            job, _, query = call.path.rpartition("/")[2].partition("?")
            if job in self.verdicts:
                return self.stream(job, int(query.partition("=")[2]))
        return super().__call__(call)


def rollouts(count: int) -> list[Rollout]:
    """Rollouts of which every third is right."""
    return [Rollout(id=f"r{i}", completion=str(i % 3), reference="0") for i in range(count)]


def expected(count: int) -> list[float]:
    """Their rewards."""
    return [1.0 if i % 3 == 0 else 0.0 for i in range(count)]


def test_result_is_in_order() -> None:
    """Verdicts arrive in any order, and `result` has them in that of the rollouts."""
    with serving(Rough()) as (url, _), RewardClient(url) as client:
        job = client.start_job(rollouts(20))
        assert [arrival.row for arrival in job.verdicts()] != list(range(20))
        assert [verdict.reward for verdict in job.result()] == expected(20)
        assert job.status().total == 20


def test_a_job_is_found_again() -> None:
    """After a crash, another client attaches by the id, from where the first one was."""
    with serving(Rough()) as (url, _):
        with RewardClient(url) as client:
            job = client.start_job(rollouts(20))
            seen: Iterator[Any] = job.verdicts()
            read = [next(seen) for _ in range(7)]
        with RewardClient(url) as client:
            again = client.attach(job.id)
            rest = list(again.verdicts(cursor=read[-1].cursor))
            assert [verdict.reward for verdict in again.result()] == expected(20)
    assert sorted(arrival.row for arrival in [*read, *rest]) == list(range(20))


def test_the_same_key_is_the_same_job() -> None:
    """A trainer that is not sure whether it started its job starts it again."""
    with serving(Rough()) as (url, service), RewardClient(url, priority="bulk") as client:
        first = client.start_job(rollouts(2), key="step-7", timeout_s=600, group_wait_s=5)
        assert client.start_job(rollouts(2), key="step-7").id == first.id
        assert client.start_job(rollouts(2)).id != first.id
    body = orjson.loads(service.calls[0].body)
    assert (body["priority"], body["timeout_s"], body["group_wait_s"]) == ("bulk", 600, 5)
    assert "timeout_s" not in orjson.loads(service.calls[2].body), "the time of a request is not that of a job"


def test_starting_is_tried_again_under_one_key() -> None:
    """A start whose answer was lost is tried again, and is one job."""

    class Lossy(Rough):
        def __call__(self, call: Call) -> Reply:
            reply = super().__call__(call)
            if call.method == "POST" and len(service.calls) == 1:
                return Reply(pieces=[], cut=True)
            return reply

    answer = Lossy()
    with serving(answer) as (url, service), RewardClient(url) as client:
        client.start_job(rollouts(2))
    assert len(service.calls) == 2
    assert len(answer.verdicts) == 1


class Breaking(Rough):
    """Streams that break after a few lines, in every way in which they can."""

    def stream(self, job: str, cursor: int) -> Reply:
        lines = self.lines(job, cursor)
        way = cursor % 4
        if len(lines) < 5:
            return Reply(pieces=lines)
        if way == 0:
            return Reply(pieces=lines[:3], cut=True)
        if way == 1:
            return Reply(pieces=lines[:3])  # ends as if it were whole, without its last line
        if way == 2:
            return Reply(pieces=[*lines[:2], lines[2][:20]])  # in the middle of a line
        return Reply(pieces=[*lines[:2], b"garbage\n"])


def test_broken_streams_are_resumed() -> None:
    """However often the stream breaks, each verdict arrives exactly once, and the job is followed to its end."""
    with serving(Breaking()) as (url, service), RewardClient(url, retries=2) as client:
        job = client.start_job(rollouts(60))
        arrivals = list(job.verdicts())
        assert [verdict.reward for verdict in job.result()] == expected(60)
    assert [arrival.cursor for arrival in arrivals] == list(range(1, 61))
    assert Counter(arrival.row for arrival in arrivals) == Counter(range(60))
    assert sum("ndjson" in call.headers["accept"] for call in service.calls) > 20


class Repeating(Rough):
    """A stream that sends again what was read."""

    def stream(self, job: str, cursor: int) -> Reply:
        return Reply(pieces=self.lines(job, max(0, cursor - 3)))


def test_repeated_lines_count_once() -> None:
    """A verdict that comes again after a break is not a second one."""

    class Both(Repeating):
        def stream(self, job: str, cursor: int) -> Reply:
            reply = super().stream(job, cursor)
            return Reply(pieces=reply.pieces[:6], cut=True) if len(reply.pieces) > 6 else reply

    with serving(Both()) as (url, _), RewardClient(url, retries=1) as client:
        rows = [arrival.row for arrival in client.start_job(rollouts(20)).verdicts()]
    assert Counter(rows) == Counter(range(20))


def test_gaps_are_not_overlooked() -> None:
    """A stream that leaves a verdict out is read again, and given up at the cursor before it."""

    class Gap(Rough):
        def stream(self, job: str, cursor: int) -> Reply:
            return Reply(pieces=[line for line in self.lines(job, cursor) if b'"cursor":5,' not in line])

    with serving(Gap()) as (url, _), RewardClient(url, retries=1) as client:
        seen: list[int] = []
        with pytest.raises(BusyError, match="cursor 4"):
            seen.extend(arrival.cursor for arrival in client.start_job(rollouts(9)).verdicts())


def test_an_early_end_is_no_end() -> None:
    """A last line that counts more verdicts than came is taken for a cut."""

    class Short(Rough):
        def stream(self, job: str, cursor: int) -> Reply:
            lines = self.lines(job, cursor)
            return Reply(pieces=[*lines[:2], lines[-1]] if len(lines) > 4 else lines)

    with serving(Short()) as (url, _), RewardClient(url, retries=1) as client:
        assert [verdict.reward for verdict in client.start_job(rollouts(9)).result()] == expected(9)


def test_two_verdicts_for_a_row_are_refused() -> None:
    """A backend that gives a row twice, and another none, makes an error rather than shifted rewards."""

    class Double(Rough):
        def stream(self, job: str, cursor: int) -> Reply:
            return Reply(pieces=[line.replace(b'"row":2,', b'"row":0,') for line in self.lines(job, cursor)])

    with (
        serving(Double()) as (url, _),
        RewardClient(url) as client,
        pytest.raises(ServiceError, match="two verdicts for row 0"),
    ):
        client.start_job(rollouts(4)).result()


def test_a_verdict_that_lies_in_a_job() -> None:
    """It is `backend_unavailable` at its row; the others keep theirs."""

    class Lying(Rough):
        def stream(self, job: str, cursor: int) -> Reply:
            lie = b'{"cursor":2,"row":2,"verdict":{"outcome":"correct","reward":null}}\n'
            lines = [lie if b'"cursor":2,' in line and b"row" in line else line for line in self.lines(job, cursor)]
            return Reply(pieces=lines)

    with serving(Lying()) as (url, _), RewardClient(url) as client:
        verdicts = client.start_job(rollouts(4)).result()
    assert [verdict.reward for verdict in verdicts] == [1.0, 0.0, None, 1.0]
    assert verdicts[2].reason is Reason.BACKEND_UNAVAILABLE


def test_a_silent_stream_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream that says nothing at all is taken for broken; blank lines keep it alive."""
    monkeypatch.setattr("rewarden.client.http.SILENCE_S", 0.5)

    class Quiet(Rough):
        def stream(self, job: str, cursor: int) -> Reply:
            lines = self.lines(job, cursor)
            if len(service.calls) == 2:
                return Reply(pieces=[*[b"\n"] * 5, lines[0], b"x" * 10], pause_s=0.2)
            if len(service.calls) == 3:
                return Reply(pieces=lines, pause_s=3600)
            return Reply(pieces=lines)

    service: RoughService
    with serving(Quiet()) as (url, service), RewardClient(url) as client:
        assert [verdict.reward for verdict in client.start_job(rollouts(4)).result()] == expected(4)
    assert len(service.calls) == 4


def test_cancel() -> None:
    """A job can be withdrawn, by whoever knows its id; an id that is not known, or leads elsewhere, is refused."""
    with serving(Rough()) as (url, service), RewardClient(url) as client:
        job = client.start_job(rollouts(2))
        assert job.cancel().state == "cancelled"
        for name in ("other", "..", "", "../../x", "a?b=c"):
            with pytest.raises(UnknownJobError):
                client.attach(name).status()
            with pytest.raises(UnknownJobError):
                list(client.attach(name).verdicts())
    assert all(call.path.startswith("/v1/jobs") for call in service.calls)


def test_rows_of_a_job_keep_their_places() -> None:
    """A row that no job can hold is sent as why in its place, so that it moves no other; a job has at least one row."""
    with serving(Rough()) as (url, service), RewardClient(url) as client:
        client.start_job([*rollouts(1), {"nope": 1}, Rollout(completion="\ud800"), *rollouts(1)])
        sent = orjson.loads(service.calls[-1].body)["rollouts"]
        assert [type(row) for row in sent] == [dict, str, str, dict]
        assert "nope" in sent[1]
        calls = len(service.calls)
        with pytest.raises(RolloutError, match="at least one"):
            client.start_job([])
    assert len(service.calls) == calls


def test_a_service_without_a_queue() -> None:
    """It says so at once."""
    said = {"code": "no_queue", "status": 503, "detail": "start it with --queue", "retryable": False}
    with serving(lambda _: json(said, 503)) as (url, service), RewardClient(url) as client:
        with pytest.raises(ServiceError, match="--queue") as caught:
            client.start_job(rollouts(1))
        assert not isinstance(caught.value, BusyError)
    assert len(service.calls) == 1


def test_giving_up_on_a_job_loses_nothing() -> None:
    """When the tries are used up, the error says from which cursor to go on."""

    class Gone(Rough):
        def stream(self, job: str, cursor: int) -> Reply:
            return problem(503, "unavailable") if cursor else Reply(pieces=self.lines(job, 0)[:3], cut=True)

    with serving(Gone()) as (url, _), RewardClient(url, retries=1) as client:
        stream = client.start_job(rollouts(9)).verdicts()
        assert [next(stream).cursor for _ in range(3)] == [1, 2, 3]
        with pytest.raises(BusyError, match="past cursor 3"):
            next(stream)


def test_leaving_a_stream_early_gives_its_connection_back() -> None:
    """Who stops reading does not hold the service: the connection is closed."""

    class Endless(Rough):
        def stream(self, job: str, cursor: int) -> Reply:
            return Reply(pieces=[*self.lines(job, cursor)[:-1], *[b"\n"] * 10_000], pause_s=0.01)

    with serving(Endless()) as (url, service), RewardClient(url) as client:
        for _ in client.start_job(rollouts(3)).verdicts():
            break
        until = time.monotonic() + 30
        while service.under_way:
            assert time.monotonic() < until
            time.sleep(0.01)
