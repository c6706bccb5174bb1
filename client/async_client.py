"""The client of a trainer, for code on an event loop. `reward_client.py` is the same for code that is on none."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Coroutine, Iterable, Sequence
from types import TracebackType
from typing import Any, Self, get_args
from uuid import uuid4

from ..core.errors import RolloutError, ServiceError
from ..core.reasons import Reason
from ..core.rollout import Rollout
from ..core.verdict import Verdict, ungraded
from ..core.wire import Priority, bad_rollout
from . import policy
from .backoff import Backoff
from .batches import batches, groups
from .breaker import Breaker
from .job import AsyncJob, insist
from .pending import AsyncPending
from .policy import OnUngraded
from .reading import Rollouts, fault, read
from .target import Target, connect
from .transport import BusyError, Request, TooLargeError


class AsyncRewardClient:
    """Asks `target` for verdicts in batches, several at once, and tries again what may succeed later.

    `target`: where the graders are. `None` or `"local"`, a recipe file, an Engine or Engines: in this process;
    `"http://..."`: a service; `"redis://..."`: workers behind that queue; or a Transport.

    `recipe`: a name on offer there, or `name@version` to be refused where another version is. `auto`, or the target's
    own, when None.
    `api_key`: that of REWARDEN_API_KEY when None.
    `batch_size`: rollouts in a request; groups are never cut, so that a large one makes a larger request.
    `max_in_flight`: requests under way at once.
    `timeout_s`: seconds for each request, after which what is not graded is `ungraded: deadline`.
    `retries`, `retry_for_s`: how often, and for how many seconds from the first try, a request is tried again that the
    backend could not answer. After that its rollouts are `ungraded: backend_unavailable`.
    `on_ungraded`: `mask`, `retry`, `raise`, `drop_group`, or a number that `rewards` gives in place of None.
    `max_ungraded`: the share of the last verdicts that may be ungraded; UngradedError stops a run that has more.
    `priority`: `interactive`, `training` or `bulk`, where the backend has a queue.

    Belongs to one event loop. Close it, or use it in an `async with` block.
    """

    def __init__(
        self,
        target: Target = None,
        *,
        recipe: str | None = None,
        api_key: str | None = None,
        batch_size: int = 256,
        max_in_flight: int = 8,
        timeout_s: float = 300.0,
        retries: int = 10,
        retry_for_s: float = 900.0,
        on_ungraded: OnUngraded = "mask",
        max_ungraded: float | None = None,
        priority: Priority = "training",
    ) -> None:
        for name, number, least in (
            ("batch_size", batch_size, 1),
            ("max_in_flight", max_in_flight, 1),
            ("retries", retries, 0),
        ):
            if number < least:
                raise ValueError(f"{name}={number}: at least {least} is needed")
        if not 0 < timeout_s <= 86_400:
            raise ValueError(f"timeout_s={timeout_s}: give more than 0 and at most 86400 seconds")
        if max_ungraded is not None and not 0 <= max_ungraded <= 1:
            raise ValueError(f"max_ungraded={max_ungraded}: a share is between 0 and 1")
        if priority not in get_args(Priority):
            raise ValueError(f"priority={priority!r}: give one of {', '.join(get_args(Priority))}")
        self.on_ungraded = policy.checked(on_ungraded)
        self._transport, own = connect(target, api_key or os.environ.get("REWARDEN_API_KEY") or None)
        self.recipe = own if recipe is None else recipe
        self._batch_size = batch_size
        self._slots = asyncio.Semaphore(max_in_flight)
        self._timeout_s = timeout_s
        self._retries = retries
        self._retry_for_s = retry_for_s
        self._breaker = None if max_ungraded is None else Breaker(max_ungraded)
        self._priority = priority
        self._pid = os.getpid()
        self._pending: set[asyncio.Task[list[Verdict]]] = set()

    # -- scores -------------------------------------------------------------------------------------------------------

    async def score(self, rollouts: Rollouts) -> list[Verdict]:
        """One verdict for each rollout, in order; a row that is no rollout is `ungraded: bad_rollout`.

        Raises what no other try can cure (a refused key, an unknown recipe, another version than the pinned one), and
        UngradedError where `on_ungraded` or `max_ungraded` says so.
        """
        self._check()
        known, verdicts = read(rollouts)
        self._watch(list(verdicts.values()))
        parts = batches(known, self._batch_size)
        graded_parts = await _all(self._batch([known[row] for row in rows]) for rows in parts)
        for rows, graded in zip(parts, graded_parts, strict=True):
            verdicts.update(zip(rows, graded, strict=True))
        found = [verdicts[row] for row in range(len(verdicts))]
        if self.on_ungraded == "drop_group":
            found = policy.drop_groups(known, found)
        elif self.on_ungraded == "raise":
            policy.refuse(found)
        return found

    async def rewards(self, rollouts: Rollouts) -> list[float | None]:
        """The reward of each rollout, in order; None where there is none, unless `on_ungraded` is a number."""
        return [self.reward(verdict) for verdict in await self.score(rollouts)]

    def reward(self, verdict: Verdict) -> float | None:
        """The reward of a verdict, or what `on_ungraded` puts in its place."""
        return policy.to_reward(verdict, self.on_ungraded)

    # -- in the background --------------------------------------------------------------------------------------------

    def submit(self, rollouts: Rollouts) -> AsyncPending:
        """Begin to score these, and go on at once. `max_in_flight` bounds the requests of everything submitted."""
        self._check()
        given = list(rollouts)
        task = asyncio.get_running_loop().create_task(self.score(given))
        self._pending.add(task)
        task.add_done_callback(self._pending.discard)
        return AsyncPending(given, task)

    async def gather(self, pendings: Iterable[AsyncPending]) -> list[list[Verdict]]:
        """The verdicts of each, in the order given."""
        return [await pending for pending in list(pendings)]

    async def as_completed(self, pendings: Iterable[AsyncPending]) -> AsyncIterator[AsyncPending]:
        """Each as it is done; awaiting it then gives its verdicts, or raises what went wrong, at once."""
        waiting = {pending.task: pending for pending in pendings}
        while waiting:
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                yield waiting.pop(task)

    # -- jobs ---------------------------------------------------------------------------------------------------------

    async def start_job(
        self,
        rollouts: Rollouts,
        *,
        key: str | None = None,
        timeout_s: float | None = None,
        group_wait_s: float | None = None,
    ) -> AsyncJob:
        """Start a job, which goes on without this process; `attach` finds it again by its id.

        `key`: the same key is the same job, so that a trainer that crashed here may start it again. `timeout_s`: for
        the whole job. `group_wait_s`: how long groups wait for members from other jobs. The priority is the client's.

        A row that is no rollout is `ungraded: bad_rollout`, and the others are graded.
        """
        self._check()
        known, bad = read(rollouts)
        if not known and not bad:
            raise RolloutError("a job needs at least one rollout")
        request = Request(
            recipe=self.recipe,
            rollouts=list(known.values()),
            key=key or uuid4().hex,
            priority=self._priority,
            timeout_s=timeout_s,
            group_wait_s=group_wait_s,
        )
        faults = {row: verdict.explanation for row, verdict in bad.items()}
        job = await insist(lambda: self._transport.start(request, faults), self._backoff())
        return self._job(job, len(known) + len(bad))

    def attach(self, job_id: str) -> AsyncJob:
        """The job of that id, whoever started it."""
        self._check()
        return self._job(job_id, None)

    def _job(self, id: str, total: int | None) -> AsyncJob:
        return AsyncJob(id, self._transport, total=total, backoff=self._backoff, watch=self._watch)

    # -- one request --------------------------------------------------------------------------------------------------

    async def _batch(self, rollouts: Sequence[Rollout]) -> list[Verdict]:
        async with self._slots:
            backoff = self._backoff()
            verdicts = await self._ask(rollouts, backoff)
            if self.on_ungraded == "retry":
                verdicts = await self._cure(rollouts, verdicts, backoff)
        self._watch(verdicts)
        return verdicts

    async def _ask(self, rollouts: Sequence[Rollout], backoff: Backoff) -> list[Verdict]:
        """One verdict for each, whatever the backend does."""
        request = Request(
            recipe=self.recipe,
            rollouts=rollouts,
            key=uuid4().hex,
            priority=self._priority,
            timeout_s=self._timeout_s,
        )

        async def one_try() -> list[Verdict]:
            verdicts = await self._transport.score(request)
            why = fault(rollouts, verdicts)
            if why is not None:
                raise BusyError(f"the answer cannot be right: {why}")
            return verdicts

        try:
            return await insist(one_try, backoff)
        except TooLargeError as error:
            return await self._in_parts(rollouts, backoff, error)
        except BusyError as error:
            return [ungraded(Reason.BACKEND_UNAVAILABLE, str(error)[:500], id=rollout.id) for rollout in rollouts]

    async def _in_parts(self, rollouts: Sequence[Rollout], backoff: Backoff, error: TooLargeError) -> list[Verdict]:
        """Halves of what is too large for one request, as long as no group is cut."""
        known = dict(enumerate(rollouts))
        parts = batches(known, max(1, len(rollouts) // 2))
        if len(parts) == 1:
            why = f"this rollout, with its group, is more than the service takes in one request: {error}"
            return [bad_rollout(why, rollout.id) for rollout in rollouts]
        verdicts: dict[int, Verdict] = {}
        for rows in parts:
            verdicts.update(zip(rows, await self._ask([known[row] for row in rows], backoff), strict=True))
        return [verdicts[row] for row in range(len(rollouts))]

    async def _cure(self, rollouts: Sequence[Rollout], verdicts: list[Verdict], backoff: Backoff) -> list[Verdict]:
        """Ask again for those that another try may cure, with their whole groups, whose verdicts are taken together."""
        while True:
            again = _curable(rollouts, verdicts)
            wait = backoff.wait_s() if again else None
            if wait is None:
                return verdicts
            await asyncio.sleep(wait)
            rows = [row for unit in again for row in unit]
            fresh = dict(zip(rows, await self._ask([rollouts[row] for row in rows], backoff), strict=True))
            for unit in again:
                if sum(fresh[row].graded for row in unit) > sum(verdicts[row].graded for row in unit):
                    for row in unit:
                        verdicts[row] = fresh[row]

    def _backoff(self) -> Backoff:
        return Backoff(self._retries, self._retry_for_s)

    def _watch(self, verdicts: Sequence[Verdict]) -> None:
        if self._breaker is not None:
            self._breaker.add(verdicts)

    # -- the rest -----------------------------------------------------------------------------------------------------

    async def offers(self) -> dict[str, str]:
        """The recipes on offer at the target, each with the version that `name@version` pins."""
        self._check()
        return await insist(self._transport.offers, self._backoff())

    def _check(self) -> None:
        if os.getpid() != self._pid:
            raise ServiceError(
                "this client was made before a fork, and its connections are the parent's; make one in this process"
            )

    async def close(self) -> None:
        """Cancel what was submitted, and give back connections and workers."""
        for task in list(self._pending):
            task.cancel()
        await asyncio.gather(*self._pending, return_exceptions=True)
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _curable(rollouts: Sequence[Rollout], verdicts: Sequence[Verdict]) -> list[list[int]]:
    """The rows to ask for again, those of a group together."""
    failed = {row for row, verdict in enumerate(verdicts) if policy.curable(verdict)}
    if not failed:
        return []
    grouped = [rows for rows in groups(dict(enumerate(rollouts))).values() if failed.intersection(rows)]
    return [*grouped, *([row] for row in sorted(failed) if rollouts[row].group_key is None)]


async def _all(work: Iterable[Coroutine[Any, Any, list[Verdict]]]) -> list[list[Verdict]]:
    """The results of coroutines that run together. The first that raises ends the others."""
    tasks = [asyncio.create_task(one) for one in work]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
