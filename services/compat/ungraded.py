"""What becomes of rollouts that could not be graded, where a trainer takes nothing but a number.

A reward is never made up. The call fails, and says why; or the user has stated the value in the URL.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...core.reasons import RETRYABLE_REASONS, Reason
from ...core.verdict import Verdict
from ..problems import Problem

RETRY_AFTER_S = 2
"""Long enough for a killed worker to be there again."""

_SHOWN = 240

_REMEDIES: dict[Reason | None, str] = {
    Reason.BAD_REFERENCE: "correct the reference, or choose a recipe that takes it with ?recipe=NAME",
    Reason.NO_ROUTE: "choose a recipe that takes this reference with ?recipe=NAME",
    Reason.NO_CONSENSUS: "give a reference, or choose a recipe that needs none with ?recipe=NAME",
    Reason.INCOMPLETE_GROUP: "this shape has no groups: choose another recipe with ?recipe=NAME",
    Reason.SCORER_ERROR: "the log of the service has more",
}


def numbers(verdicts: Sequence[Verdict], value: float | None, pointer: str) -> list[float]:
    """The reward of each verdict, and `value` for each that has none.

    Without a `value`, an ungraded verdict raises a Problem: 503 when another try may cure every one, else 422.
    `pointer`: JSON pointer to what a verdict is about; `*` in it stands for the row.
    """
    rewards = [verdict.reward if verdict.reward is not None else value for verdict in verdicts]
    found = [reward for reward in rewards if reward is not None]
    if len(found) == len(rewards):
        return found
    raise problem_of(verdicts, pointer)


def problem_of(verdicts: Sequence[Verdict], pointer: str) -> Problem:
    """Why the ungraded ones among the verdicts are ungraded, and what to do."""
    bad = {pointer.replace("*", str(row)): verdict for row, verdict in enumerate(verdicts) if not verdict.graded}
    faults = [(place, _words(verdict)) for place, verdict in bad.items()]
    lasting = [place for place, verdict in bad.items() if verdict.reason not in RETRYABLE_REASONS]
    place = lasting[0] if lasting else faults[0][0]
    detail = f"{len(bad)} of {len(verdicts)} could not be graded; at {place}: {_words(bad[place])}"
    if (remedy := _REMEDIES.get(bad[place].reason)) is not None:
        detail += f"; {remedy}"
    detail += "; or state the value that an ungraded rollout gets with ?ungraded=NUMBER"
    if lasting:
        return Problem("ungraded", detail, faults=faults)
    return Problem("ungraded_for_now", detail, faults=faults, headers={"Retry-After": str(RETRY_AFTER_S)})


def _words(verdict: Verdict) -> str:
    return f"{verdict.reason}: {verdict.explanation[:_SHOWN]}"
