"""Grading in this process: no service, no queue, and nothing that outlives it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping

from ..core.engine import Engine
from ..core.engines import Engines
from ..core.errors import PinError, ServiceError, UnknownScorerError
from ..core.reasons import Reason
from ..core.verdict import Verdict, ungraded
from .transport import Arrival, JobStatus, Request

_NO_JOBS = (
    "a job outlives the process that started it, so it needs a service with a queue: "
    "start `rewarden serve --queue embedded` and give the client its address"
)


class InProcessTransport:
    """Scores with `engines` (or one engine, whose recipe is then all that is on offer) in a thread.

    `owned`: whether closing this closes them.
    """

    def __init__(self, engines: Engines | Engine, *, owned: bool = False) -> None:
        self._engines = engines
        self._owned = owned

    async def score(self, request: Request) -> list[Verdict]:
        work = asyncio.to_thread(self._score, request)
        try:
            return await asyncio.wait_for(work, request.timeout_s)
        except TimeoutError:
            # The thread goes on until its budgets end it; its verdicts are cached for another try.
            why = f"not graded within {request.timeout_s:g} s; give the client a longer timeout_s, or fewer rollouts"
            return [ungraded(Reason.DEADLINE, why, id=rollout.id) for rollout in request.rollouts]

    def _score(self, request: Request) -> list[Verdict]:
        if isinstance(self._engines, Engines):
            return [graded.verdict for graded in self._engines.score(request.recipe, request.rollouts)]
        name, _, pinned = request.recipe.partition("@")
        ((offered, version),) = _offer(self._engines).items()
        if name != offered:
            raise UnknownScorerError(f"the engine grades with the recipe {offered!r} alone, not with {name[:100]!r}")
        if pinned and pinned != version:
            raise PinError(f"{name!r} is pinned to version {pinned[:100]!r}, but version {version!r} is here")
        return self._engines.score(request.rollouts)

    async def start(self, request: Request, faults: Mapping[int, str] | None = None) -> str:
        raise ServiceError(_NO_JOBS)

    def follow(self, job: str, cursor: int = 0) -> AsyncIterator[Arrival]:
        raise ServiceError(_NO_JOBS)

    async def status(self, job: str) -> JobStatus:
        raise ServiceError(_NO_JOBS)

    async def cancel(self, job: str) -> JobStatus:
        raise ServiceError(_NO_JOBS)

    async def offers(self) -> dict[str, str]:
        if isinstance(self._engines, Engine):
            return _offer(self._engines)
        catalog = self._engines.catalog
        return {name: catalog.version(name) for name in catalog.names()}

    async def close(self) -> None:
        if self._owned:
            self._engines.close()  # not in a thread: none can be started when the interpreter is about to end


def _offer(engine: Engine) -> dict[str, str]:
    """The recipe of an engine and the version that pins it: the scorer's where the recipe is one scorer."""
    recipe, scorers = engine.recipe, engine.scorers
    alone = len(scorers) == 1 and scorers[0].name == recipe.name
    return {recipe.name: scorers[0].version if alone else recipe.version}
