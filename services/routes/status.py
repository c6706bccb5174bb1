"""`GET /v1/status`: what a dashboard shows."""

from __future__ import annotations

import time
from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel

from ... import __version__
from ..problems import responses
from ..service import Service

router = APIRouter(tags=["status"])


class InFlight(BaseModel):
    """What is under way."""

    requests: int
    rollouts: int


class Workers(BaseModel):
    """The pools of worker processes of this service, added up."""

    items: int
    """Done so far."""
    restarts: int
    crashes: int
    """Workers that died by themselves."""
    outside_kills: int
    kills: dict[str, int]
    """Workers that were ended for a reason."""
    cpu_s: float


class Step(BaseModel):
    """Five seconds."""

    start: int
    """Seconds since 1970."""
    requests: int
    refused: int
    """429 and 503."""
    failed: int
    """500."""
    rollouts: int
    cached: int
    seconds: float
    """Of the scorers, added up."""
    outcomes: dict[str, int]


class UngradedRow(BaseModel):
    """A rollout that could not be graded."""

    time: float
    """Seconds since 1970."""
    id: str
    recipe: str
    scorer: str | None
    reason: str
    explanation: str


class SlowRow(BaseModel):
    """A rollout that took long."""

    time: float
    """Seconds since 1970."""
    id: str
    recipe: str
    scorer: str | None
    seconds: float
    outcome: str


class Status(BaseModel):
    """What a service has done and is doing."""

    version: str
    uptime_s: float
    ready: bool
    draining: bool
    in_flight: InFlight
    workers: Workers
    step_s: int
    """Length of a step."""
    buckets: list[Step]
    """The last 15 minutes; steps without traffic are left out."""
    scorers: dict[str, dict[str, int]]
    """Verdicts since the start by scorer and outcome."""
    ungraded: list[UngradedRow]
    """The last 50, newest first."""
    slow: list[SlowRow]
    """The last 50, newest first."""
    queue: dict[str, Any] | None
    """Queues and workers; null without a queue."""


@router.get("/v1/status", summary="What it does", operation_id="status", responses=responses())
async def status(request: Request) -> Status:
    """Throughput and outcomes over the last 15 minutes, what could not be graded, what was slow. Needs `admin`."""
    service: Service = request.app.state.service
    stats = service.engines.pool_stats
    kills: dict[str, int] = {}
    for one in stats:
        for cause, number in one.kills.items():
            kills[str(cause)] = kills.get(str(cause), 0) + number
    return Status(
        version=__version__,
        uptime_s=round(time.time() - service.started, 3),
        ready=service.warm and not service.draining,
        draining=service.draining,
        in_flight=InFlight(requests=service.admission.requests, rollouts=service.admission.rollouts),
        workers=Workers(
            items=sum(one.items for one in stats),
            restarts=sum(one.respawned for one in stats),
            crashes=sum(one.crashes for one in stats),
            outside_kills=sum(one.outside_kills for one in stats),
            kills=kills,
            cpu_s=round(sum(one.cpu_s for one in stats), 3),
        ),
        queue=service.queue.status() if service.queue is not None else None,
        **service.record.to_dict(),
    )
