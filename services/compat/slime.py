"""slime's remote reward: `--rm-type remote_rm --rm-url http://HOST:PORT/remote_rm?recipe=math`.

Its caller (slime/rollout/rm_hub/__init__.py) sends one sample and takes the whole JSON answer as the reward: a number,
or an object from which `--reward-key` takes one. A failed call is tried ten times within minutes; then it raises.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response

from ...core.rollout import Message, Rollout
from ...core.verdict import Verdict
from ...core.wire import Item
from .call import ERRORS, RecipeName, Reply, Shape, UngradedValue, answer, described, reference_of
from .chat_text import without_end_tokens
from .ungraded import numbers

TIMEOUT_S = 110.0
"""The caller gives up after 120 s."""


EXAMPLE = {"prompt": "1+1?", "response": "It is \\boxed{2}.", "label": "2"}


class SlimeSample(Shape):
    """The sample that slime sends."""

    prompt: str | list[Message] | None = None
    response: str
    label: Any = None
    """The reference; "" and null are none."""


class SlimeReward(Reply):
    """The reward with what else is known, for `--reward-key reward`."""

    reward: float
    graded: int
    """1, or 0 where `reward` is the value that the URL states for an ungraded rollout."""
    outcome: str
    reason: str | None


def to_item(asked: SlimeSample) -> Item:
    """The rollout of the sample."""
    return Rollout(
        prompt=asked.prompt or None,
        completion=without_end_tokens(asked.response),
        reference=reference_of(asked.label),
    )


def to_reply(verdict: Verdict, ungraded: float | None, form: Literal["number", "dict"]) -> float | dict[str, Any]:
    """What slime takes; a Problem for an ungraded verdict without a stated value."""
    [reward] = numbers([verdict], ungraded, "/response")
    if form == "number":
        return reward
    return {
        "reward": reward,
        "graded": int(verdict.graded),
        "outcome": verdict.outcome.value,
        "reason": verdict.reason.value if verdict.reason is not None else None,
    }


router = APIRouter(tags=["drop-in"])


@router.post(
    "/remote_rm",
    summary="slime: the reward of one sample",
    response_model=float | SlimeReward,
    responses=ERRORS,
    openapi_extra=described(SlimeSample, sample=EXAMPLE),
)
async def remote_rm(
    request: Request,
    recipe: RecipeName = "auto",
    ungraded: UngradedValue = None,
    form: Annotated[Literal["number", "dict"], Query(alias="format")] = "number",
) -> Response:
    """A bare JSON number, or with `?format=dict` an object for `--reward-key reward`.

    A sample that cannot be graded makes the call fail (422, or 503 when another try may cure it), unless the URL states
    its value: `?ungraded=0`. Then `graded` tells them apart in the object.
    """
    return await answer(
        request,
        SlimeSample,
        lambda asked: [to_item(asked)],
        lambda _, __, verdicts: to_reply(verdicts[0], ungraded, form),
        recipe,
        TIMEOUT_S,
    )
