"""A durable job, as its owner sees it: verdicts as they arrive, and a place to go on from after any break."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from ..core.errors import ServiceError
from ..core.verdict import Verdict
from .backoff import Backoff
from .transport import Arrival, BusyError, JobStatus, Transport

if TYPE_CHECKING:
    from .loop import LoopThread

Result = TypeVar("Result")


async def insist(action: Callable[[], Awaitable[Result]], backoff: Backoff) -> Result:
    """What `action` gives, tried again while it raises BusyError and `backoff` allows."""
    tries = 0
    while True:
        tries += 1
        try:
            return await action()
        except BusyError as error:
            wait = backoff.wait_s(error.retry_after)
            if wait is None:
                raise BusyError(f"given up after {tries} tries: {error}", error.retry_after) from error
        await asyncio.sleep(wait)


class AsyncJob:
    """A job by its id. Verdicts come as they are: `on_ungraded` is about scores, not about jobs."""

    def __init__(
        self,
        id: str,
        transport: Transport,
        *,
        total: int | None,
        backoff: Callable[[], Backoff],
        watch: Callable[[Sequence[Verdict]], None],
    ) -> None:
        self.id = id
        self._transport = transport
        self._total = total
        self._backoff = backoff
        self._watch = watch

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r})"

    async def verdicts(self, cursor: int = 0) -> AsyncGenerator[Arrival]:
        """The verdicts after the first `cursor`, each once, as they arrive, until every rollout has one.

        A connection that breaks is made again, and goes on where it was. Raises BusyError when the tries are used up
        without a new verdict: go on later with the `cursor` of the last arrival.
        """
        backoff = self._backoff()
        while True:
            stream = self._transport.follow(self.id, cursor)
            try:
                async for arrival in stream:
                    if arrival.cursor <= cursor:
                        continue
                    if arrival.cursor != cursor + 1:
                        raise BusyError(f"verdicts {cursor + 1} to {arrival.cursor - 1} are missing in the stream")
                    cursor = arrival.cursor
                    backoff.start_again()
                    self._watch([arrival.verdict])
                    yield arrival
                return
            except BusyError as error:
                wait = backoff.wait_s(error.retry_after)
                if wait is None:
                    raise BusyError(f"the job {self.id} cannot be followed past cursor {cursor}: {error}") from error
            finally:
                if isinstance(stream, AsyncGenerator):
                    await stream.aclose()
            await asyncio.sleep(wait)

    async def result(self) -> list[Verdict]:
        """One verdict for each rollout, in order, when all are there."""
        found: dict[int, Verdict] = {}
        async for arrival in self.verdicts():
            if arrival.row in found:
                raise ServiceError(f"the job {self.id} has two verdicts for row {arrival.row}; trust neither")
            found[arrival.row] = arrival.verdict
        total = (await self.status()).total if self._total is None else self._total
        if found.keys() != set(range(total)):
            raise ServiceError(
                f"the job {self.id} ended with {len(found)} verdicts for {total} rollouts; start another"
            )
        return [found[row] for row in range(total)]

    async def status(self) -> JobStatus:
        """Where it stands. Raises UnknownJobError once its results have expired."""
        return await insist(lambda: self._transport.status(self.id), self._backoff())

    async def cancel(self) -> JobStatus:
        """What has no verdict yet becomes `ungraded: cancelled`."""
        return await insist(lambda: self._transport.cancel(self.id), self._backoff())


class Job:
    """A job by its id, for code that runs on no event loop. The methods are those of AsyncJob."""

    def __init__(self, job: AsyncJob, loop: LoopThread, client: object) -> None:
        self.id = job.id
        self._client = client  # which closes its connections when nobody holds it
        self._job = job
        self._loop = loop

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r})"

    def verdicts(self, cursor: int = 0) -> Iterator[Arrival]:
        """The verdicts after the first `cursor`, each once, as they arrive, until every rollout has one."""
        return self._loop.iterate(self._job.verdicts(cursor))

    def result(self) -> list[Verdict]:
        """One verdict for each rollout, in order, when all are there."""
        return self._loop.run(self._job.result())

    def status(self) -> JobStatus:
        """Where it stands. Raises UnknownJobError once its results have expired."""
        return self._loop.run(self._job.status())

    def cancel(self) -> JobStatus:
        """What has no verdict yet becomes `ungraded: cancelled`."""
        return self._loop.run(self._job.cancel())
