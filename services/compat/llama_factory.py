"""LLaMA-Factory's reward server: `reward_model_type: api`, `reward_model: http://HOST:PORT/v1/score/evaluation?recipe=NAME`.

Its caller (llamafactory/train/ppo/ppo_utils.py, 0.9) sends prompt and response as one text with special tokens, without
a reference, and takes `scores`. It looks at no status and has no time limit: an answer without `scores` stops training.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Request, Response

from ...core.rollout import Rollout
from ...core.verdict import Verdict
from ...core.wire import Item
from .call import ERRORS, Opener, RecipeName, Reply, Shape, UngradedValue, answer, described
from .chat_text import last_turn
from .ungraded import numbers

_UNKNOWN_TEMPLATE = (
    "no known chat template opens the assistant's turn in it; say what does in yours with ?assistant=TEXT"
)


EXAMPLE = {
    "model": "model",
    "messages": ["<|im_start|>user\n1+1?<|im_end|>\n<|im_start|>assistant\n\\boxed{2}<|im_end|>"],
}


class LlamaFactoryRequest(Shape):
    """What LLaMA-Factory sends."""

    model: str = "model"
    """Always "model"; the URL names the recipe."""
    messages: list[str]
    """Each prompt and response as one text, special tokens included."""


class LlamaFactoryReply(Reply):
    """What LLaMA-Factory takes."""

    id: str
    object: str = "score.evaluation"
    model: str
    """The recipe."""
    scores: list[float]
    """One reward for each text."""


def to_items(asked: LlamaFactoryRequest, opener: str | None = None) -> list[Item]:
    """The rollout of each text, or why it is none."""
    turns = (last_turn(text, opener) for text in asked.messages)
    return [
        _UNKNOWN_TEMPLATE if turn is None else Rollout(prompt=turn.prompt, completion=turn.completion) for turn in turns
    ]


def to_reply(verdicts: Sequence[Verdict], ungraded: float | None, recipe: str) -> dict[str, Any]:
    """What LLaMA-Factory takes; a Problem for an ungraded verdict without a stated value."""
    scores = numbers(verdicts, ungraded, "/messages/*")
    return {"id": f"scoreeval-{uuid.uuid4().hex}", "object": "score.evaluation", "model": recipe, "scores": scores}


router = APIRouter(tags=["drop-in"])


@router.post(
    "/v1/score/evaluation",
    summary="LLaMA-Factory: scores of texts",
    response_model=LlamaFactoryReply,
    responses=ERRORS,
    openapi_extra=described(LlamaFactoryRequest, sample=EXAMPLE),
)
async def evaluation(
    request: Request, recipe: RecipeName = "auto", ungraded: UngradedValue = None, assistant: Opener = None
) -> Response:
    """Scores as LLaMA-Factory's own reward server gives them.

    This shape has no reference, so the recipe must do without. A text that cannot be graded makes the call fail (422,
    or 503 when another try may cure it), unless the URL states its value: `?ungraded=0`.
    """
    return await answer(
        request,
        LlamaFactoryRequest,
        lambda asked: to_items(asked, assistant),
        lambda _, name, verdicts: to_reply(verdicts, ungraded, name),
        recipe,
    )
