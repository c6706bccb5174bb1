"""Jobs: rollouts that are graded while nobody holds a connection, and whose verdicts wait to be read."""

from __future__ import annotations

import asyncio
import hashlib
import time
import uuid
from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import orjson
from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from ...client import transport as wire
from ...client.queue.ledger import NewJob
from ...client.queue.transport import KeyConflictError
from ...core.wire import JobOptions, JobRequest
from .. import body, tracing
from ..openapi import json_body, schema_of
from ..problems import Problem, responses
from .score import EXAMPLES

if TYPE_CHECKING:
    from ..queue import Queue
    from ..service import Service

router = APIRouter(tags=["jobs"])

NDJSON = "application/x-ndjson"

_QUIET_S = 15.0
"""A stream says at least so often that it is alive, with an empty line."""

_WAIT_S = 2.0
"""How long one look at the ledger waits for news."""


class Job(BaseModel):
    """Where a job stands."""

    id: str
    state: str
    """`running`, `done` or `cancelled`."""
    recipe: str
    total: int
    """Rollouts."""
    done: int
    """Rollouts that have a verdict."""
    outcomes: dict[str, int]
    """Verdicts by outcome."""
    created: float
    """Seconds since 1970."""
    deadline: float | None
    """Seconds since 1970; what is not graded by then is `ungraded: deadline`."""


EXAMPLE: dict[str, Any] = {
    "id": "fe06548e042d4a9a0919e7d28bfd650f",
    "state": "running",
    "recipe": "math",
    "total": 256,
    "done": 64,
    "outcomes": {"correct": 40, "incorrect": 22, "ungraded": 2},
    "created": 1796083715.7,
    "deadline": 1796105315.7,
}

LINES = """\
{"cursor":1,"row":0,"verdict":{"id":"1","reward":1.0,"outcome":"correct"}}
{"cursor":1,"state":"done"}
"""


@router.post(
    "/v1/jobs",
    summary="Start a job",
    operation_id="start_job",
    status_code=202,
    openapi_extra=json_body(schema_of(JobRequest), EXAMPLES),
    response_model=Job,
    responses={
        202: {
            "description": "The job is kept, and will be done whatever dies.",
            "content": {"application/json": {"example": EXAMPLE}},
            "headers": {"Location": {"description": "Of the job.", "schema": {"type": "string"}}},
        },
        **responses(
            "not_json", "unknown_recipe", "too_slow", "other_version", "too_large", "too_many_rollouts",
            "unsupported_media_type", "invalid_request", "key_reused", "busy", "rate_limited", "draining", "no_queue",
        ),
    },
)  # fmt: skip
async def start_job(
    request: Request,
    idempotency_key: Annotated[
        str | None,
        Header(
            min_length=1,
            max_length=200,
            pattern=r"^[\x21-\x7e]+$",
            description="The same for every try of the same request, so that it is one job however often it is sent.",
        ),
    ] = None,
) -> Response:
    """Keep rollouts in the queue and answer at once. Read the verdicts with `GET /v1/jobs/{id}`.

    A key that was used for another request is refused.
    """
    service, queue = _queue_of(request)
    sent = await body.read(request)
    queue.check_room()
    owner, trace = _owner(request), tracing.current()

    def read() -> NewJob:
        with service.reading:
            options, items = service.decode(sent, JobOptions)
        call = wire.Request(
            recipe=options.recipe,
            rollouts=(),
            key=idempotency_key or uuid.uuid4().hex,
            priority=options.priority,
            timeout_s=options.timeout_s,
            group_wait_s=options.group_wait_s,
        )
        digest = hashlib.blake2b(sent.unpack(), digest_size=16).hexdigest()
        return queue.transport.new_job(call, items, digest=digest, trace=trace, owner=owner)

    job = await asyncio.get_running_loop().run_in_executor(service.threads, read)
    service.count(job.total)
    try:
        await queue.transport.submit(job)
    except KeyConflictError as error:
        raise Problem("key_reused", str(error)) from None
    except wire.BusyError as error:
        raise _away(error) from None
    return _answer(await _status(queue, job.id, owner), 202, {"Location": f"/v1/jobs/{job.id}"})


@router.get(
    "/v1/jobs/{job}",
    summary="Where a job stands, or its verdicts",
    operation_id="read_job",
    response_model=Job,
    responses={
        200: {
            "description": "Its status; with `Accept: application/x-ndjson` its verdicts, a line each, as they arrive.",
            "content": {
                "application/json": {"example": EXAMPLE},
                NDJSON: {"schema": {"type": "string"}, "example": LINES},
            },
        },
        **responses("unknown_job", "invalid_request", "no_queue", "unavailable"),
    },
)
async def read_job(
    request: Request,
    job: str,
    cursor: Annotated[int, Query(ge=0, le=1 << 53, description="Verdicts that have been read: go on after these.")] = 0,
) -> Response:
    """The status of a job; or, when `application/x-ndjson` is accepted, a stream of its verdicts.

    Each line has `cursor` (how many verdicts with this one), `row` (place of its rollout in the request) and `verdict`.
    Empty lines say that the stream lives. The last line has `state` instead: a stream without it was cut, and goes on
    with `?cursor=`.
    """
    _, queue = _queue_of(request)
    status = await _status(queue, job, _owner(request))
    if NDJSON not in request.headers.get("accept", ""):
        return _answer(status, 200)
    if cursor > status.total:
        fault = f"the job has {status.total} rollouts, so nobody can have read {cursor} verdicts"
        raise Problem("invalid_request", f"cursor: {fault}", faults=[("/query/cursor", fault)])
    return StreamingResponse(_lines(queue, job, status.total, cursor), media_type=NDJSON)


@router.delete(
    "/v1/jobs/{job}",
    summary="Cancel a job",
    operation_id="cancel_job",
    response_model=Job,
    responses={
        200: {"description": "Its status.", "content": {"application/json": {"example": EXAMPLE}}},
        **responses("unknown_job", "invalid_request", "no_queue", "unavailable"),
    },
)
async def cancel_job(request: Request, job: str) -> Response:
    """What has no verdict yet becomes `ungraded: cancelled`. A job that is done stays as it is."""
    _, queue = _queue_of(request)
    await _status(queue, job, _owner(request))
    try:
        return _answer(await queue.transport.cancel(job), 200)
    except wire.UnknownJobError as error:
        raise Problem("unknown_job", str(error)) from None
    except wire.BusyError as error:
        raise _away(error) from None


async def _lines(queue: Queue, job: str, total: int, cursor: int) -> AsyncIterator[bytes]:
    """The verdicts as lines. The stream ends early, without its last line, when the queue is away for long."""
    spoke = time.monotonic()
    while cursor < total:
        found = await queue.ledger.lines(job, cursor, wait_s=_WAIT_S)
        if found:
            yield b"".join([b'{"cursor":%d,"row":%d,"verdict":%b}\n' % line for line in found])
            cursor = found[-1][0]
            spoke = time.monotonic()
        elif time.monotonic() - spoke > _QUIET_S:
            yield b"\n"
            spoke = time.monotonic()
        if not found:
            await queue.ledger.status(job)
    state = (await queue.ledger.status(job)).state
    yield orjson.dumps({"cursor": cursor, "state": state}) + b"\n"


def _queue_of(request: Request) -> tuple[Service, Queue]:
    service: Service = request.app.state.service
    if service.queue is None:
        raise Problem("no_queue", "this service keeps no jobs; start it with --queue embedded or --queue redis://...")
    return service, service.queue


def _owner(request: Request) -> str:
    """The API key that a job belongs to; empty where there are none."""
    key = request.scope.get("rewarden.key")
    return "" if key is None else key.id


async def _status(queue: Queue, job: str, owner: str) -> wire.JobStatus:
    try:
        return await queue.transport.status_for(job, owner)
    except wire.UnknownJobError as error:
        raise Problem("unknown_job", str(error)) from None
    except wire.BusyError as error:
        raise _away(error) from None


def _answer(status: wire.JobStatus, code: int, headers: dict[str, str] | None = None) -> Response:
    return Response(orjson.dumps(asdict(status)), code, headers=headers, media_type="application/json")


def _away(error: wire.BusyError) -> Problem:
    return Problem("unavailable", str(error), headers={"Retry-After": "2"})
