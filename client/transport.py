"""The one interface behind the client: how rollouts reach whoever grades them.

There are three: in this process, over HTTP, and over the queue. A gateway uses the same ones to reach its peers.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ..core.errors import ServiceError
from ..core.rollout import Rollout
from ..core.verdict import Verdict
from ..core.wire import Priority


@dataclass(frozen=True, slots=True)
class Request:
    """Rollouts to grade, and how."""

    recipe: str
    """A name, or `name@version` to be refused when another version is there."""
    rollouts: Sequence[Rollout]
    key: str
    """Idempotency key: the same at every try, so that no try can count twice."""
    priority: Priority = "training"
    timeout_s: float | None = None
    """Seconds until what is not graded comes back as `ungraded: deadline`."""
    group_wait_s: float | None = None
    """Jobs only: how long a group that is not whole in this job waits for members from other jobs."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A verdict of a job, as it arrives."""

    cursor: int
    """How many verdicts of the job have arrived with this one: where to go on after a break."""
    row: int
    """Place of its rollout in the job."""
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class JobStatus:
    """Where a job stands. `done` of its `total` rollouts have a verdict; `outcomes` counts them."""

    id: str
    state: str
    """`running`, `done` or `cancelled`."""
    recipe: str
    total: int
    done: int
    outcomes: dict[str, int]
    created: float
    """Seconds since 1970."""
    deadline: float | None = None
    """Seconds since 1970."""


class BusyError(ServiceError):
    """Nothing was graded and another try may succeed: full, draining, unreachable. `retry_after` is in seconds."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.retry_after)


class TooLargeError(ServiceError):
    """The request is larger than is taken at once; in parts it would be."""


class UnknownJobError(ServiceError, LookupError):
    """No job of that id: never started, or its results have expired."""


class Transport(Protocol):
    """How rollouts reach whoever grades them.

    Methods raise BusyError for what another try may cure, and another RewardenError for what it will not: a key that
    is refused, a recipe that is not on offer (UnknownScorerError), a pinned version that is not there (PinError).
    """

    async def score(self, request: Request) -> list[Verdict]:
        """One verdict for each rollout, in order."""
        ...

    async def start(self, request: Request, faults: Mapping[int, str] | None = None) -> str:
        """Start a job, which outlives this process, and return its id. Starting it again with its key is harmless.

        `faults`: rows of the job that are no rollouts, with why; they are `ungraded: bad_rollout`, and the rollouts of
        the request have the other rows. Raises ServiceError where there is no queue.
        """
        ...

    def follow(self, job: str, cursor: int = 0) -> AsyncIterator[Arrival]:
        """The verdicts of a job after the first `cursor`, as they arrive, until it is complete.

        Ends only when every rollout has its verdict. Raises UnknownJobError, or BusyError when the connection breaks;
        then go on with the last cursor.
        """
        ...

    async def status(self, job: str) -> JobStatus:
        """Where a job stands. Raises UnknownJobError."""
        ...

    async def cancel(self, job: str) -> JobStatus:
        """What has no verdict yet becomes `ungraded: cancelled`. Raises UnknownJobError."""
        ...

    async def offers(self) -> dict[str, str]:
        """The recipes on offer there, with the version that `name@version` pins."""
        ...

    async def close(self) -> None:
        """Give back connections and workers."""
        ...
