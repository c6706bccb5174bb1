"""The client of a trainer, for code that runs on no event loop: a notebook, a training loop, a reward function."""

from __future__ import annotations

import concurrent.futures
import os
import threading
import weakref
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any, Self

from ..core.errors import ServiceError
from ..core.verdict import Verdict
from ..core.wire import Priority
from .async_client import AsyncRewardClient
from .job import Job
from .loop import LoopThread
from .pending import Pending
from .policy import OnUngraded
from .reading import Rollouts
from .target import Target, can_remake

_lock = threading.Lock()
"""Held while a client is made anew after a fork."""

_inherited: list[Any] = []
"""What a forked process got from its parent. Closing or collecting it here would disturb the parent's connections."""


def _after_fork() -> None:
    global _lock  # noqa: PLW0603 - another thread of the parent may have held it
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


class _Session:
    """A client on its own loop, in the process that made it."""

    def __init__(self, target: Target, options: dict[str, Any]) -> None:
        self.pid = os.getpid()
        self.loop = LoopThread("rewarden-client")
        try:
            self.client = self.loop.run(_made(target, options))
        except BaseException:
            self.loop.close(_nothing())
            raise

    def close(self) -> None:
        if os.getpid() == self.pid:
            self.loop.close(self.client.close())


class RewardClient:
    """AsyncRewardClient for any thread, with or without a running event loop; the arguments are the same.

    It works on a thread of its own. A forked process that uses it gets its own connections, unless the target is an
    object (Engine, Engines, Transport), which only the process that made it can use. Close it, or use it in a `with`
    block.
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
        self._target = target
        self._options = {
            "recipe": recipe,
            "api_key": api_key,
            "batch_size": batch_size,
            "max_in_flight": max_in_flight,
            "timeout_s": timeout_s,
            "retries": retries,
            "retry_for_s": retry_for_s,
            "on_ungraded": on_ungraded,
            "max_ungraded": max_ungraded,
            "priority": priority,
        }
        self._open()

    def _open(self) -> None:
        self._session = _Session(self._target, self._options)
        self._finalizer = weakref.finalize(self, self._session.close)

    def _ready(self) -> _Session:
        if self._session.pid != os.getpid():
            with _lock:
                if self._session.pid != os.getpid():
                    if not can_remake(self._target):
                        raise ServiceError(
                            f"this client was made before a fork, and its {type(self._target).__name__} is the "
                            "parent's; make a client in this process"
                        )
                    _inherited.append(self._session)
                    self._open()
        return self._session

    @property
    def recipe(self) -> str:
        """The recipe that it asks for."""
        return self._session.client.recipe

    # -- scores -------------------------------------------------------------------------------------------------------

    def score(self, rollouts: Rollouts) -> list[Verdict]:
        """One verdict for each rollout, in order; a row that is no rollout is `ungraded: bad_rollout`.

        Raises what no other try can cure (a refused key, an unknown recipe, another version than the pinned one), and
        UngradedError where `on_ungraded` or `max_ungraded` says so.
        """
        session = self._ready()
        return session.loop.run(session.client.score(rollouts))

    def rewards(self, rollouts: Rollouts) -> list[float | None]:
        """The reward of each rollout, in order; None where there is none, unless `on_ungraded` is a number."""
        session = self._ready()
        return session.loop.run(session.client.rewards(rollouts))

    def reward(self, verdict: Verdict) -> float | None:
        """The reward of a verdict, or what `on_ungraded` puts in its place."""
        return self._session.client.reward(verdict)

    # -- in the background --------------------------------------------------------------------------------------------

    def submit(self, rollouts: Rollouts) -> Pending:
        """Begin to score these, and go on at once. `max_in_flight` bounds the requests of everything submitted."""
        session = self._ready()
        given = list(rollouts)
        return Pending(given, session.loop.start(session.client.score(given)))

    def gather(self, pendings: Iterable[Pending]) -> list[list[Verdict]]:
        """The verdicts of each, in the order given."""
        return [pending.result() for pending in list(pendings)]

    def as_completed(self, pendings: Iterable[Pending]) -> Iterator[Pending]:
        """Each as it is done; its `result` then returns, or raises what went wrong, at once."""
        waiting = {pending.future: pending for pending in pendings}
        for future in concurrent.futures.as_completed(waiting):
            yield waiting[future]

    # -- jobs ---------------------------------------------------------------------------------------------------------

    def start_job(
        self,
        rollouts: Rollouts,
        *,
        key: str | None = None,
        timeout_s: float | None = None,
        group_wait_s: float | None = None,
    ) -> Job:
        """Start a job, which goes on without this process; `attach` finds it again by its id.

        `key`: the same key is the same job, so that a trainer that crashed here may start it again. `timeout_s`: for
        the whole job. `group_wait_s`: how long groups wait for members from other jobs. The priority is the client's.

        A row that is no rollout is `ungraded: bad_rollout`, and the others are graded.
        """
        session = self._ready()
        work = session.client.start_job(rollouts, key=key, timeout_s=timeout_s, group_wait_s=group_wait_s)
        return Job(session.loop.run(work), session.loop, self)

    def attach(self, job_id: str) -> Job:
        """The job of that id, whoever started it."""
        session = self._ready()
        return Job(session.client.attach(job_id), session.loop, self)

    # -- the rest -----------------------------------------------------------------------------------------------------

    def offers(self) -> dict[str, str]:
        """The recipes on offer at the target, each with the version that `name@version` pins."""
        session = self._ready()
        return session.loop.run(session.client.offers())

    def close(self) -> None:
        """Cancel what was submitted, and give back connections, workers and the thread."""
        self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


async def _made(target: Target, options: dict[str, Any]) -> AsyncRewardClient:
    return AsyncRewardClient(target, **options)


async def _nothing() -> None:
    return None
