"""One call of a trainer: its body in the trainer's own shape, through the service, and back.

The shapes are the trainers', so what they may add in a later version is let pass; what is used is read strictly. All
that grows with the body happens off the event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeVar

import orjson
from fastapi import Query, Request, Response
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import to_json

from ...core.rollout import describe
from ...core.verdict import Graded, Verdict
from ...core.wire import Item, ScoreOptions
from .. import body, openapi
from ..problems import Problem, responses
from ..service import Service

RecipeName = Annotated[
    str,
    Query(min_length=1, max_length=200, description="A recipe on offer, or `name@version`.", examples=["math"]),
]
OptionalRecipeName = Annotated[
    str | None,
    Query(min_length=1, max_length=200, description="A recipe on offer, or `name@version`.", examples=["math"]),
]
UngradedValue = Annotated[
    float | None,
    Query(
        allow_inf_nan=False,
        description="The number to give for a rollout that could not be graded. Without it the call fails.",
    ),
]
Opener = Annotated[
    str | None,
    Query(
        min_length=1,
        max_length=100,
        description="What opens the assistant's turn, where the chat template is not one that is known here.",
        examples=["### Response:"],
    ),
]

ERRORS = responses(
    "not_found", "unknown_recipe", "too_slow", "other_version", "too_large", "too_many_rollouts",
    "unsupported_media_type", "not_json", "invalid_request", "ungraded", "busy", "rate_limited", "draining",
    "unavailable", "ungraded_for_now",
)  # fmt: skip
"""What every drop-in endpoint may answer besides its reply."""


class Shape(BaseModel):
    """A request in a trainer's shape."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True, use_attribute_docstrings=True)


class Reply(BaseModel):
    """An answer in a trainer's shape. For the documents: the answer itself is made of plain values."""

    model_config = ConfigDict(use_attribute_docstrings=True)


Asked = TypeVar("Asked", bound=BaseModel)


async def answer(
    request: Request,
    shape: type[Asked],
    to_items: Callable[[Asked], Sequence[Item]],
    to_reply: Callable[[Asked, str, Sequence[Verdict]], Any],
    recipe: str | Callable[[Asked], str],
    timeout_s: float | None = None,
) -> Response:
    """Read a body of `shape`, grade its rollouts under `recipe`, and write the reply.

    `to_reply` takes the request, the recipe's name and the verdicts, and gives JSON values.
    """
    service: Service = request.app.state.service
    sent = await body.read(request)
    asked: Asked
    name: str

    def read() -> tuple[ScoreOptions, Sequence[Item]]:
        nonlocal asked, name
        asked = parse(sent.unpack(), shape)
        name = recipe if isinstance(recipe, str) else recipe(asked)
        service.check_recipe(name)
        items = to_items(asked)
        service.check_size(len(items))
        return ScoreOptions(recipe=name, timeout_s=timeout_s), items

    def write(graded: Sequence[Graded]) -> bytes:
        return to_json(to_reply(asked, name, [one.verdict for one in graded]))

    return json_response(await service.work(read, write))


def json_response(content: bytes) -> Response:
    """JSON with the type that the trainers' clients insist on."""
    return Response(content, media_type="application/json")


def parse(data: bytes, shape: type[Asked]) -> Asked:
    """A body as a request of `shape`; a Problem where it is none."""
    try:
        # This parser alone refuses NaN, infinities and 1e999, and the next one alone refuses deep nesting.
        orjson.loads(data)
        return shape.model_validate_json(data)
    except orjson.JSONDecodeError as error:
        raise Problem("not_json", f"the body is not JSON: {error}") from None
    except ValidationError as error:
        faults = [
            ("".join(f"/{part}" for part in fault["loc"]), fault["msg"])
            for fault in error.errors(include_url=False, include_input=False, include_context=False)
        ]
        raise Problem("invalid_request", describe(error), faults=faults) from None


def reference_of(label: Any) -> Any:
    """A trainer's label as a reference: blank text and null are none."""
    return None if isinstance(label, str) and not label.strip() else label


def described(shape: type[BaseModel], **examples: Any) -> dict[str, Any]:
    """What OpenAPI says of a body of `shape`, with examples by name."""
    if shape not in openapi.MODELS:
        openapi.MODELS.append(shape)
    return openapi.json_body(openapi.schema_of(shape), examples)
