"""The ledger: one verdict for each row, whatever is sent twice, lost, late or cancelled."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections import Counter
from typing import Any

import pytest

from rewarden import Outcome, Reason, Rollout, Verdict, correct, incorrect
from rewarden.client.queue.batches import cut
from rewarden.client.queue.connection import connect, redacted
from rewarden.client.queue.ledger import LOSSES, Batch, Ledger, NewJob
from rewarden.client.queue.transport import KeyConflictError, QueueTransport
from rewarden.client.transport import Arrival, BusyError, Request, UnknownJobError
from rewarden.core.catalog import Catalog
from rewarden.core.errors import ServiceError

CATALOG = Catalog()


def new_job(count: int = 100, recipe: str = "math", **options: Any) -> NewJob:
    """A job of `count` rollouts, or of the given `rollouts`."""
    group_wait_s = options.pop("group_wait_s", None)
    rollouts = options.pop("rollouts", None) or [
        Rollout(id=f"r{i}", completion=str(i), reference="1") for i in range(count)
    ]
    made = {"id": uuid.uuid4().hex, "digest": "d", **options}
    parts = cut(CATALOG, recipe, rollouts, group_wait_s=group_wait_s)
    return NewJob(recipe=recipe, total=len(rollouts), cut=parts, ids=[rollout.id for rollout in rollouts], **made)


def verdicts_for(batch: Batch) -> list[Verdict]:
    """Some verdict for each rollout of a batch."""
    return [correct(id=rollout.id) for rollout in batch.rollouts]


async def arrivals(ledger: Ledger, job: str, cursor: int = 0) -> list[Arrival]:
    """All verdicts of a job, which must be complete or become so."""
    async with asyncio.timeout(30):
        return [arrival async for arrival in ledger.follow(job, cursor)]


async def finish(ledger: Ledger, kinds: tuple[str, ...] = ("math", "pseudo-label", "text")) -> int:
    """Settle all that is ready; how many batches that was."""
    count = 0
    while (batch := await ledger.take(kinds, "finisher")) is not None:
        await ledger.settle(batch, verdicts_for(batch))
        count += 1
    return count


async def test_each_row_once_in_order_of_arrival(ledger: Ledger) -> None:
    """Every row arrives once, with its own verdict; cursors count from 1; a reader can go on after any of them."""
    job = new_job(100)
    assert await ledger.create(job) == (True, "d")
    await finish(ledger)
    got = await arrivals(ledger, job.id)
    assert [arrival.cursor for arrival in got] == list(range(1, 101))
    assert Counter(arrival.row for arrival in got) == Counter(range(100))
    assert all(arrival.verdict.id == f"r{arrival.row}" for arrival in got)
    for cursor in (0, 1, 57, 99, 100):
        assert await arrivals(ledger, job.id, cursor) == got[cursor:]
    status = await ledger.status(job.id)
    assert (status.state, status.total, status.done, status.outcomes) == ("done", 100, 100, {"correct": 100})


async def test_the_first_verdict_stays(ledger: Ledger) -> None:
    """A batch that is settled twice, by whoever, counts once, and the first verdict is kept."""
    job = new_job(10)
    await ledger.create(job)
    batch = await ledger.take(["math"], "w")
    assert batch is not None
    assert await ledger.settle(batch, verdicts_for(batch)) == 10
    assert await ledger.settle(batch, [incorrect(id=rollout.id) for rollout in batch.rollouts]) == 0
    got = await arrivals(ledger, job.id)
    assert len(got) == 10
    assert {arrival.verdict.outcome for arrival in got} == {Outcome.CORRECT}


async def test_many_at_once(ledger: Ledger) -> None:
    """Workers that race for batches, and settle each one twice at once, lose and double nothing."""
    jobs = [new_job(200) for _ in range(5)]
    await asyncio.gather(*(ledger.create(job) for job in jobs for _ in range(2)))

    async def work(name: str) -> None:
        while (batch := await ledger.take(["math"], name)) is not None:
            await asyncio.gather(*(ledger.settle(batch, verdicts_for(batch)) for _ in range(2)))

    await asyncio.gather(*(work(f"w{i}") for i in range(8)))
    for job in jobs:
        assert Counter(a.row for a in await arrivals(ledger, job.id)) == Counter(range(200))


async def test_a_job_is_created_once(ledger: Ledger) -> None:
    """Creating a job again changes nothing, also when it is done, and tells of the request that made it."""
    job = new_job(40)
    assert [await ledger.create(job) for _ in range(3)] == [(True, "d"), (False, "d"), (False, "d")]
    batches = await finish(ledger)
    assert await ledger.create(job) == (False, "d")
    assert await finish(ledger) == 0
    assert batches == 2


async def test_a_key_belongs_to_one_request(transport: QueueTransport) -> None:
    """The same request under the same key is one job; another request under it is refused; owners do not meet."""
    rollouts = [Rollout(completion="1", reference="1")]
    job = await transport.start(Request("math", rollouts, "key"))
    assert await transport.start(Request("math", rollouts, "key")) == job
    with pytest.raises(KeyConflictError):
        await transport.start(Request("math", [Rollout(completion="2", reference="1")], "key"))
    request = Request("math", rollouts, "key")
    other = await transport.submit(transport.new_job(request, rollouts, owner="somebody"))
    assert other.id != job
    with pytest.raises(UnknownJobError):
        await transport.status_for(other.id, "else")


async def test_cancel(ledger: Ledger) -> None:
    """What has a verdict keeps it, the rest is cancelled, late verdicts are dropped, and nothing is left to do."""
    job = new_job(100)
    await ledger.create(job)
    done, late = await ledger.take(["math"], "w"), await ledger.take(["math"], "w")
    assert done is not None
    assert late is not None
    await ledger.settle(done, verdicts_for(done))
    status = await ledger.cancel(job.id)
    assert (status.state, status.done) == ("cancelled", 100)
    assert await ledger.settle(late, verdicts_for(late)) == 0
    assert (await ledger.cancel(job.id)) == status
    got = await arrivals(ledger, job.id)
    assert Counter(a.row for a in got) == Counter(range(100))
    rows = {row for _, row in done.members}
    assert all((a.verdict.reason is Reason.CANCELLED) == (a.row not in rows) for a in got)
    assert all(a.verdict.id == f"r{a.row}" for a in got)
    assert await finish(ledger) == 0
    depths = await ledger.depths()
    assert (depths.leased, depths.jobs, depths.kinds["math"].batches) == (0, 0, 0)


@pytest.mark.parametrize("taken", [False, True])
async def test_deadline(ledger: Ledger, taken: bool) -> None:
    """When its time is over, what waits and what is under way is `ungraded: deadline`, with no worker needed."""
    job = new_job(100, timeout_s=0.3)
    await ledger.create(job)
    held = await ledger.take(["math"], "w") if taken else None
    await asyncio.sleep(0.4)
    await ledger.reconcile()
    got = await arrivals(ledger, job.id)
    assert Counter(a.row for a in got) == Counter(range(100))
    assert {a.verdict.reason for a in got} == {Reason.DEADLINE}
    if held is not None:
        assert await ledger.settle(held, verdicts_for(held)) == 0


async def test_expired_work_is_not_handed_out(ledger: Ledger) -> None:
    """A worker never gets a batch whose time is over."""
    job = new_job(10, timeout_s=0.2)
    await ledger.create(job)
    await asyncio.sleep(0.3)
    assert await ledger.take(["math"], "w") is None
    assert {a.verdict.reason for a in await arrivals(ledger, job.id)} == {Reason.DEADLINE}


async def test_a_lost_batch_is_tried_again(ledger: Ledger) -> None:
    """A worker that dies loses its batches to the next, which nobody is blamed for."""
    job = new_job(10)
    await ledger.create(job)
    first = await ledger.take(["math"], "dead")
    await ledger.bury("dead")
    await ledger.reconcile()
    again = await ledger.take(["math"], "alive")
    assert first is not None
    assert again is not None
    assert (again.id, again.losses) == (first.id, 1)
    await ledger.settle(again, verdicts_for(again))
    assert (await ledger.status(job.id)).outcomes == {"correct": 10}


@pytest.mark.parametrize("poison", [[0], [63], [17, 40]])
async def test_poison_is_found(ledger: Ledger, poison: list[int]) -> None:
    """Rollouts that kill their worker every time are found by halving; they alone are given up, and kept."""
    job = new_job(64)
    await ledger.create(job)
    deaths = 0
    while (batch := await ledger.take(["math"], "w")) is not None:
        if any(row in poison for _, row in batch.members):
            deaths += 1
            await ledger.bury("w")
            await ledger.reconcile()
        else:
            await ledger.settle(batch, verdicts_for(batch))
    got = {a.row: a.verdict for a in await arrivals(ledger, job.id)}
    assert sorted(row for row, verdict in got.items() if verdict.reason is Reason.WORKER_LOST) == poison
    assert all(verdict.outcome is Outcome.CORRECT for row, verdict in got.items() if row not in poison)
    letters = await ledger.dead_letters()
    assert sorted(letter.row for letter in letters) == poison
    assert all(letter.job == job.id and letter.kind == "math" for letter in letters)
    assert deaths <= len(poison) * (LOSSES + 7)


async def test_a_group_is_never_halved(ledger: Ledger) -> None:
    """Halving stops at groups: their verdicts depend on each other."""
    rollouts = [Rollout(id=str(i), completion="4", group=str(i // 8)) for i in range(32)]
    job = new_job(rollouts=rollouts, recipe="majority")
    await ledger.create(job)
    for _ in range(20):
        batch = await ledger.take(["pseudo-label"], "w")
        if batch is None:
            break
        assert all(len({r.group for r in batch.rollouts[at : at + 8]}) == 1 for at in range(0, len(batch.members), 8))
        await ledger.bury("w")
        await ledger.reconcile()
    got = await arrivals(ledger, job.id)
    assert Counter(a.row for a in got) == Counter(range(32))


async def test_leases(redis_url: str) -> None:
    """A lease that is renewed is kept, one that is not ends; what is held by another is not renewed."""
    ledger = Ledger(connect(redis_url), prefix=f"{uuid.uuid4().hex}:", lease_s=0.5)
    job = new_job(10)
    await ledger.create(job)
    batch = await ledger.take(["math"], "w")
    assert batch is not None
    for _ in range(5):
        await asyncio.sleep(0.15)
        assert await ledger.beat("w", {}, [batch.id]) == []
        assert await ledger.beat("other", {}, [batch.id]) == [batch.id]
        assert await ledger.reconcile() == 0
        assert (await ledger.depths()).leased == 1
    for _ in range(20):
        await asyncio.sleep(0.1)
        await ledger.reconcile()
        if (await ledger.depths()).leased == 0:
            break
    again = await ledger.take(["math"], "next")
    assert again is not None
    assert again.losses == 1
    await ledger.close()


async def test_nobody_is_blamed_for_redis(redis_url: str) -> None:
    """When nobody has looked for longer than a lease, as while Redis was away, all leases get another term."""
    ledger = Ledger(connect(redis_url), prefix=f"{uuid.uuid4().hex}:", lease_s=0.4)
    await ledger.create(new_job(10))
    await ledger.reconcile()
    batch = await ledger.take(["math"], "w")
    assert batch is not None
    await asyncio.sleep(0.8)
    await ledger.reconcile()
    assert (await ledger.depths()).leased == 1
    assert await ledger.beat("w", {}, [batch.id]) == []
    await ledger.close()


async def test_a_worker_leaves_in_good_order(ledger: Ledger) -> None:
    """What a worker holds when it ends is ready again at once, with no loss counted, and it is listed no longer."""
    await ledger.create(new_job(10))
    await ledger.beat("w", {"host": "h"}, [])
    assert (await ledger.workers())["w"] == {"host": "h"}
    await ledger.take(["math"], "w")
    await ledger.leave("w")
    assert await ledger.workers() == {}
    again = await ledger.take(["math"], "v")
    assert again is not None
    assert again.losses == 0


async def test_priorities(ledger: Ledger) -> None:
    """Interactive work goes first, then training, then bulk, and the first that came within each."""
    order = ["bulk", "training", "interactive", "bulk", "training", "interactive"]
    jobs: list[NewJob] = []
    for priority in order:
        jobs.append(new_job(1, priority=priority))
        await ledger.create(jobs[-1])
        await asyncio.sleep(0.01)
    taken = []
    while (batch := await ledger.take(["math"], "w")) is not None:
        taken.append(batch.members[0][0])
    wanted = [2, 5, 1, 4, 0, 3]
    assert taken == [jobs[i].id for i in wanted]


async def test_kinds_are_apart(ledger: Ledger) -> None:
    """A worker gets only the kinds of work that it does."""
    await ledger.create(new_job(1, "choice"))
    assert await ledger.take(["math"], "w") is None
    depths = await ledger.depths()
    assert depths.kinds["text"].batches == 1
    batch = await ledger.take(["math", "text"], "w")
    assert batch is not None
    assert batch.kind == "text"


async def test_depth_and_age(ledger: Ledger) -> None:
    """The ledger knows how much waits and for how long, whatever the priorities."""
    await ledger.create(new_job(1, priority="bulk"))
    await asyncio.sleep(0.2)
    await ledger.create(new_job(64, priority="interactive"))
    depth = (await ledger.depths()).kinds["math"]
    assert depth.batches == 3
    assert 0.2 <= depth.age_s < 20


async def test_members_of_a_group_meet(ledger: Ledger) -> None:
    """Members that come in several jobs are graded together as soon as the last has come; each job gets its own."""
    members = [Rollout(id=str(i), completion="4", group="g", group_size=3) for i in range(3)]
    jobs = [new_job(rollouts=[member], recipe="majority", group_wait_s=60) for member in members]
    for job in jobs[:2]:
        await ledger.create(job)
        assert await ledger.take(["pseudo-label"], "w") is None
    assert (await ledger.depths()).open_groups == 1
    await ledger.create(jobs[2])
    batch = await ledger.take(["pseudo-label"], "w")
    assert batch is not None
    assert batch.members == [(job.id, 0) for job in jobs]
    assert (batch.rollouts, batch.units) == (members, [3])
    await ledger.settle(batch, verdicts_for(batch))
    for i, job in enumerate(jobs):
        (arrival,) = await arrivals(ledger, job.id)
        assert (arrival.row, arrival.verdict.id) == (0, str(i))
    assert (await ledger.depths()).open_groups == 0


async def test_a_group_is_given_up_in_time(ledger: Ledger) -> None:
    """A group that stays incomplete goes with those who came, once its time is over."""
    member = Rollout(id="1", completion="4", group="g", group_size=3)
    job = new_job(rollouts=[member, member], recipe="majority", group_wait_s=0.2)
    await ledger.create(job)
    await ledger.reconcile()
    assert await ledger.take(["pseudo-label"], "w") is None
    await asyncio.sleep(0.3)
    await ledger.reconcile()
    batch = await ledger.take(["pseudo-label"], "w")
    assert batch is not None
    assert batch.members == [(job.id, 0), (job.id, 1)]


async def test_a_group_that_waits_can_be_cancelled(ledger: Ledger) -> None:
    """Cancelling one job of a group leaves the members of the others to be graded."""
    members = [Rollout(id=str(i), completion="4", group="g", group_size=2) for i in range(2)]
    jobs = [new_job(rollouts=[member], recipe="majority", group_wait_s=60) for member in members]
    await ledger.create(jobs[0])
    await ledger.cancel(jobs[0].id)
    await ledger.create(jobs[1])
    await finish(ledger)
    assert (await ledger.status(jobs[0].id)).outcomes == {"ungraded": 1}
    assert (await ledger.status(jobs[1].id)).outcomes == {"correct": 1}


async def test_waiting_members_meet_the_deadline(ledger: Ledger) -> None:
    """A group that waits longer than a job may take is given up for that job, and nothing waits for ever."""
    member = Rollout(id="1", completion="4", group="g", group_size=3)
    job = new_job(rollouts=[member], recipe="majority", group_wait_s=60, timeout_s=0.2)
    await ledger.create(job)
    await asyncio.sleep(0.3)
    await ledger.reconcile()
    await ledger.reconcile()
    assert [a.verdict.reason for a in await arrivals(ledger, job.id)] == [Reason.DEADLINE]


async def test_nothing_is_kept_for_ever(ledger: Ledger) -> None:
    """Of a job that is done or cancelled nothing is left without an end, and its batches are gone."""
    done, cancelled = new_job(50, keep_s=100), new_job(50, keep_s=100)
    await ledger.create(done)
    await finish(ledger)
    await ledger.create(cancelled)
    held = await ledger.take(["math"], "w")
    await ledger.cancel(cancelled.id)
    assert held is not None
    await ledger.settle(held, verdicts_for(held))
    names = [name.decode() async for name in ledger.redis.scan_iter(f"{ledger.prefix}*")]
    assert not [name for name in names if ":batch:" in name or name.endswith(":batches")]
    for job in (done, cancelled):
        mine = [name for name in names if job.id in name]
        assert len(mine) == 3
        assert all([0 < await ledger.redis.ttl(name) <= 100 for name in mine])


async def test_a_reader_hears_of_verdicts_as_they_come(ledger: Ledger) -> None:
    """A reader that is there first gets each verdict once it is there, and ends with the last."""
    job = new_job(100)
    await ledger.create(job)
    reader = asyncio.create_task(arrivals(ledger, job.id))
    await asyncio.sleep(0.1)
    assert not reader.done()
    await finish(ledger)
    assert Counter(a.row for a in await reader) == Counter(range(100))


async def test_unknown_jobs(ledger: Ledger) -> None:
    """A job that never was is told apart from one without verdicts."""
    for call in (ledger.status("nobody"), ledger.cancel("nobody"), arrivals(ledger, "nobody")):
        with pytest.raises(UnknownJobError):
            await call


async def test_dead_letters_can_be_dropped(ledger: Ledger) -> None:
    """Dead letters are listed newest first, found by id, and forgotten on request."""
    job = new_job(3)
    await ledger.create(job)
    batch = await ledger.take(["math"], "w")
    assert batch is not None
    verdicts = [Verdict(Outcome.UNGRADED, None, Reason.SCORER_ERROR, "raised", id=str(i)) for i in range(3)]
    await ledger.keep_dead(batch, [0, 1, 2], batch.rollouts, verdicts)
    letters = await ledger.dead_letters()
    assert [letter.row for letter in letters] == [2, 1, 0]
    assert letters[0].verdict == verdicts[2]
    assert await ledger.dead_letters(ids=[letters[1].id]) == [letters[1]]
    assert await ledger.drop_dead_letters([letters[1].id]) == 1
    assert [letter.row for letter in await ledger.dead_letters()] == [2, 0]


@pytest.mark.parametrize("seed", range(10))
async def test_any_history_gives_each_row_one_verdict(ledger: Ledger, seed: int) -> None:
    """Whatever order of taking, settling, dying, leaving, cancelling and reconciling: one verdict for each row."""
    dice = random.Random(seed)
    jobs: list[NewJob] = []
    held: list[tuple[str, Batch]] = []
    for _ in range(150):
        match dice.randrange(8):
            case 0 if len(jobs) < 6:
                jobs.append(new_job(dice.randrange(1, 90), recipe=dice.choice(["math", "choice"])))
                await ledger.create(jobs[-1])
            case 1 if jobs:
                await ledger.create(dice.choice(jobs))
            case 2 | 3:
                worker = dice.choice("abc")
                batch = await ledger.take(["math", "text"], worker)
                if batch is not None:
                    held.append((worker, batch))
            case 4 if held:
                _, batch = dice.choice(held)
                await ledger.settle(batch, verdicts_for(batch))
            case 5:
                await ledger.bury(dice.choice("abc"))
                await ledger.reconcile()
            case 6:
                await ledger.leave(dice.choice("abc"))
            case 7 if jobs and dice.random() < 0.1:
                await ledger.cancel(dice.choice(jobs).id)
    for worker in "abc":
        await ledger.leave(worker)
    await finish(ledger)
    for job in jobs:
        got = await arrivals(ledger, job.id)
        assert Counter(a.row for a in got) == Counter(range(job.total))
        assert all(a.verdict.id == f"r{a.row}" for a in got)


async def test_a_queue_that_is_away(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Redis that does not answer is a BusyError, which another try may cure; its password is never shown."""
    monkeypatch.setattr("rewarden.client.queue.connection.TRIES", 1)
    transport = QueueTransport(f"unix://{tmp_path}/nobody.sock")
    with pytest.raises(BusyError, match="does not answer"):
        await transport.start(Request("math", [Rollout(completion="1")], "k"))
    await transport.close()
    assert "secret" not in redacted("redis://:secret@host:1/0")
    for url in ("http://x", "file:///etc/passwd", "amqp://x", "redis", ""):
        with pytest.raises(ServiceError, match="no Redis"):
            connect(url)
