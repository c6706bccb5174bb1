"""Workers that die: every row still gets one verdict, the same as where nobody does."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator

import pytest
from fatal_jobs import WORKER, start_fatal
from private_redis import PrivateRedis, private_redis
from queue_workers import Worker, collected, differences, kill, rollouts, undisturbed, workers
from service import until

from rewarden import Reason, RewardClient
from rewarden.client.queue.connection import connect
from rewarden.client.queue.ledger import Ledger

ROLLOUTS = 5000
HARD = 0.05
"""The share that needs computer algebra, so that there is time to kill somebody."""


@pytest.fixture(scope="module")
def redis() -> Iterator[PrivateRedis]:
    """A Redis that nothing happens to."""
    with private_redis() as server:
        yield server


def strike(rng: random.Random, url: str, living: list[Worker]) -> str:
    """Kill some process of a random worker. A supervisor that is killed gets a successor."""
    worker = rng.choice(living)
    match rng.choice(["main", "main", "pool", "supervisor", "both"]):
        case "main":
            kill(worker.main)
            return "main"
        case "pool":
            for pid in worker.pool[-1:]:
                kill(pid)
            return "pool"
        case "supervisor":
            kill(worker.process.pid)
        case _:  # nobody is left to say so: the lease has to end
            main = worker.main
            kill(worker.process.pid)
            kill(main)
    worker.process.wait(10)
    living[living.index(worker)] = Worker(url)
    return "supervisor"


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1])
def test_processes_killed_at_random(redis: PrivateRedis, seed: int) -> None:
    """Workers, supervisors and pool children are killed while jobs run: every verdict comes once, and none differs."""
    rng = random.Random(seed)
    with workers(redis.url, 3) as living, RewardClient(redis.url) as client:
        until(lambda: all(worker.pool for worker in living))
        job = client.start_job(rollouts(ROLLOUTS, seed, HARD))
        struck: list[str] = []
        while len(struck) < 10 and job.status().state == "running":
            struck.append(strike(rng, redis.url, living))
            time.sleep(rng.uniform(0.2, 1.0))
        found = collected(redis.url, job.id)
    assert len(struck) > 3, "the job was done before anything could happen to it"
    # A rollout whose pool child was killed twice is told so; the others are graded.
    assert not differences(found, undisturbed(ROLLOUTS, seed, HARD), [Reason.WORKER_LOST])
    assert sum(verdict.reason is Reason.WORKER_LOST for verdict in found) <= 2


@pytest.mark.slow
@pytest.mark.parametrize("place", [0, 17, 63])
async def test_one_rollout_that_kills_its_worker(redis: PrivateRedis, place: int) -> None:
    """A rollout that kills every process that grades it is given up alone, and kept; the 63 beside it are graded."""
    completions = ["poison" if row == place else str(row) for row in range(64)]
    with workers(redis.url, 3, *WORKER):
        job = await start_fatal(redis.url, completions)
        found = await asyncio.to_thread(collected, redis.url, job)
    assert [row for row, verdict in enumerate(found) if not verdict.graded] == [place]
    assert found[place].reason is Reason.WORKER_LOST
    ledger = Ledger(connect(redis.url))
    letters = [letter for letter in await ledger.dead_letters() if letter.job == job]
    assert [(letter.row, letter.verdict) for letter in letters] == [(place, found[place])]
    await ledger.close()


@pytest.mark.slow
async def test_nobody_is_blamed_for_a_neighbour(redis: PrivateRedis) -> None:
    """A rollout that is graded beside one that kills its worker, again and again, is not given up with it."""
    poison = await start_fatal(redis.url, ["poison"])
    slow = await start_fatal(redis.url, ["slow"])
    with workers(redis.url, 1, *WORKER):
        assert (await asyncio.to_thread(collected, redis.url, slow))[0].reward == 1.0
        assert (await asyncio.to_thread(collected, redis.url, poison))[0].reason is Reason.WORKER_LOST
