"""Refusing a request whose body was not read, so that the client gets to see why."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from starlette.responses import Response

from .problems import MEDIA_TYPE, Problem

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

DRAIN_BYTES = 1 << 24
DRAIN_S = 5.0
"""What is read of an unwanted body, and for how long. A client that still sends when its connection is closed may never
see the answer."""


def declared_length(scope: Scope) -> int | None:
    """The Content-Length; None for a body in chunks, 0 without a body. Raises Problem where it is no number."""
    length: int | None = 0
    for name, value in scope["headers"]:
        if name == b"content-length":
            if not value.isdigit():
                raise Problem("bad_request", "Content-Length is no number")
            return int(value[:20])
        if name == b"transfer-encoding":
            length = None
    return length


async def reject(scope: Scope, receive: Receive, send: Send, problem: Problem) -> None:
    """Answer with the problem. What the client still sends is read and dropped, within bounds."""
    body = problem.body(scope.get("rewarden.request_id"))
    headers = [
        (b"content-type", MEDIA_TYPE.encode()),
        (b"content-length", b"%d" % len(body)),
        *((name.lower().encode(), value.encode("latin-1", "replace")) for name, value in problem.headers.items()),
    ]
    try:
        length = declared_length(scope)
    except Problem:
        length = None
    waits = any(name == b"expect" for name, _ in scope["headers"])  # it sends nothing before it is told to
    if waits or length is None or length > DRAIN_BYTES:
        headers.append((b"connection", b"close"))
    scope["rewarden.problem"] = problem.code
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    if waits or (length is not None and length <= DRAIN_BYTES):
        # The server itself drops the rest of a body of known length.
        await send({"type": "http.response.body", "body": body})
        return
    await send({"type": "http.response.body", "body": body, "more_body": True})
    try:
        async with asyncio.timeout(DRAIN_S):
            left = DRAIN_BYTES
            while left > 0:
                message = await receive()
                if message["type"] != "http.request" or not message.get("more_body"):
                    break
                left -= len(message.get("body", b""))
    except TimeoutError:
        pass
    await send({"type": "http.response.body", "body": b""})


class Rejection(Response):
    """`reject` as the answer of a route."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(status_code=problem.status)
        self.problem = problem

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await reject(scope, receive, send, self.problem)
