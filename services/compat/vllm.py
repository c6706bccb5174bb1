"""vLLM's `/classify` and `/score`, for trainers that expect a reward model there (verl among them).

`data[].probs` has one value, which is the raw reward, as vLLM gives it for `use_activation: false` (what verl sends);
`data[].label` is the outcome. `/score` takes pairs: the first text is the prompt, or with `?as=reference` the gold
answer. Token ids, images and `use_activation: true` are refused. Nothing is tokenised: `usage` counts nothing.

A client that can only be given an address, such as verl's `reward_router_address`, names the recipe in its path:
`HOST:PORT/recipes/NAME`. Else it is `?recipe=NAME`, or the request's `model`.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any, Literal, Self

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import Field, model_validator

from ...core.rollout import Message, Rollout
from ...core.verdict import Verdict
from ...core.wire import Item
from .call import ERRORS, Opener, OptionalRecipeName, Reply, Shape, UngradedValue, answer, described, reference_of
from .chat_text import last_turn, without_end_tokens
from .ungraded import numbers

_PAIRS = (("queries", "documents"), ("queries", "items"), ("data_1", "data_2"), ("text_1", "text_2"))

Texts = str | list[str]


class _Pooling(Shape):
    """What both requests have."""

    model: str | None = None
    """The recipe, unless the URL names one."""
    use_activation: bool | None = None
    activation: bool | None = None
    """What `use_activation` was called before vLLM 0.11."""

    @model_validator(mode="after")
    def _raw(self) -> Self:
        if self.use_activation or self.activation:
            raise ValueError("a reward is given as it is, so use_activation must be false or left out")
        return self


CLASSIFY_EXAMPLE = {
    "model": "majority",
    "input": ["<|im_start|>user\n1+1?<|im_end|>\n<|im_start|>assistant\n\\boxed{2}<|im_end|>"],
    "use_activation": False,
}


class VLLMClassifyRequest(_Pooling):
    """What is sent to `/classify`: `input`, or one conversation in `messages`."""

    input: Texts | None = None
    """Prompt and response as a chat template writes them. A text in which none opens the assistant's turn is the
    response as a whole."""
    messages: list[Message] | None = None
    """Ends with what the model wrote: all after the last message of another than assistant or tool."""

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.input is None) == (self.messages is None):
            raise ValueError("send either input or messages")
        return self

    @property
    def pointer(self) -> str:
        """Where the completions are."""
        if self.messages is not None:
            return "/messages"
        return "/input" if isinstance(self.input, str) else "/input/*"


SCORE_EXAMPLE = {"model": "math", "text_1": "2", "text_2": ["\\boxed{2}", "\\boxed{3}"]}


class VLLMScoreRequest(_Pooling):
    """What is sent to `/score`: one of four pairs of names; 1 to 1, 1 to N, or N to N texts."""

    text_1: Texts | None = None
    text_2: Texts | None = None
    queries: Texts | None = None
    documents: Texts | None = None
    items: Texts | None = None
    data_1: Texts | None = None
    data_2: Texts | None = None

    @model_validator(mode="after")
    def _pairs_fit(self) -> Self:
        first, second = self.pair
        if not first or not second:
            raise ValueError("there must be at least one text on either side")
        if len(first) not in (1, len(second)):
            raise ValueError("there must be 1 to 1, 1 to N, or N to N texts")
        return self

    @property
    def _names(self) -> tuple[str, str]:
        for one, two in _PAIRS:
            if getattr(self, one) is not None and getattr(self, two) is not None:
                return one, two
        raise ValueError("send text_1 and text_2, queries and documents, queries and items, or data_1 and data_2")

    @property
    def pair(self) -> tuple[list[str], list[str]]:
        """The texts of either side."""
        one, two = self._names
        return _listed(getattr(self, one)), _listed(getattr(self, two))

    @property
    def pointer(self) -> str:
        """Where the completions are."""
        name = self._names[1]
        return f"/{name}" if isinstance(getattr(self, name), str) else f"/{name}/*"


class VLLMUsage(Reply):
    """Nothing is tokenised here."""

    prompt_tokens: int = 0
    total_tokens: int = 0
    completion_tokens: int | None = 0
    prompt_tokens_details: None = None


class VLLMClassified(Reply):
    """The reward of one text."""

    index: int
    label: str | None = Field(examples=["correct"])
    """The outcome; `ungraded` where the value is the one that the URL states."""
    probs: list[float] = Field(examples=[[1.0]])
    """The reward alone, which may be any finite number."""
    num_classes: int = 1


class VLLMScored(Reply):
    """The reward of one pair."""

    index: int
    object: str = "score"
    score: float


class _List(Reply):
    """What both answers have."""

    id: str
    object: str = "list"
    created: int
    """Seconds since 1970."""
    model: str
    """The recipe."""
    usage: VLLMUsage


class VLLMClassifyReply(_List):
    """The rewards of the texts."""

    data: list[VLLMClassified]


class VLLMScoreReply(_List):
    """The rewards of the pairs."""

    data: list[VLLMScored]


def classify_items(asked: VLLMClassifyRequest, opener: str | None = None) -> list[Item]:
    """The rollout of each text or of the conversation, or why it is none."""
    if asked.messages is not None:
        return [_conversation(asked.messages)]
    assert asked.input is not None
    return [_text(text, opener) for text in _listed(asked.input)]


def _text(text: str, opener: str | None) -> Item:
    turn = last_turn(text, opener)
    if turn is not None:
        return Rollout(prompt=turn.prompt, completion=turn.completion)
    if opener is not None:
        return "the text of ?assistant= is not in it, so that nobody can tell what the model wrote"
    return Rollout(completion=without_end_tokens(text))


def _conversation(messages: list[Message]) -> Item:
    start = len(messages)
    while start > 0 and messages[start - 1].role in ("assistant", "tool"):
        start -= 1
    if not any(message.role == "assistant" for message in messages[start:]):
        return "the conversation does not end with what an assistant wrote"
    return Rollout(prompt=messages[:start] or None, completion=messages[start:])


def score_items(asked: VLLMScoreRequest, first_is: Literal["prompt", "reference"] = "prompt") -> list[Item]:
    """The rollout of each pair."""
    first, second = asked.pair
    if len(first) == 1:
        first = first * len(second)
    if first_is == "prompt":
        return [Rollout(prompt=a, completion=without_end_tokens(b)) for a, b in zip(first, second, strict=True)]
    return [
        Rollout(reference=reference_of(a), completion=without_end_tokens(b)) for a, b in zip(first, second, strict=True)
    ]


def classify_reply(verdicts: Sequence[Verdict], ungraded: float | None, recipe: str, pointer: str) -> dict[str, Any]:
    """The answer of `/classify`; a Problem for an ungraded verdict without a stated value."""
    rewards = numbers(verdicts, ungraded, pointer)
    return _list("classify", recipe) | {
        "data": [
            {"index": i, "label": verdict.outcome.value, "probs": [reward], "num_classes": 1}
            for i, (verdict, reward) in enumerate(zip(verdicts, rewards, strict=True))
        ]
    }


def score_reply(verdicts: Sequence[Verdict], ungraded: float | None, recipe: str, pointer: str) -> dict[str, Any]:
    """The answer of `/score`; a Problem for an ungraded verdict without a stated value."""
    rewards = numbers(verdicts, ungraded, pointer)
    return _list("score", recipe) | {
        "data": [{"index": i, "object": "score", "score": reward} for i, reward in enumerate(rewards)]
    }


def _list(kind: str, recipe: str) -> dict[str, Any]:
    usage = {"prompt_tokens": 0, "total_tokens": 0, "completion_tokens": 0, "prompt_tokens_details": None}
    return {
        "id": f"{kind}-{uuid.uuid4().hex}",
        "object": "list",
        "created": int(time.time()),
        "model": recipe,
        "usage": usage,
    }


def _listed(texts: Texts) -> list[str]:
    return [texts] if isinstance(texts, str) else texts


router = APIRouter(tags=["drop-in"])

PathRecipe = Annotated[str, Path(min_length=1, max_length=200, description="A recipe on offer.", examples=["math"])]


FirstIs = Annotated[
    Literal["prompt", "reference"], Query(alias="as", description="What the first text of each pair is.")
]


def _classify(request: Request, recipe: str | None, ungraded: float | None, opener: str | None) -> Awaitable[Response]:
    return answer(
        request,
        VLLMClassifyRequest,
        lambda asked: classify_items(asked, opener),
        lambda asked, name, verdicts: classify_reply(verdicts, ungraded, name, asked.pointer),
        _chosen(recipe),
    )


def _score(
    request: Request, recipe: str | None, ungraded: float | None, first_is: Literal["prompt", "reference"]
) -> Awaitable[Response]:
    return answer(
        request,
        VLLMScoreRequest,
        lambda asked: score_items(asked, first_is),
        lambda asked, name, verdicts: score_reply(verdicts, ungraded, name, asked.pointer),
        _chosen(recipe),
    )


def _chosen(recipe: str | None) -> Callable[[_Pooling], str]:
    """What the URL names, else what the request calls its model."""
    return lambda asked: recipe or asked.model or "auto"


@router.post(
    "/classify",
    summary="vLLM: classify texts",
    response_model=VLLMClassifyReply,
    responses=ERRORS,
    openapi_extra=described(VLLMClassifyRequest, sample=CLASSIFY_EXAMPLE),
)
async def classify(
    request: Request,
    recipe: OptionalRecipeName = None,
    ungraded: UngradedValue = None,
    assistant: Opener = None,
) -> Response:
    """The raw reward of each text, in `data[].probs`.

    This shape has no reference, so the recipe must do without. A text that cannot be graded makes the call fail (422,
    or 503 when another try may cure it), unless the URL states its value: `?ungraded=0`. Then its label is `ungraded`.
    """
    return await _classify(request, recipe, ungraded, assistant)


@router.post(
    "/recipes/{recipe}/classify",
    summary="vLLM: classify texts, with the recipe in the path",
    response_model=VLLMClassifyReply,
    responses=ERRORS,
    openapi_extra=described(VLLMClassifyRequest, sample=CLASSIFY_EXAMPLE),
)
async def classify_under(
    request: Request, recipe: PathRecipe, ungraded: UngradedValue = None, assistant: Opener = None
) -> Response:
    """As `/classify`, for clients that can only be given an address: `HOST:PORT/recipes/NAME`."""
    return await _classify(request, recipe, ungraded, assistant)


@router.post(
    "/score",
    summary="vLLM: score pairs of texts",
    response_model=VLLMScoreReply,
    responses=ERRORS,
    openapi_extra=described(VLLMScoreRequest, sample=SCORE_EXAMPLE),
)
async def score(
    request: Request,
    recipe: OptionalRecipeName = None,
    ungraded: UngradedValue = None,
    first_is: FirstIs = "prompt",
) -> Response:
    """The raw reward of each pair, in `data[].score`.

    The second text is the completion; the first is the prompt, or with `?as=reference` the reference. A pair that
    cannot be graded makes the call fail (422, or 503 when another try may cure it), unless the URL states its value:
    `?ungraded=0`.
    """
    return await _score(request, recipe, ungraded, first_is)


@router.post(
    "/recipes/{recipe}/score",
    summary="vLLM: score pairs of texts, with the recipe in the path",
    response_model=VLLMScoreReply,
    responses=ERRORS,
    openapi_extra=described(VLLMScoreRequest, sample=SCORE_EXAMPLE),
)
async def score_under(
    request: Request, recipe: PathRecipe, ungraded: UngradedValue = None, first_is: FirstIs = "prompt"
) -> Response:
    """As `/score`, for clients that can only be given an address: `HOST:PORT/recipes/NAME`."""
    return await _score(request, recipe, ungraded, first_is)
