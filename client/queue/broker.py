"""Waking workers through Celery.

A message says only that there is work of a kind; what the work is, the ledger knows. A message that is lost is made up
for by the next `reconcile`, and one too many finds nothing to do. So messages are acknowledged as they come, have no
results, and need no priorities, visibility time-outs or dead-letter queue of their own (docs/design/005-queue.md).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from ...core.errors import ServiceError
from ...core.extras import missing

log = logging.getLogger(__name__)

TASK = "rewarden.grade"
"""Its one argument is the kind of work."""

MOST = 16
"""Messages of a kind that are out at most: a worker that is awake goes on until nothing is ready, so more would only
cost time. Workers that are idle all the same are woken by the next `reconcile`."""


def queue_of(kind: str) -> str:
    """The Celery queue that wakes workers for a kind of work."""
    return f"rewarden.{kind}"


def celery_app(url: str, *, prefix: str = "rw:") -> Any:
    """The Celery application on the Redis at `url`. Its settings are the same for those who wake and those who work."""
    remedy = missing(("celery",))
    if remedy:
        raise ServiceError(f"the queue needs packages that are not installed: {remedy}")
    from celery import Celery

    if urlsplit(url).scheme == "rediss" and "ssl_cert_reqs" not in url:
        url += ("&" if "?" in url else "?") + "ssl_cert_reqs=required"
    if urlsplit(url).scheme == "unix":
        url = f"redis+socket{url.removeprefix('unix')}"
    app = Celery("rewarden", broker=url, set_as_current=False)
    app.conf.update(
        task_acks_late=False,
        task_ignore_result=True,
        task_serializer="json",
        accept_content=["json"],
        task_create_missing_queues=True,
        worker_prefetch_multiplier=1,
        worker_disable_prefetch=False,
        worker_hijack_root_logger=False,
        worker_send_task_events=False,
        worker_enable_remote_control=False,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_transport_options={
            "global_keyprefix": f"{prefix}celery:",
            "socket_timeout": 10,
            "socket_connect_timeout": 10,
            "socket_keepalive": True,
            "health_check_interval": 15,
            "retry_on_timeout": True,
            # Sends fail fast: `reconcile` makes up for them, and nobody should wait.
            "max_retries": 1,
        },
        task_publish_retry=False,
    )
    return app


class Waker:
    """Sends wake-up messages. Failing to is no fault: workers look for themselves after a while."""

    def __init__(self, url: str, *, prefix: str = "rw:") -> None:
        self._app = celery_app(url, prefix=prefix)
        self._prefix = prefix

    async def wake(self, counts: Mapping[str, int]) -> None:
        """Say that so many batches of each kind are ready. Never raises."""
        if any(counts.values()):
            await asyncio.to_thread(self._send, dict(counts))

    def _send(self, counts: Mapping[str, int]) -> None:
        try:
            with self._app.producer_pool.acquire(block=True, timeout=10) as producer:
                for kind, count in counts.items():
                    for _ in range(min(count, MOST)):
                        self._app.send_task(
                            TASK, args=(kind,), queue=queue_of(kind), producer=producer, ignore_result=True
                        )
        except Exception as error:  # noqa: BLE001 - whatever is wrong with the broker, the ledger has the work
            log.warning("no worker could be woken: %s", error)

    def messages_of(self, kind: str) -> str:
        """The Redis list with the messages of this kind that nobody has taken yet."""
        return f"{self._prefix}celery:{queue_of(kind)}"

    def close(self) -> None:
        """Give the connections back."""
        self._app.close()
