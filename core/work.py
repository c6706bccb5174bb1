"""One unit of work for a scorer, and running it so that every failure stays with its own rollouts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from typing import Any

from .errors import describe
from .pool import Report
from .reasons import Reason
from .rollout import Rollout, View, view_of
from .scorer import Prior, Scorer, Unit
from .verdict import Verdict, ungraded

log = logging.getLogger(__name__)


FAULTS = (Exception, SystemExit, GeneratorExit)
"""What a scorer may raise and keep to its rollouts. A KeyboardInterrupt is the user's, and stops the run."""


class Work:
    """One unit of work for a scorer: the views of one rollout, or of one group, with what came before."""

    __slots__ = ("priors", "views")

    def __init__(self, views: Sequence[View], priors: Sequence[Prior]) -> None:
        self.views = views
        self.priors = priors

    def failed(self, reason: Reason, why: str) -> list[Verdict]:
        """No verdict on any of its rollouts."""
        return [ungraded(reason, why)] * len(self.views)


def views_of(scorer: Scorer, rollouts: Sequence[Rollout]) -> list[View]:
    """The rollouts as this scorer sees them."""
    cls = view_of(scorer.reads)
    take = cls.take
    return [cls(take(rollout)) for rollout in rollouts]


class Scoring:
    """A scorer as the handler of the pool: pickled once for each batch, unpickled and warmed once in each worker.

    It warms as it is unpickled, before the first item's budget begins.
    """

    def __init__(self, scorer: Scorer) -> None:
        self.scorer = scorer

    def __reduce__(self) -> tuple[Any, ...]:
        return _warmed, (self.scorer,)

    def __call__(self, work: Any) -> list[Verdict]:
        views, priors = work
        return checked(self.scorer.score(views, priors), len(views))


def _warmed(scorer: Scorer) -> Scoring:
    scorer.warm()
    return Scoring(scorer)


def checked(verdicts: Any, count: int) -> list[Verdict]:
    """What `score` returned, as a list of `count` verdicts. Raises TypeError in words when it is anything else."""
    if isinstance(verdicts, Awaitable):
        if asyncio.iscoroutine(verdicts):
            verdicts.close()
        raise TypeError("score() is async, so the scorer's resource must be 'io'")
    out = list(verdicts)
    if len(out) != count:
        raise TypeError(f"score() returned {len(out)} verdicts for {count} rollouts")
    for verdict in out:
        if not isinstance(verdict, Verdict):
            raise TypeError(f"score() returned a {type(verdict).__name__} instead of a Verdict")
        try:
            verdict.to_json()
        except TypeError as error:
            raise TypeError(f"a verdict must be made of JSON values: {error}") from None
    return out


def score_together(scorer: Scorer, works: Sequence[Work]) -> list[Verdict]:
    """Single rollouts in one call; one by one when that call fails, so that the failure stays with its row."""
    if len(works) > 1:
        try:
            return checked(scorer.score([w.views[0] for w in works], [w.priors[0] for w in works]), len(works))
        except FAULTS:
            log.debug("%s failed on a batch; scoring its rows one by one", scorer.name, exc_info=True)
    return [score_alone(scorer, work)[0] for work in works]


def score_units(scorer: Scorer, works: Sequence[Work]) -> list[list[Verdict]]:
    """Units of any size in as few calls as its unit allows."""
    if scorer.unit is Unit.ROLLOUT:
        return [[verdict] for verdict in score_together(scorer, works)]
    return [score_alone(scorer, work) for work in works]


def score_alone(scorer: Scorer, work: Work) -> list[Verdict]:
    """One unit; what it raises becomes its verdict."""
    try:
        return checked(scorer.score(work.views, work.priors), len(work.views))
    except FAULTS as error:
        return work.failed(Reason.SCORER_ERROR, raised(error))


def from_report(scorer: Scorer, work: Work, report: Report) -> list[Verdict]:
    """What the pool reports, as verdicts; the scorer decides who is to blame for a fault."""
    if report.fault is None:
        verdicts: list[Verdict] = report.value  # type: ignore[assignment]  # `Scoring` has checked it in the worker
        return verdicts
    try:
        return checked([scorer.on_fault(view, report) for view in work.views], len(work.views))
    except FAULTS as error:
        return work.failed(Reason.SCORER_ERROR, f"on_fault() {raised(error)}")


def raised(error: BaseException) -> str:
    """An exception in one line for a verdict's explanation."""
    return f"raised {describe(error)}"
