"""The outermost layer: every request gets an id, one line in the log, its metrics, and an answer whatever breaks."""

from __future__ import annotations

import logging
import random
import re
import time
from typing import TYPE_CHECKING, Any

from starlette.requests import ClientDisconnect

from .logs import Counts, log_request
from .problems import Problem
from .reject import reject
from .service import COUNTS, Service
from .tracing import tracer

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = logging.getLogger(__name__)

SANE = re.compile(rb"[A-Za-z0-9._:/+=-]{1,100}")
"""Request ids of callers that are taken over."""

QUIET = frozenset({"/livez", "/readyz", "/metrics", "/v1/status", "/ui", "/ui/style.css", "/ui/script.js"})
"""Paths whose good answers are not logged."""

REFUSAL_S = 1.0
"""How often refused requests are logged: there may be very many of them."""

GONE = 499
"""In logs and metrics: the client went away."""


class Envelope:
    """The layer around all others."""

    def __init__(self, app: ASGIApp, service: Service, api: FastAPI) -> None:
        self.app = app
        self.service = service
        self._api = api
        self._paths: frozenset[str] = frozenset()
        self._span = tracer()
        self._refused = 0
        self._next_refusal = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = time.perf_counter()
        headers = dict(scope["headers"])
        given = headers.get(b"x-request-id", b"")
        request_id = given.decode() if SANE.fullmatch(given) else f"{random.getrandbits(64):016x}"  # no secret
        scope["rewarden.request_id"] = request_id
        counts = Counts()
        token = COUNTS.set(counts)
        status = 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", request_id.encode())]
            await send(message)

        try:
            with self._span(f"{scope['method']} {scope['path']}", headers) as describe:
                try:
                    await self.app(scope, receive, send_with_id)
                except ClientDisconnect:
                    status = status or GONE
                except Exception:
                    log.exception("the request failed", extra={"request_id": request_id, "path": scope["path"][:200]})
                    if status:  # too late for another answer: the connection is closed
                        status = 500
                        raise
                    problem = Problem("internal", "the service failed; its log says why, under this request_id")
                    await reject(scope, receive, send_with_id, problem)
                describe({"http.response.status_code": status, "rewarden.rollouts": counts.rollouts})
        finally:
            COUNTS.reset(token)
            self._done(scope, request_id, status or GONE, time.perf_counter() - started, counts)

    def _done(self, scope: Scope, request_id: str, status: int, seconds: float, counts: Counts) -> None:
        route = self._route(scope)
        self.service.metrics.request(route, status, seconds)
        self.service.record.request(status)
        if route in QUIET and status < 400:
            return
        fields: dict[str, Any] = {
            "request_id": request_id,
            "method": scope["method"],
            "route": route,
            "status": status,
            "seconds": round(seconds, 6),
        }
        if status == 429:
            self._refused += 1
            now = time.monotonic()
            if now < self._next_refusal:
                return
            self._next_refusal = now + REFUSAL_S
            fields["refused"], self._refused = self._refused, 0
        if counts.rollouts:
            fields |= {"recipe": counts.recipe, "rollouts": counts.rollouts, "outcomes": dict(counts.outcomes)}
        if "rewarden.problem" in scope:
            fields["problem"] = scope["rewarden.problem"]
        if "rewarden.key" in scope:
            fields["key"] = scope["rewarden.key"].id
        log_request(fields, failed=status == 500)

    def _route(self, scope: Scope) -> str:
        """The path as it was declared, so that metrics have few of them."""
        found = getattr(scope.get("route"), "path", None)
        if found is not None:
            return str(found)
        if not self._paths:
            self._paths = frozenset(getattr(route, "path", "") for route in self._api.routes)
        path = scope["path"]
        return path if path in self._paths else "unmatched"
