"""A scorer without a reference, whose verdict the completion names: all that an endpoint must pass on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rewarden import Reason, Scorer, Verdict, correct, incorrect, no_answer, scored, ungraded


class Named(Scorer):
    """`right`, `wrong`, `silent`, the name of an ungraded reason, or a number."""

    name = "named"
    reads = ("completion",)

    def score(self, rollouts: Sequence[Any], prior: Sequence[Any]) -> list[Verdict]:
        return [_verdict(_text(rollout.completion)) for rollout in rollouts]


def _text(completion: Any) -> str:
    return completion if isinstance(completion, str) else str(completion[-1].content)


def _verdict(said: str) -> Verdict:
    match said:
        case "right":
            return correct(2.0)
        case "wrong":
            return incorrect(reward=-1.0)
        case "silent":
            return no_answer(Reason.EMPTY, reward=-1.0)
        case reason if reason in set(Reason):
            return ungraded(Reason(reason), f"as {reason} asks")
        case _:
            return scored(float(said))
