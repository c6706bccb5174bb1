"""The page at `/ui`: what the service and its queue are doing, and a form to try one rollout.

Files without a build step, that load nothing from elsewhere. They need no key; what they show does.
"""

from __future__ import annotations

from importlib.resources import files

from fastapi import APIRouter, Response

from ..problems import Problem

router = APIRouter(include_in_schema=False)

_TYPES = {
    "index.html": "text/html; charset=utf-8",
    "style.css": "text/css; charset=utf-8",
    "script.js": "text/javascript; charset=utf-8",
}

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}

_FILES = {name: (files(__package__.rpartition(".")[0]) / "ui" / name).read_bytes() for name in _TYPES}


@router.get("/ui")
@router.get("/ui/{name}")
async def page(name: str = "index.html") -> Response:
    """The page, and its two files."""
    if name not in _FILES:
        raise Problem("not_found", "the page is at /ui")
    return Response(_FILES[name], headers=_HEADERS, media_type=_TYPES[name])
