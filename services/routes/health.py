"""Probes and metrics: is it alive, may it be sent work, what has it done."""

from __future__ import annotations

import asyncio
from typing import Literal

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel

from ..problems import Problem, responses
from ..service import Service

router = APIRouter(tags=["health"])


class Alive(BaseModel):
    """A good answer of a probe."""

    status: Literal["ok"] = "ok"


@router.get("/livez", summary="Is it alive", operation_id="livez", responses=responses())
async def livez() -> Alive:
    """The event loop runs. Depends on nothing else: a queue that is gone is no reason to restart this."""
    return Alive()


@router.get(
    "/readyz", summary="May it be sent work", operation_id="readyz", responses=responses("unavailable", "draining")
)
async def readyz(request: Request) -> Alive:
    """The engines are made, the queue can be reached, and the service is not stopping."""
    service: Service = request.app.state.service
    if service.draining:
        raise Problem("draining", "the service is stopping", headers={"Retry-After": "1"})
    if not service.warm:
        raise Problem("unavailable", "the engines are being made", headers={"Retry-After": "1"})
    if service.queue is not None and not service.queue.reachable:
        raise Problem("unavailable", "the queue cannot be reached", headers={"Retry-After": "1"})
    return Alive()


@router.get(
    "/metrics",
    summary="Prometheus metrics",
    operation_id="metrics",
    response_class=Response,
    responses={
        200: {"description": "Metrics in the text format.", "content": {"text/plain": {"schema": {"type": "string"}}}},
        **responses(),
    },
)
async def metrics(request: Request) -> Response:
    """Counters, gauges and histograms since the start of the process."""
    service: Service = request.app.state.service
    text = await asyncio.to_thread(service.metrics.text)
    return Response(text, media_type="text/plain; version=0.0.4")
