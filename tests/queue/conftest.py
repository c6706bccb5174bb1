"""A private Redis for all tests of the queue, and a ledger of its own for each."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from rewarden.client.queue.connection import connect
from rewarden.client.queue.ledger import Ledger
from rewarden.client.queue.transport import QueueTransport
from rewarden.services.embedded import EmbeddedRedis


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """The address of a Redis that lives as long as the tests."""
    folder = Path(tempfile.mkdtemp(prefix="rw-"))  # a socket's path must be short
    server = EmbeddedRedis(folder)
    server.start()
    yield server.url
    server.stop()
    shutil.rmtree(folder)


@pytest.fixture
async def ledger(redis_url: str) -> AsyncIterator[Ledger]:
    """A ledger that nobody else uses."""
    made = Ledger(connect(redis_url), prefix=f"{uuid.uuid4().hex}:", lease_s=30)
    yield made
    await made.close()


@pytest.fixture
async def transport(redis_url: str) -> AsyncIterator[QueueTransport]:
    """A transport over a ledger that nobody else uses."""
    made = QueueTransport(redis_url, prefix=f"{uuid.uuid4().hex}:")
    yield made
    await made.close()
