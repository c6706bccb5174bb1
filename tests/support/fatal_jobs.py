"""Jobs for the recipe `fatal`, which only this process and workers with `--recipe fatal=fatal_scorers:Fatal` know."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from rewarden import Rollout
from rewarden.client.queue.transport import QueueTransport
from rewarden.client.transport import Request
from rewarden.core.catalog import Catalog
from rewarden.core.recipe import load

WORKER = ("--recipe", "fatal=fatal_scorers:Fatal")


async def start_fatal(url: str, completions: Sequence[str], **options: Any) -> str:
    """The id of a job with these completions."""
    transport = QueueTransport(url, catalog=Catalog({"fatal": load("fatal_scorers:Fatal", local=True)}))
    made = [Rollout(id=f"f{row}", completion=text) for row, text in enumerate(completions)]
    job = await transport.start(Request(recipe="fatal", rollouts=made, key=uuid.uuid4().hex, **options))
    await transport.close()
    return job
