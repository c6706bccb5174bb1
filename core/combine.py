"""One verdict from the verdicts of several parts: pure rules, no scorer is called here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from .reasons import Reason
from .recipe import Follow, Part, Route
from .verdict import Outcome, Verdict, ungraded


def combine(step: Route | Follow, verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict of a step whose parts gave `verdicts`, in their order.

    * A required part (and every gate) that is ungraded makes the whole ungraded, for the reason of that part.
    * A gate whose reward is below its threshold makes the reward 0.
    * The reward is the weighted mean of the other parts; an optional ungraded part leaves it together with its weight,
      because counting it as 0 would invent a reward. Then `scale` and `offset` are applied, to every graded outcome.
    * One part alone keeps its own outcome, reason and evidence; several keep a reason that all of them share.
    """
    if len(step.parts) == 1:
        return _scaled(step, verdicts[0])
    components = {part.label: verdict.reward for part, verdict in zip(step.parts, verdicts, strict=True)}
    evidence = {p.label: dict(v.evidence) for p, v in zip(step.parts, verdicts, strict=True) if v.evidence is not None}
    weighed: list[tuple[Part, Verdict]] = []
    closed: list[str] = []
    for part, verdict in zip(step.parts, verdicts, strict=True):
        if verdict.reward is None:
            if part.required or part.gate is not None:
                why = f"part {part.label!r} is ungraded ({verdict.reason}): {verdict.explanation}"
                return ungraded(verdict.reason or Reason.SCORER_ERROR, why, components=components, evidence=evidence)
        elif part.gate is None:
            weighed.append((part, verdict))
        elif verdict.reward < part.gate:
            closed.append(part.label)
    if not weighed:
        why = f"no part of the recipe is graded: {verdicts[0].explanation}"
        return ungraded(verdicts[0].reason or Reason.SCORER_ERROR, why, components=components, evidence=evidence)
    reasons = {verdict.reason for _, verdict in weighed}
    reason = reasons.pop() if len(reasons) == 1 else None
    if closed:
        reason = None
        reward, outcome, explanation = 0.0, Outcome.INCORRECT, f"stopped at the gate {', '.join(map(repr, closed))}"
    else:
        total = sum(part.weight for part, _ in weighed)
        reward = sum(part.weight * verdict.reward for part, verdict in weighed if verdict.reward is not None) / total
        outcome, explanation = _outcome([verdict.outcome for _, verdict in weighed]), ""
    if not math.isfinite(reward):
        return _overflow(reward)
    whole = Verdict(outcome, reward, reason, explanation, components=components, evidence=evidence or None)
    return _scaled(step, whole)


def with_earlier(verdict: Verdict, earlier: Mapping[str, Verdict]) -> Verdict:
    """The verdict of a follow-up with what earlier parts said: their rewards as components, the rest as evidence."""
    components = {label: before.reward for label, before in earlier.items()} | dict(verdict.components or {})
    said = {
        label: {"outcome": before.outcome.value, "reason": before.reason, "evidence": before.evidence}
        for label, before in earlier.items()
    }
    return replace(verdict, components=components, evidence={**(verdict.evidence or {}), "earlier": said})


def _outcome(outcomes: Sequence[Outcome]) -> Outcome:
    kinds = set(outcomes)
    if len(kinds) == 1:
        return kinds.pop()
    if Outcome.SCORED in kinds:
        return Outcome.SCORED
    if kinds <= {Outcome.INCORRECT, Outcome.NO_ANSWER}:
        return Outcome.INCORRECT
    return Outcome.PARTIAL


def _scaled(step: Route | Follow, verdict: Verdict) -> Verdict:
    if verdict.reward is None or (step.scale == 1.0 and step.offset == 0.0):
        return verdict
    reward = verdict.reward * step.scale + step.offset
    return verdict.with_reward(reward) if math.isfinite(reward) else _overflow(reward)


def _overflow(reward: float) -> Verdict:
    return ungraded(Reason.SCORER_ERROR, f"weights and scale make the reward {reward}, which is no finite number")
