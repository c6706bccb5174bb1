"""Who may do what: checked before anything of a request but its head is read."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from .keys import Scope, presented
from .problems import Problem
from .reject import reject

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Send
    from starlette.types import Scope as Asgi

    from .service import Service

OPEN = frozenset({"/livez", "/readyz", "/openapi.json"})
"""Paths that need no key: they say nothing about anybody's rollouts."""

OPEN_UNDER = ("/ui",)
"""Folders of files that need no key: the page asks for one, and for what it shows with it."""

SCOPES: dict[str, tuple[Scope, ...]] = {"/metrics": ("metrics", "admin"), "/v1/status": ("admin",)}
"""Paths that need another scope than `score`. Any of those named will do."""

UNDER: dict[str, tuple[Scope, ...]] = {"/v1/admin/": ("admin",)}

_SCORE: tuple[Scope, ...] = ("score",)
_HERE = frozenset({"localhost", "127.0.0.1", "::1"})


class Access:
    """The layer that looks at keys. Where there are none, it answers this machine only."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self.app = app
        self.service = service

    async def __call__(self, scope: Asgi, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            try:
                self._check(scope)
            except Problem as problem:
                await reject(scope, receive, send, problem)
                return
        await self.app(scope, receive, send)

    def _check(self, scope: Asgi) -> None:
        ring = self.service.keys
        headers = dict(scope["headers"])
        if ring is None:
            if self.service.settings.loopback:
                _only_here(headers)
            return
        path = scope["path"]
        if path in OPEN or any(path == folder or path.startswith(f"{folder}/") for folder in OPEN_UNDER):
            return
        text = presented(headers)
        if text is None:
            raise Problem(
                "no_key",
                "show an API key: `Authorization: Bearer rw_...`",
                headers={"WWW-Authenticate": 'Bearer realm="rewarden"'},
            )
        key = ring.find(text)
        if key is None:
            raise Problem(
                "bad_key",
                "the API key is unknown, revoked or has expired",
                headers={"WWW-Authenticate": 'Bearer realm="rewarden", error="invalid_token"'},
            )
        wanted = needed(path)
        if not set(wanted) & set(key.scopes):
            raise Problem("wrong_scope", f"this needs a key with the scope {' or '.join(wanted)}")
        scope["rewarden.key"] = key


def needed(path: str) -> tuple[Scope, ...]:
    """The scopes of which a key needs one for this path."""
    for prefix, scopes in UNDER.items():
        if path.startswith(prefix):
            return scopes
    return SCOPES.get(path, _SCORE)


def _only_here(headers: dict[bytes, bytes]) -> None:
    """Refuse what a page of another site can make a browser on this machine send, also under a name of its own."""
    host = headers.get(b"host", b"").decode("latin-1")
    if host and _name(f"//{host}") not in _HERE:
        raise Problem(
            "foreign_host",
            "without API keys the service answers to localhost, 127.0.0.1 and [::1] only; start it with --keys",
        )
    origin = headers.get(b"origin")
    if origin is not None and _netloc(origin.decode("latin-1")) != host.lower():
        raise Problem("foreign_host", "without API keys the service answers no pages of other sites")


def _name(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def _netloc(url: str) -> str | None:
    try:
        return urlsplit(url).netloc.lower()
    except ValueError:
        return None
