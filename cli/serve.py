"""`rewarden serve`: grade for others, over HTTP."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from .console import say
from .options import pairs, recipes_of

NEEDS = ("fastapi", "httptools", "httpx", "prometheus-client", "structlog", "uvicorn", "uvloop")


def serve(
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8321,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND", help="Do this kind of work alone, such as math or text. Again for each."),
    ] = None,
    recipe: Annotated[
        list[str] | None,
        typer.Option(metavar="ALIAS=FILE", help="Offer a recipe of your own, .toml file or module:Scorer, as ALIAS."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Worker processes; one for each CPU when not given.", show_default=False)
    ] = None,
    cache: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Keep verdicts in this file. Default: in memory.")
    ] = None,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Grade equal rollouts again.")] = False,
    keys: Annotated[
        Path | None, typer.Option(metavar="FILE", help="API keys; make them with `rewarden keys create`.")
    ] = None,
    route: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND=TARGET", help="Who does a kind of work (or *): http://HOST:PORT, or queue. Again for each."
        ),
    ] = None,
    queue: Annotated[
        str | None,
        typer.Option(
            metavar="WHERE",
            envvar="REWARDEN_QUEUE",
            help="Take jobs: `embedded`, or a Redis (redis://HOST:PORT/0).",
            show_default=False,
        ),
    ] = None,
    queue_dir: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where an embedded queue is kept.", show_default=False)
    ] = None,
    keep_h: Annotated[
        float, typer.Option(min=0.01, help="Hours that the verdicts of a finished job can be read.")
    ] = 6.0,
    max_requests: Annotated[int, typer.Option(min=1, help="Requests under way; more are told to come later.")] = 256,
    max_rollouts: Annotated[int, typer.Option(min=1, help="Rollouts in one request.")] = 4096,
    max_body_mb: Annotated[int, typer.Option(min=1, help="MiB of one body.")] = 16,
    drain_s: Annotated[float, typer.Option(min=0, help="Seconds for requests under way to end at a stop.")] = 30.0,
    log_level: Annotated[str, typer.Option(help="DEBUG, INFO, WARNING or ERROR.")] = "INFO",
) -> None:
    """Grade for others, over HTTP.

    Without --keys it listens on this machine only. SIGTERM lets requests under way end. Peers of --route are shown the
    API key in REWARDEN_PEER_KEY.

    Exit status: 0 stopped by a signal, 2 it could not start.
    """
    from ..core.errors import ServiceError
    from ..core.extras import missing

    if missing(NEEDS):
        raise ServiceError("a service needs packages that are not installed: pip install 'rewarden[serve]'")
    if cache is not None and no_cache:
        raise ServiceError("--cache and --no-cache contradict each other; give one")
    from ..services import logs, server
    from ..services.settings import MIB, Settings

    if log_level.upper() not in ("DEBUG", "INFO", "WARNING", "ERROR"):
        raise ServiceError(f"--log-level is DEBUG, INFO, WARNING or ERROR, not {log_level}")
    logs.configure(log_level.upper())
    settings = Settings(
        host=host,
        port=port,
        only=tuple(only or ()),
        recipes=recipes_of(recipe or []),
        workers=workers,
        cache=None if no_cache else cache or "memory",
        keys=keys,
        routes=pairs(route or [], "--route", "KIND=TARGET"),
        peer_key=os.environ.get("REWARDEN_PEER_KEY"),
        queue=queue,
        queue_dir=queue_dir,
        keep_s=keep_h * 3600,
        max_requests=max_requests,
        max_rollouts=max_rollouts,
        max_body_bytes=max_body_mb * MIB,
        drain_s=drain_s,
    )
    server.run(settings, ready=lambda url: say(f"listening on {url}"))
