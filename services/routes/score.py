"""`POST /v1/score`: rollouts in, verdicts out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
import zstandard
from fastapi import APIRouter, Request, Response

from ...core.verdict import Graded
from ...core.wire import Item, ScoreOptions, ScoreRequest
from .. import body
from ..openapi import json_body, schema_of
from ..problems import responses
from ..service import Service

router = APIRouter(tags=["score"])

WORTH_PACKING = 1 << 14
"""Bytes of an answer from which it is packed for those who accept it."""

EXAMPLES: dict[str, Any] = {
    "math": {
        "recipe": "math",
        "rollouts": [
            {"id": "1", "completion": "The answer is \\boxed{2/4}.", "reference": "\\frac{1}{2}"},
            {"id": "2", "completion": "I do not know.", "reference": "7", "group": "g", "group_size": 1},
        ],
    },
    "mixed": {
        "timeout_s": 30,
        "rollouts": [
            {"completion": "The answer is (B).", "reference": "B", "scorer": "choice"},
            {"completion": [{"role": "assistant", "content": "12"}], "reference": 12, "scorer": "number"},
        ],
    },
}

ANSWER: dict[str, Any] = {
    "recipe": {"name": "math", "version": "1"},
    "verdicts": [
        {
            "id": "1",
            "reward": 1.0,
            "outcome": "correct",
            "scorer": {"name": "math", "version": "1", "digest": "0123456789abcdef"},
        },
        {"id": "2", "reward": 0.0, "outcome": "no_answer", "reason": "no_answer_found"},
    ],
}

ANSWERED: dict[str, Any] = {
    "description": "One verdict for each rollout, in order.",
    "content": {
        "application/json": {
            "schema": {
                "type": "object",
                "required": ["recipe", "verdicts"],
                "properties": {
                    "recipe": {
                        "type": "object",
                        "required": ["name", "version"],
                        "properties": {"name": {"type": "string"}, "version": {"type": "string"}},
                    },
                    "verdicts": {"type": "array", "items": {"$ref": "#/components/schemas/Verdict"}},
                },
            },
            "example": ANSWER,
        }
    },
}


@router.post(
    "/v1/score",
    summary="Grade rollouts",
    operation_id="score",
    openapi_extra=json_body(schema_of(ScoreRequest), EXAMPLES),
    response_class=Response,
    responses={
        200: ANSWERED,
        **responses(
            "not_json", "unknown_recipe", "too_slow", "other_version", "too_large", "too_many_rollouts",
            "unsupported_media_type", "invalid_request", "busy", "rate_limited", "draining", "unavailable",
        ),
    },
)  # fmt: skip
async def score(request: Request) -> Response:
    """Grade rollouts, and answer with one verdict for each, in order.

    A rollout's own `scorer` chooses its recipe; `recipe` is for the others. A rollout that cannot be read is
    `ungraded: bad_rollout`. With `timeout_s`, what is not graded by then is `ungraded: deadline`.
    """
    service: Service = request.app.state.service
    sent = await body.read(request)
    packs = "zstd" in request.headers.get("accept-encoding", "")
    found: ScoreOptions

    def read() -> tuple[ScoreOptions, list[Item]]:
        nonlocal found
        found, items = service.decode(sent, ScoreOptions)
        return found, items

    def write(graded: Sequence[Graded]) -> tuple[bytes, bool]:
        answer = encode(service, found.recipe, graded)
        if packs and len(answer) >= WORTH_PACKING:
            return zstandard.ZstdCompressor(level=1).compress(answer), True
        return answer, False

    answer, packed = await service.work(read, write)
    headers = {"Content-Encoding": "zstd", "Vary": "Accept-Encoding"} if packed else None
    return Response(answer, media_type="application/json", headers=headers)


def encode(service: Service, recipe: str, graded: Sequence[Graded]) -> bytes:
    """The answer, from the verdicts as they write themselves."""
    name = recipe.partition("@")[0]
    head = orjson.dumps({"name": name, "version": service.catalog.version(name)})
    verdicts = b",".join([one.verdict.to_json() for one in graded])
    return b'{"recipe":%b,"verdicts":[%b]}' % (head, verdicts)
