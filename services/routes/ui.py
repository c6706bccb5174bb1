"""The page `/ui`: what `/v1/status` says, for people, and a rollout to try. It asks this service and nobody else."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from fastapi import APIRouter, Response
from fastapi.responses import RedirectResponse

router = APIRouter(include_in_schema=False)

FOLDER = Path(__file__).parents[1] / "ui"

HEADERS = {
    # The page shows what models and strangers wrote. Should any of it become markup, it still can run, load and send
    # nothing. The icon is a data: address.
    "Content-Security-Policy": (
        "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


@router.get("/ui")
async def page() -> Response:
    """The page."""
    return _file("index.html", "text/html")


@router.get("/ui/")
async def slash() -> Response:
    """Leads to the page, whose links are relative to `/ui`."""
    return RedirectResponse("../ui")


@router.get("/ui/style.css")
async def style() -> Response:
    """How the page looks."""
    return _file("style.css", "text/css")


@router.get("/ui/script.js")
async def script() -> Response:
    """What the page does."""
    return _file("script.js", "text/javascript")


def _file(name: str, media_type: str) -> Response:
    return Response(_content(name), media_type=media_type, headers=HEADERS)


@cache
def _content(name: str) -> bytes:
    return (FOLDER / name).read_bytes()
