"""What is in no worker's hands: batches between two states when somebody dies, and operations that are sent twice."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest

from rewarden import Reason, Rollout, Verdict, correct
from rewarden.client.queue.batches import cut
from rewarden.client.queue.connection import connect
from rewarden.client.queue.ledger import Batch, Ledger, NewJob
from rewarden.core.catalog import Catalog

LEASE_S = 0.4
CATALOG = Catalog()


@pytest.fixture
async def brief(redis_url: str) -> Any:
    """A ledger whose leases are short."""
    made = Ledger(connect(redis_url), prefix=f"{uuid.uuid4().hex}:", lease_s=LEASE_S)
    yield made
    await made.close()


def new_job(count: int, **options: Any) -> NewJob:
    """A job of `count` rollouts, which has one batch up to 32 of them."""
    rollouts = [Rollout(id=f"r{i}", completion=str(i), reference="1") for i in range(count)]
    parts = cut(CATALOG, "math", rollouts)
    ids = [rollout.id for rollout in rollouts]
    return NewJob(uuid.uuid4().hex, "math", count, parts, ids, **{"digest": "d", **options})


def verdicts_for(batch: Batch) -> list[Verdict]:
    """Some verdict for each rollout of a batch."""
    return [correct(id=rollout.id) for rollout in batch.rollouts]


async def lose(ledger: Ledger, worker: str = "dead") -> None:
    """A worker takes what is due first, and dies."""
    assert await ledger.take(["math"], worker) is not None
    await ledger.bury(worker)


async def finish(ledger: Ledger, job: NewJob) -> dict[str, int]:
    """Grade what becomes ready until the job is done; its outcomes."""
    async with asyncio.timeout(20):
        while (status := await ledger.status(job.id)).state == "running":
            await ledger.reconcile()
            while (batch := await ledger.take(["math"], "finisher")) is not None:
                await ledger.settle(batch, verdicts_for(batch))
            await asyncio.sleep(0.02)
    return status.outcomes


@pytest.mark.parametrize("count", [1, 8])
async def test_whoever_puts_right_may_die_of_it(brief: Ledger, count: int) -> None:
    """A batch that lost two workers is halved, or tried again, also when the one that began to do so died."""
    job = new_job(count)
    await brief.create(job)
    await lose(brief)
    await brief.reconcile()
    await lose(brief)
    assert await brief._call("reconcile", LEASE_S)  # and then nothing: the process is gone, or the answer was lost
    assert await finish(brief, job) == {"correct": count}


async def test_one_loss_is_counted_once(brief: Ledger) -> None:
    """Putting a lost batch right again, since nobody knows whether that was done, is no further loss of a worker."""
    job = new_job(1)
    await brief.create(job)
    await lose(brief)
    await brief.reconcile()
    await lose(brief)
    for _ in range(4):
        await brief._call("reconcile", LEASE_S)
        await asyncio.sleep(LEASE_S / 3)
    assert await finish(brief, job) == {"correct": 1}


async def test_what_is_taken_is_not_made_ready(ledger: Ledger) -> None:
    """Two that put the same batch right at once do not hand it to two workers."""
    job = new_job(1)
    await ledger.create(job)
    await lose(ledger)
    await ledger.reconcile()
    await lose(ledger)
    (batch,) = await ledger._call("reconcile", ledger.lease_s)
    await ledger._lost(batch.decode())
    taken = await ledger.take(["math"], "w")
    assert taken is not None
    await ledger._lost(batch.decode())
    assert await ledger.take(["math"], "other") is None
    assert await ledger.settle(taken, verdicts_for(taken)) == 1


async def test_all_leases_get_another_term(brief: Ledger) -> None:
    """After a time when nobody looked, a lease that is about to end is renewed as those are that have."""
    await brief.create(new_job(64))
    await brief.reconcile()
    assert await brief.take(["math"], "w")
    await asyncio.sleep(LEASE_S * 0.8)
    assert await brief.take(["math"], "w")
    await asyncio.sleep(LEASE_S * 0.8)  # the first lease has ended, the second has not
    assert await brief.reconcile() == 0
    await asyncio.sleep(LEASE_S * 0.4)
    await brief.reconcile()
    assert (await brief.depths()).leased == 2
    assert not (await brief.depths()).kinds["math"].batches


async def test_a_large_job_is_cancelled_in_one_breath(ledger: Ledger) -> None:
    """Redis stands still while a job is cancelled, so that has to take time in proportion to the rows alone."""
    job = new_job(20_000)
    await ledger.create(job)
    async with asyncio.timeout(5):
        status = await ledger.cancel(job.id)
    assert (status.state, status.outcomes) == ("cancelled", {"ungraded": 20_000})
    lines = await ledger.lines(job.id)
    assert all(f'"id":"r{row}"'.encode() in verdict for _, row, verdict in lines)
    assert all(Reason.CANCELLED.value.encode() in verdict for _, _, verdict in lines)
