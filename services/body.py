"""Bodies of requests: read within bounds of size and time, and unpacked within the same bounds."""

from __future__ import annotations

import asyncio
import io
import zlib
from dataclasses import dataclass

import zstandard
from starlette.requests import ClientDisconnect, Request

from .limits import too_large
from .problems import Problem

CODINGS = frozenset({"", "identity", "gzip", "x-gzip", "zstd"})

PIECE = 1 << 16

WINDOW = 1 << 23
"""Bytes of history that unpacking zstd may hold (its own recommendation for web content)."""


@dataclass(frozen=True, slots=True)
class Body:
    """What was sent."""

    sent: bytes
    coding: str
    limit: int

    def unpack(self) -> bytes:
        """The body itself; a Problem where it is too large or broken. Call it off the event loop."""
        match self.coding:
            case "gzip" | "x-gzip":
                return _gunzip(self.sent, self.limit)
            case "zstd":
                return _unzstd(self.sent, self.limit)
            case _:
                return self.sent


async def read(request: Request) -> Body:
    """The body of a request for JSON. Raises Problem: another type, an unknown coding, too large, too slow."""
    headers = request.headers
    kind = headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        raise Problem("unsupported_media_type", "send JSON, with `Content-Type: application/json`")
    coding = headers.get("content-encoding", "").strip().lower()
    if coding not in CODINGS:
        raise Problem(
            "unsupported_media_type",
            "a body is sent as it is, or with one of the content codings gzip and zstd",
            headers={"Accept-Encoding": "gzip, zstd"},
        )
    settings = request.app.state.service.settings
    try:
        async with asyncio.timeout(settings.body_timeout_s):
            sent = await _collect(request, settings.max_body_bytes)
    except TimeoutError:
        raise Problem("too_slow", f"the body did not arrive within {settings.body_timeout_s:g} s") from None
    return Body(sent, coding, settings.max_body_bytes)


async def _collect(request: Request, limit: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while True:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        piece = message.get("body", b"")
        size += len(piece)
        if size > limit:
            raise too_large(limit)
        pieces.append(piece)
        if not message.get("more_body", False):
            return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _gunzip(sent: bytes, limit: int) -> bytes:
    """One gzip member: a body of very many small ones would take very long."""
    member = zlib.decompressobj(wbits=31)
    try:
        out = member.decompress(sent, limit + 1)
    except zlib.error as error:
        raise Problem("bad_request", f"the body is not gzip: {error}") from None
    if len(out) > limit:
        raise too_large(limit)
    if not member.eof:
        raise Problem("bad_request", "the gzip body ends early")
    if member.unused_data:
        raise Problem("bad_request", "there is more in the body than one gzip member")
    return out


def _unzstd(sent: bytes, limit: int) -> bytes:
    """Every frame of a zstd file."""
    out = bytearray()
    decompressor = zstandard.ZstdDecompressor(max_window_size=WINDOW)
    try:
        with decompressor.stream_reader(io.BytesIO(sent), read_across_frames=True) as reader:
            while piece := reader.read(PIECE):
                out += piece
                if len(out) > limit:
                    raise too_large(limit)
    except zstandard.ZstdError as error:
        raise Problem("bad_request", f"the body is not zstd: {error}") from None
    return bytes(out)
