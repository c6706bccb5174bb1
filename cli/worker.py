"""`rewarden worker`: grade what waits in a queue."""

from __future__ import annotations

import os
import socket
import uuid
from typing import TYPE_CHECKING, Annotated

import typer

from .options import recipes_of

if TYPE_CHECKING:
    from collections.abc import Mapping

NAME = "REWARDEN_WORKER"
"""The variable in which a supervisor names its worker, so that it can say which one is dead."""


NEEDS = ("celery", "redis", "structlog")


def worker(
    queue: Annotated[
        str,
        typer.Option(
            metavar="URL", envvar="REWARDEN_QUEUE", help="The Redis with the queue: redis://, rediss://, unix://."
        ),
    ] = "redis://127.0.0.1:6379/0",
    queues: Annotated[
        str, typer.Option(metavar="KINDS", help="Kinds of work, such as math,text; all when not given.")
    ] = "",
    recipe: Annotated[
        list[str] | None,
        typer.Option(metavar="ALIAS=FILE", help="A recipe of yours (.toml) and the name by which jobs ask for it."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes that grade; one for each core when not given.")
    ] = None,
    slots: Annotated[int, typer.Option(min=1, help="Batches under way at once.")] = 2,
    metrics: Annotated[
        str, typer.Option(metavar="ADDRESS:PORT", help="Serve Prometheus metrics there, such as 127.0.0.1:9464.")
    ] = "",
) -> int:
    """Grade what waits in a queue, until stopped. The worker is started again when it dies.

    Exit status: 0 stopped in good order, 2 usage.
    """
    from ..core.errors import RecipeError, ServiceError
    from ..core.extras import missing

    remedy = missing(NEEDS)
    if remedy:
        raise ServiceError(f"a worker needs packages that are not installed: {remedy}")
    recipes = recipes_of(recipe or [])
    kinds = tuple(kind for kind in (part.strip() for part in queues.split(",")) if kind)
    if queues and not kinds:
        raise RecipeError(f"--queues {queues!r} names no kind of work; give for example math,text")
    address = _address(metrics)
    name = os.environ.get(NAME)
    if name is None:
        return _supervise(queue)
    import orjson

    from ..core.recipe import Recipe
    from ..services import logs
    from ..services.embedded import RECIPES
    from ..services.worker.worker import WorkerSettings, run

    handed_on = orjson.loads(os.environ.get(RECIPES, "{}"))
    recipes |= {alias: Recipe.model_validate(recipe) for alias, recipe in handed_on.items()}
    logs.configure()
    settings = WorkerSettings(
        queue, kinds=kinds, recipes=recipes, workers=workers, slots=slots, name=name, metrics=address
    )
    run(settings)
    return 0


def _address(text: str) -> tuple[str, int] | None:
    from ..core.errors import ServiceError

    if not text:
        return None
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ServiceError(f"--metrics {text}: give ADDRESS:PORT, such as 127.0.0.1:9464")
    return host.strip("[]") or "127.0.0.1", int(port)


def _supervise(queue: str) -> int:
    """Run this same command as a child, again whenever it dies, and hand its work to others at once."""
    import signal
    import sys
    import threading

    from ..services.embedded import worker_command
    from ..services.supervisor import Supervisor

    def named() -> Mapping[str, str]:
        return {NAME: f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:6]}"}

    def died(environment: Mapping[str, str], _: int) -> None:
        bury(queue, environment[NAME])

    supervisor = Supervisor(worker_command(sys.argv[sys.argv.index("worker") + 1 :]), environment=named, died=died)
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: stopped.set())
    supervisor.start()
    while not stopped.wait(0.2):
        if supervisor.status is not None:
            return supervisor.status
    supervisor.stop()
    return 0


def bury(queue: str, worker: str) -> None:
    """Say that a worker is dead."""
    import asyncio

    from ..client.queue.connection import connect
    from ..client.queue.ledger import Ledger

    async def say() -> None:
        ledger = Ledger(connect(queue))
        try:
            await ledger.bury(worker)
        finally:
            await ledger.close()

    asyncio.run(say())
