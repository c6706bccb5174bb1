"""OpenRLHF's remote reward: `--reward.remote_url http://HOST:PORT/get_reward?recipe=math`.

Its caller (openrlhf/utils/agent.py, 0.11) sends lists of one sample: the query (prompt and response as one text, with
special tokens), the prompt, and the dataset's label ("" where there is none). It takes `rewards` for the advantage,
`scores` in [0, 1] for dynamic filtering, and logs `extra_logs`, which must have the same keys every time. A failed call
is tried again four times; then the sample has no reward, and training stops.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from fastapi import APIRouter, Request, Response
from pydantic import Field, model_validator

from ...core.rollout import Rollout
from ...core.verdict import Outcome, Verdict
from ...core.wire import Item
from .call import ERRORS, RecipeName, Reply, Shape, UngradedValue, answer, described, reference_of
from .chat_text import response_in
from .ungraded import numbers

TIMEOUT_S = 170.0
"""The caller gives up after 180 s."""


EXAMPLE = {
    "query": ["<|im_start|>user\n1+1?<|im_end|>\n<|im_start|>assistant\n\\boxed{2}<|im_end|>"],
    "prompts": ["<|im_start|>user\n1+1?<|im_end|>\n<|im_start|>assistant\n"],
    "labels": ["2"],
}


class OpenRLHFRequest(Shape):
    """What OpenRLHF sends. The lists have one entry for each sample."""

    query: list[str]
    """Prompt and response as one text, special tokens included."""
    prompts: list[str]
    labels: list[Any] | None = None
    """The references; "" and null are none."""

    @model_validator(mode="after")
    def _same_length(self) -> Self:
        if len(self.prompts) != len(self.query) or (self.labels is not None and len(self.labels) != len(self.query)):
            raise ValueError("query, prompts and labels must be lists of the same length")
        return self


class OpenRLHFReply(Reply):
    """What OpenRLHF takes. The lists have one entry for each sample."""

    rewards: list[float]
    scores: list[float] = Field(examples=[[1.0]])
    """1 for right, 0 for wrong, between them a partial reward."""
    extra_logs: dict[str, list[float]] = Field(examples=[{"graded": [1.0], "correct": [1.0], "no_answer": [0.0]}])
    """Always `graded`, `correct` and `no_answer`, each 1 or 0."""


def to_items(asked: OpenRLHFRequest) -> list[Item]:
    """The rollout of each sample, or why it is none."""
    labels = asked.labels if asked.labels is not None else [None] * len(asked.query)
    return [_item(*sample) for sample in zip(asked.query, asked.prompts, labels, strict=True)]


def _item(query: str, prompt: str, label: Any) -> Item:
    response = response_in(query, prompt)
    if response is None:
        return "the query does not contain its prompt, so that nobody can tell what the model wrote"
    return Rollout(prompt=prompt, completion=response, reference=reference_of(label))


def to_reply(verdicts: Sequence[Verdict], ungraded: float | None) -> dict[str, Any]:
    """What OpenRLHF takes; a Problem for an ungraded verdict without a stated value."""
    rewards = numbers(verdicts, ungraded, "/query/*")
    return {
        "rewards": rewards,
        "scores": [_score(verdict, reward) for verdict, reward in zip(verdicts, rewards, strict=True)],
        "extra_logs": {
            "graded": [float(verdict.graded) for verdict in verdicts],
            "correct": [float(verdict.outcome is Outcome.CORRECT) for verdict in verdicts],
            "no_answer": [float(verdict.outcome is Outcome.NO_ANSWER) for verdict in verdicts],
        },
    }


def _score(verdict: Verdict, reward: float) -> float:
    """In [0, 1]: right and wrong whatever a recipe pays for them."""
    match verdict.outcome:
        case Outcome.CORRECT:
            return 1.0
        case Outcome.INCORRECT | Outcome.NO_ANSWER:
            return 0.0
        case _:
            return min(1.0, max(0.0, reward))


router = APIRouter(tags=["drop-in"])


@router.post(
    "/get_reward",
    summary="OpenRLHF: rewards of samples",
    response_model=OpenRLHFReply,
    responses=ERRORS,
    openapi_extra=described(OpenRLHFRequest, sample=EXAMPLE),
)
async def get_reward(request: Request, recipe: RecipeName = "auto", ungraded: UngradedValue = None) -> Response:
    """Rewards as OpenRLHF's remote reward model gives them.

    A sample that cannot be graded makes the call fail (422, or 503 when another try may cure it), unless the URL states
    its value: `?ungraded=0`. Then `extra_logs.graded` tells them apart.
    """
    return await answer(
        request, OpenRLHFRequest, to_items, lambda _, __, verdicts: to_reply(verdicts, ungraded), recipe, TIMEOUT_S
    )
