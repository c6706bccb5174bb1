"""The ledger in Redis: the truth of what each job still lacks (docs/design/005-queue.md).

Nothing here depends on messages arriving. A batch is ready, or leased to a worker that renews its lease, or done; what
is neither is put right by `reconcile`. A row of a job gets one verdict, whoever sends how many.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from ...core.errors import ServiceError
from ...core.reasons import Reason
from ...core.rollout import Rollout
from ...core.verdict import Verdict, ungraded
from ...core.wire import Priority, decode_rollouts, decode_verdict, encode_rollouts
from ..transport import Arrival, BusyError, JobStatus, UnknownJobError
from .batches import Cut

if TYPE_CHECKING:
    from redis.asyncio import Redis

_SCRIPT = Path(__file__).with_name("ledger.lua").read_bytes()

HEAD_START: dict[Priority, float] = {"interactive": 3600.0, "training": 0.0, "bulk": -3600.0}
"""Seconds by which a batch goes before others that came as early: bulk work waits, but never more than two hours."""

LEASE_S = 10.0
"""A worker that has not renewed its lease for so long has lost its batches."""

TIMEOUT_S = 6 * 3600.0
"""The deadline of a job that names none, so that nothing waits for ever for a worker that never comes."""

KEEP_S = 6 * 3600.0
"""How long the verdicts of a finished job can be read: they fill the memory of Redis meanwhile."""

LOSSES = 3
"""So many workers must have been lost over one unit of work, alone at the end, before it is given up."""

DEAD_LETTERS = 10_000
"""The newest are kept."""

_BLOCK_MS = 2000


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job to be."""

    id: str
    recipe: str
    total: int
    cut: Cut
    ids: list[str]
    """The `id` of each rollout, for verdicts that no scorer gives."""
    digest: str
    """Of the request, so that a key that is used for another one is noticed."""
    priority: Priority = "training"
    timeout_s: float | None = None
    owner: str = ""
    """The API key that may see it; empty for everybody."""
    trace: str = ""
    """W3C traceparent of the request."""
    keep_s: float = KEEP_S


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch under a lease."""

    id: str
    kind: str
    recipe: str
    members: list[tuple[str, int]]
    """Job and row of each rollout."""
    units: list[int]
    payload: bytes
    losses: int
    left_s: float
    """Seconds to the deadline."""
    trace: str

    @property
    def rollouts(self) -> list[Rollout]:
        return decode_rollouts(self.payload)


@dataclass(frozen=True, slots=True)
class Depth:
    """What waits in one kind of work."""

    batches: int
    age_s: float
    """How long the oldest has waited."""


@dataclass(frozen=True, slots=True)
class Depths:
    """What waits in the ledger."""

    kinds: dict[str, Depth]
    leased: int
    open_groups: int
    jobs: int
    dead: int


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A rollout that was given up for a fault that was not its own, as far as anybody knows."""

    id: str
    job: str
    row: int
    kind: str
    recipe: str
    rollout: bytes
    """JSON."""
    verdict: Verdict
    """What its job was told."""
    time: float
    """Seconds since 1970."""


class Ledger:
    """All that is kept in Redis. Any number of processes may use one; a call can be repeated without harm.

    Errors of Redis come through as they are; a connection made by `connect` has tried again before.
    """

    def __init__(self, redis: Redis, *, prefix: str = "rw:", lease_s: float = LEASE_S) -> None:
        self.redis: Any = redis  # the types of redis-py say what it returns under other settings
        self.prefix = prefix
        self.lease_s = lease_s
        self._script = redis.register_script(_SCRIPT)

    # -- jobs ---------------------------------------------------------------------------------------------------------

    async def create(self, job: NewJob) -> tuple[bool, str]:
        """Whether the job is new, and the digest of the request that made it: another one is a conflict."""
        parts = job.cut
        about = {
            "recipe": job.recipe,
            "total": job.total,
            "keep": int(job.keep_s),
            "owner": job.owner,
            "digest": job.digest,
            "trace": job.trace,
            "batches": len(parts.batches),
            "waiting": len(parts.waiting),
            "settled": len(parts.settled),
        }
        args: list[Any] = [orjson.dumps(about), orjson.dumps(job.ids) if any(job.ids) else b"[]"]
        for number, batch in enumerate(parts.batches):
            members = orjson.dumps([(job.id, row) for row in batch.rows])
            args += (
                f"{job.id}.{number:06d}",
                batch.kind,
                batch.recipe,
                members,
                orjson.dumps(batch.units),
                batch.payload,
            )
        for one in parts.waiting:
            args += (one.group, one.id, one.kind, one.recipe, one.size, one.wait_s, one.row, one.payload)
        for row, verdict in parts.settled:
            args += (row, verdict.outcome.value, verdict.to_json())
        timeout, head_start = job.timeout_s or TIMEOUT_S, HEAD_START[job.priority]
        new, digest = await self._call("create", job.id, timeout, head_start, *args)
        return bool(new), digest.decode()

    async def status(self, job: str, owner: str | None = None) -> JobStatus:
        """Where a job stands. Raises UnknownJobError, also for another owner's (None: whoever asks may see all)."""
        found = {
            key.decode(): value.decode() for key, value in (await self.redis.hgetall(self._key("job", job))).items()
        }
        if not found or (owner is not None and found["owner"] != owner):
            raise UnknownJobError(f"no job is called {job[:100]!r}: it never was, or its verdicts have expired")
        outcomes = {name[8:]: int(count) for name, count in found.items() if name.startswith("outcome:")}
        return JobStatus(
            id=job,
            state=found["state"],
            recipe=found["recipe"],
            total=int(found["total"]),
            done=int(found["done"]),
            outcomes=dict(sorted(outcomes.items())),
            created=float(found["created"]),
            deadline=float(found["deadline"]),
        )

    async def lines(self, job: str, cursor: int = 0, *, wait_s: float = 0.0) -> list[tuple[int, int, bytes]]:
        """The next verdicts of a job after the first `cursor`: cursor, row and JSON of each; [] when none came."""
        block = max(1, int(min(wait_s * 1000, _BLOCK_MS))) if wait_s > 0 else None
        out = self._key("job", job, "out")
        found = await self.redis.xread({out: f"{cursor}-0"}, count=512, block=block)
        entries = found[0][1] if isinstance(found, list) and found else next(iter(found.values()))[0] if found else []
        return [(int(at.partition(b"-")[0]), int(entry[b"row"]), entry[b"verdict"]) for at, entry in entries]

    async def follow(self, job: str, cursor: int = 0) -> AsyncIterator[Arrival]:
        """Every verdict after the first `cursor`, as it arrives. Raises UnknownJobError when there is no such job."""
        total = (await self.status(job)).total
        if cursor > total:
            raise ServiceError(f"the job {job} has {total} rollouts, so nobody can have read {cursor} verdicts")
        while cursor < total:
            lines = await self.lines(job, cursor, wait_s=_BLOCK_MS / 1000)
            for at, row, verdict in lines:
                if at != cursor + 1:
                    raise BusyError(f"the verdicts of job {job} have a gap after {cursor}; read them again")
                cursor = at
                yield Arrival(cursor, row, decode_verdict(orjson.loads(verdict)))
            if not lines:
                # Deadlines have to pass also where neither a worker nor a service lives to see to it.
                await self.reconcile()
                await self.status(job)

    async def cancel(self, job: str) -> JobStatus:
        """What has no verdict yet becomes `ungraded: cancelled`."""
        await self._call("cancel", job)
        return await self.status(job)

    # -- batches ------------------------------------------------------------------------------------------------------

    async def take(self, kinds: Sequence[str], worker: str) -> Batch | None:
        """Lease the batch of these kinds that is due first."""
        found = await self._call("take", worker, self.lease_s, *kinds)
        return _batch(found) if found else None

    async def settle(self, batch: Batch, verdicts: Sequence[Verdict]) -> int:
        """The batch is done. How many of its rows had no verdict before."""
        args: list[Any] = []
        for (job, row), verdict in zip(batch.members, verdicts, strict=True):
            args += (job, row, verdict.outcome.value, verdict.to_json())
        return int(await self._call("settle", batch.id, *args))

    async def beat(self, worker: str, about: dict[str, Any], batches: Sequence[str]) -> list[str]:
        """Renew the leases of a worker that lives. Those that are no longer its own come back."""
        return [
            batch.decode() for batch in await self._call("beat", worker, self.lease_s, orjson.dumps(about), *batches)
        ]

    async def leave(self, worker: str) -> None:
        """A worker ends in good order; what it holds is ready again."""
        await self._call("leave", worker)

    async def bury(self, worker: str) -> None:
        """A worker was found dead: what it holds is lost, without waiting for its leases to end."""
        await self._call("bury", worker)

    # -- what goes wrong ----------------------------------------------------------------------------------------------

    async def reconcile(self) -> int:
        """Put right what is overdue: deadlines, leases, groups that stay incomplete. How many batches were lost."""
        lost = await self._call("reconcile", self.lease_s)
        for batch in lost:
            await self._lost(batch.decode())
        return len(lost)

    async def _lost(self, batch_id: str) -> None:
        """A batch that has cost more than one worker: halves find out what in it does, and one alone is given up."""
        found = await self._call("describe", batch_id)
        if not found:
            return
        batch = _batch(found)
        if len(batch.units) > 1:
            await self._call("split", batch.id, *_halves(batch))
        elif batch.losses < LOSSES:
            await self._call("again", batch.id)
        else:
            why = f"{batch.losses} workers were lost while they graded it"
            rollouts = batch.rollouts
            verdicts = [ungraded(Reason.WORKER_LOST, why, id=rollout.id) for rollout in rollouts]
            await self.keep_dead(batch, range(len(rollouts)), rollouts, verdicts)
            await self.settle(batch, verdicts)

    async def keep_dead(
        self,
        batch: Batch,
        places: Iterable[int],
        rollouts: Sequence[Rollout],
        verdicts: Sequence[Verdict],
    ) -> None:
        """Keep those rollouts of a batch that were given up, with what their jobs are told, for a person to look at."""
        async with self.redis.pipeline(transaction=False) as pipe:
            for place in places:
                job, row = batch.members[place]
                entry = {
                    "job": job,
                    "row": row,
                    "kind": batch.kind,
                    "recipe": batch.recipe,
                    "rollout": encode_rollouts([rollouts[place]])[0][1:-1],
                    "verdict": verdicts[place].to_json(),
                    "time": time.time(),
                }
                pipe.xadd(self._key("dead"), entry, maxlen=DEAD_LETTERS, approximate=True)
            await pipe.execute()

    async def dead_letters(self, *, count: int = 100, ids: Sequence[str] = ()) -> list[DeadLetter]:
        """The newest dead letters first, or those of these ids."""
        if ids:
            ids = [one for one in ids if re.fullmatch(r"\d{1,19}-\d{1,19}", one)]
            entries = [entry for one in ids for entry in await self.redis.xrange(self._key("dead"), one, one)]
        else:
            entries = await self.redis.xrevrange(self._key("dead"), count=count)
        return [
            DeadLetter(
                id=at.decode(),
                job=entry[b"job"].decode(),
                row=int(entry[b"row"]),
                kind=entry[b"kind"].decode(),
                recipe=entry[b"recipe"].decode(),
                rollout=entry[b"rollout"],
                verdict=decode_verdict(orjson.loads(entry[b"verdict"])),
                time=float(entry[b"time"]),
            )
            for at, entry in entries
        ]

    async def drop_dead_letters(self, ids: Sequence[str]) -> int:
        """Forget these; how many there were."""
        return int(await self.redis.xdel(self._key("dead"), *ids)) if ids else 0

    # -- what is going on ---------------------------------------------------------------------------------------------

    async def depths(self) -> Depths:
        """What waits, from the ledger: prefetched and prioritised messages of a broker cannot hide any of it."""
        kinds, leased, open_groups, jobs, dead = await self._call("depths")
        waiting = {kind.decode(): Depth(int(batches), float(age)) for kind, batches, age in kinds}
        return Depths(dict(sorted(waiting.items())), leased, open_groups, jobs, dead)

    async def workers(self) -> dict[str, dict[str, Any]]:
        """What each living worker says of itself."""
        found = await self.redis.hgetall(self._key("workers"))
        return {worker.decode(): orjson.loads(about) for worker, about in sorted(found.items())}

    async def ping(self) -> None:
        """Raise a Redis error when it does not answer."""
        await self.redis.ping()

    async def close(self) -> None:
        """Give the connections back."""
        await self.redis.aclose()

    def _key(self, *parts: str) -> str:
        return self.prefix + ":".join(parts)

    async def _call(self, operation: str, *args: Any) -> Any:
        return await self._script(keys=[self.prefix], args=[operation, *args])


def _batch(found: list[Any]) -> Batch:
    batch, kind, recipe, members, units, payload, losses, left_s, trace = found
    return Batch(
        id=batch.decode(),
        kind=kind.decode(),
        recipe=recipe.decode(),
        members=[(job, row) for job, row in orjson.loads(members)],
        units=orjson.loads(units),
        payload=payload,
        losses=int(losses),
        left_s=float(left_s),
        trace=(trace or b"").decode(),
    )


def _halves(batch: Batch) -> list[Any]:
    """Name, members, units and payload of each half. Units stay whole."""
    rollouts, middle = batch.rollouts, len(batch.units) // 2
    at = sum(batch.units[:middle])
    args: list[Any] = []
    for number, (units, start, stop) in enumerate(
        ((batch.units[:middle], 0, at), (batch.units[middle:], at, len(rollouts)))
    ):
        members = orjson.dumps(batch.members[start:stop])
        args += (f"{batch.id}{number}", members, orjson.dumps(units), encode_rollouts(rollouts[start:stop])[0])
    return args


def job_id(key: str, owner: str = "") -> str:
    """The job of an idempotency key: the same at every try, and different for every owner."""
    return hashlib.blake2b(f"{len(owner)}:{owner}{key}".encode(), digest_size=16).hexdigest()
