"""Rollouts over the queue: jobs are written into the ledger, and their verdicts read from it."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from typing import TypeVar

from ...core.catalog import Catalog
from ...core.errors import ServiceError
from ...core.rollout import Rollout
from ...core.verdict import Verdict
from ...core.wire import Item, with_faults
from ..transport import Arrival, BusyError, JobStatus, Request, UnknownJobError
from .batches import Cut, cut
from .broker import Waker
from .connection import connect, redacted
from .ledger import KEEP_S, Ledger, NewJob, job_id

Answer = TypeVar("Answer")


class KeyConflictError(ServiceError):
    """An idempotency key was used for another request."""


class QueueTransport:
    """Grades through the workers on the Redis at `url`.

    `catalog` says which recipes there are and what kind of work each is; it must be that of the workers. `owner` keeps
    the jobs of one user from another. `keep_s`: how long verdicts can be read once a job is done.
    """

    def __init__(
        self,
        url: str,
        *,
        catalog: Catalog | None = None,
        owner: str = "",
        keep_s: float = KEEP_S,
        prefix: str = "rw:",
    ) -> None:
        self.catalog = catalog or Catalog()
        self.ledger = Ledger(connect(url), prefix=prefix)
        self._waker = Waker(url, prefix=prefix)
        self._owner = owner
        self._keep_s = keep_s
        self._where = redacted(url)

    async def score(self, request: Request) -> list[Verdict]:
        """One verdict for each rollout, in order. Asked again with the same key, it goes on where it was."""
        verdicts: list[Verdict | None] = [None] * len(request.rollouts)
        while True:
            try:
                job = await self.start(request)
                async for arrival in self.follow(job):
                    verdicts[arrival.row] = arrival.verdict
            except UnknownJobError:
                continue  # a Redis without persistence was restarted: what it forgot is sent again
            whole = [verdict for verdict in verdicts if verdict is not None]
            if len(whole) != len(verdicts):
                raise BusyError(f"{len(verdicts) - len(whole)} verdicts of job {job} are missing; read them again")
            return whole

    async def start(self, request: Request, faults: Mapping[int, str] | None = None) -> str:
        return (await self.submit(self.new_job(request, with_faults(request.rollouts, faults)))).id

    def new_job(
        self, request: Request, items: Sequence[Item], *, digest: str = "", trace: str = "", owner: str | None = None
    ) -> NewJob:
        """The job that a request is, where items may be no rollouts; these get their verdict at once.

        `digest` says which requests are the same; made of the rollouts when empty. `owner`: of this job.
        """
        owner = self._owner if owner is None else owner
        parts = cut(self.catalog, request.recipe, items, group_wait_s=request.group_wait_s)
        return NewJob(
            id=job_id(request.key, owner),
            recipe=request.recipe,
            total=len(items),
            cut=parts,
            ids=[item.id if isinstance(item, Rollout) else "" for item in items],
            digest=digest or _digest(request.recipe, parts),
            priority=request.priority,
            timeout_s=request.timeout_s,
            owner=owner,
            trace=trace,
            keep_s=self._keep_s,
        )

    async def submit(self, job: NewJob) -> NewJob:
        """Write a job into the ledger, unless it is there, and wake the workers.

        Raises KeyConflictError when its key was used for another request.
        """
        new, before = await self._reached(self.ledger.create(job))
        if before != job.digest:
            raise KeyConflictError(f"the key of job {job.id} was used for another request; use a new key for each")
        if new:
            await self._waker.wake(Counter(batch.kind for batch in job.cut.batches))
        return job

    async def follow(self, job: str, cursor: int = 0) -> AsyncIterator[Arrival]:
        await self._mine(job)
        from redis.exceptions import RedisError

        try:
            async for arrival in self.ledger.follow(job, cursor):
                yield arrival
        except (RedisError, OSError) as error:
            raise self._away(error) from error

    async def status(self, job: str) -> JobStatus:
        return await self._mine(job)

    async def cancel(self, job: str) -> JobStatus:
        await self._mine(job)
        return await self._reached(self.ledger.cancel(job))

    async def offers(self) -> dict[str, str]:
        return {name: self.catalog.version(name) for name in self.catalog.names()}

    async def close(self) -> None:
        self._waker.close()
        await self.ledger.close()

    async def status_for(self, job: str, owner: str) -> JobStatus:
        """`status` for the jobs of one owner. Raises UnknownJobError for those of others."""
        return await self._reached(self.ledger.status(job, owner))

    async def _mine(self, job: str) -> JobStatus:
        return await self._reached(self.ledger.status(job, self._owner or None))

    async def _reached(self, call: Awaitable[Answer]) -> Answer:
        """What Redis answers; BusyError when it does not."""
        from redis.exceptions import RedisError

        try:
            return await call
        except (RedisError, OSError) as error:
            raise self._away(error) from error

    def _away(self, error: BaseException) -> BusyError:
        return BusyError(f"the queue at {self._where} does not answer: {type(error).__name__}: {error}")


def _digest(recipe: str, parts: Cut) -> str:
    text = hashlib.blake2b(recipe.encode(), digest_size=16)
    for payload in [*(batch.payload for batch in parts.batches), *(one.payload for one in parts.waiting)]:
        text.update(payload)
    return text.hexdigest()
