"""Deadlines, cancellations and groups that wait: each row still gets one verdict, at the worst moment too."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from fatal_jobs import WORKER, start_fatal
from private_redis import PrivateRedis, private_redis
from queue_workers import collected, differences, kill, rollouts, undisturbed, workers
from service import until

from rewarden import Reason, RewardClient

ROLLOUTS = 5000
HARD = 0.05


@pytest.fixture
def redis() -> Iterator[PrivateRedis]:
    """A Redis of the test's own, so that nobody else looks after its ledger."""
    with private_redis() as server:
        yield server


def test_time_runs_out_where_nobody_works(redis: PrivateRedis) -> None:
    """Without workers and without a service, whoever waits for a job is told of its deadline all the same."""
    with RewardClient(redis.url) as client:
        job = client.start_job(rollouts(300), timeout_s=0.5, group_wait_s=60).id
    found = collected(redis.url, job, wait_s=30)
    assert {verdict.reason for verdict in found} == {Reason.DEADLINE}
    assert [verdict.id for verdict in found] == [row["id"] for row in rollouts(300)]


@pytest.mark.slow
@pytest.mark.parametrize("timeout_s", [0.3, 1.0])
def test_time_runs_out_while_workers_are_at_it(redis: PrivateRedis, timeout_s: float) -> None:
    """At the deadline each row was either graded, as it would have been anyway, or is told of the deadline."""
    with workers(redis.url, 2) as living:
        until(lambda: all(worker.pool for worker in living))
        with RewardClient(redis.url) as client:
            jobs = [client.start_job(rollouts(ROLLOUTS // 2, seed, HARD), timeout_s=timeout_s).id for seed in (8, 9)]
        reasons: Counter[Any] = Counter()
        for seed, job in zip((8, 9), jobs, strict=True):
            found = collected(redis.url, job)
            assert not differences(found, undisturbed(ROLLOUTS // 2, seed, HARD), [Reason.DEADLINE])
            reasons += Counter(verdict.reason for verdict in found)
    assert reasons[Reason.DEADLINE]


@pytest.mark.slow
async def test_time_runs_out_while_a_batch_is_leased(redis: PrivateRedis) -> None:
    """A batch in a worker's hands at its deadline is told of it at once; what the worker says later counts no more."""
    with workers(redis.url, 1, *WORKER) as living:
        until(lambda: living[0].pool)
        job = await start_fatal(redis.url, ["slow"] * 3, timeout_s=0.7)
        with redis.client() as client:
            until(lambda: client.zcard("rw:leased"))
            found = await asyncio.to_thread(collected, redis.url, job)
            assert [verdict.reason for verdict in found] == [Reason.DEADLINE] * 3
            until(lambda: b'"busy":0' in client.hvals("rw:workers")[0])
        assert (await asyncio.to_thread(collected, redis.url, job)) == found


@pytest.mark.slow
def test_a_job_is_cancelled_while_it_runs(redis: PrivateRedis) -> None:
    """What was graded stays, the rest is `cancelled`, and each row has one verdict though workers still settle."""
    with workers(redis.url, 2) as living:
        until(lambda: all(worker.pool for worker in living))
        with RewardClient(redis.url) as client:
            job = client.start_job(rollouts(ROLLOUTS, 10, HARD))
            arrivals = job.verdicts()
            for _ in range(300):
                next(arrivals)
            status = job.cancel()
            assert status.state == "cancelled"
            assert status.done == ROLLOUTS
        time.sleep(1.0)
        found = collected(redis.url, job.id)
    assert not differences(found, undisturbed(ROLLOUTS, 10, HARD), [Reason.CANCELLED])
    assert sum(verdict.reason is Reason.CANCELLED for verdict in found) > 100


def group_rows(groups: int, members: int = 4) -> list[dict[str, Any]]:
    """Whole groups, member after member."""
    return [
        {
            "id": f"{group}-{member}",
            "completion": f"\\boxed{{{0 if (group + member) % 3 else member}}}",
            "group": f"{group}",
            "group_size": members,
        }
        for group in range(groups)
        for member in range(members)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("killed", [False, True], ids=["undisturbed", "killed"])
def test_groups_meet_from_two_jobs(redis: PrivateRedis, killed: bool) -> None:
    """Members that two processes send are graded as one group, also when workers die in between; none twice."""
    rows = group_rows(300)
    halves = [rows[0::2], rows[1::2]]
    with RewardClient("local", recipe="majority") as local:
        whole = local.score(rows)
    with workers(redis.url, 2) as living, RewardClient(redis.url, recipe="majority") as client:
        until(lambda: all(worker.pool for worker in living))
        first = client.start_job(halves[0], group_wait_s=60, key=uuid.uuid4().hex)
        if killed:
            kill(living[0].main)
        time.sleep(0.5)
        assert first.status().done == 0
        second = client.start_job(halves[1], group_wait_s=60, key=uuid.uuid4().hex)
        if killed:
            kill(living[1].main)
        found = [collected(redis.url, job.id) for job in (first, second)]
    assert not differences(found[0], whole[0::2])
    assert not differences(found[1], whole[1::2])


@pytest.mark.slow
def test_groups_whose_others_never_come(redis: PrivateRedis) -> None:
    """When the time to wait is over the part of the group that is there is graded as it would be by itself."""
    half = group_rows(100)[0::2]
    with RewardClient("local", recipe="majority") as local:
        alone = local.score(half)
    with workers(redis.url, 1), RewardClient(redis.url, recipe="majority") as client:
        job = client.start_job(half, group_wait_s=1.0)
        found = collected(redis.url, job.id)
    assert not differences(found, alone)
