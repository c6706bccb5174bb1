"""A connection to Redis that outlives restarts, pauses and broken lines."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ...core.errors import ServiceError
from ...core.extras import missing

if TYPE_CHECKING:
    from redis.asyncio import Redis

SOCKET_S = 10.0
"""How long an answer of Redis is waited for."""

TRIES = 8
"""Of one command over a line that breaks: about 15 s, in which a Redis that is restarted is back."""


def connect(url: str) -> Redis:
    """A client of the Redis at `redis://` or (with TLS) `rediss://[:PASSWORD@]HOST[:PORT][/DATABASE]`, or `unix://`.

    Every command of ours may be sent twice without harm, so all are tried again. Raises ServiceError for another URL.
    """
    remedy = missing(("redis",))
    if remedy:
        raise ServiceError(f"the queue needs packages that are not installed: {remedy}")
    from redis.asyncio import Redis
    from redis.asyncio.retry import Retry
    from redis.backoff import ExponentialWithJitterBackoff
    from redis.exceptions import BusyLoadingError, ConnectionError, ReadOnlyError, TimeoutError  # noqa: A004

    if urlsplit(url).scheme not in ("redis", "rediss", "unix"):
        raise ServiceError(f"{redacted(url)!r} is no Redis; give redis://HOST:PORT/0, rediss:// for TLS")
    again = (BusyLoadingError, ConnectionError, ReadOnlyError, TimeoutError)
    retry = Retry(ExponentialWithJitterBackoff(base=0.05, cap=3.0), TRIES, supported_errors=again)
    try:
        client: Redis = Redis.from_url(
            url,
            socket_timeout=SOCKET_S,
            socket_connect_timeout=SOCKET_S,
            health_check_interval=15,
            retry=retry,
            **({} if url.startswith("unix") else {"socket_keepalive": True}),
        )
    except ValueError as error:
        raise ServiceError(f"{redacted(url)!r} cannot be used: {error}") from None
    return client


def redacted(url: str) -> str:
    """The URL without its password."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=f"***@{host}" if parts.password else host, query="").geturl()
