"""Verdicts by content in Redis: what one worker has graded, no other grades again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import orjson

from ...core.cache import Key, MemoryCache
from ...core.verdict import Verdict

if TYPE_CHECKING:
    from redis import Redis

EXPIRE_S = 3 * 3600
"""How long a verdict is remembered: policies repeat themselves within a step far more than over days."""

TIMEOUT_S = 1.0
"""A cache that answers later than this would cost more than it saves; the engine goes on without it."""


_PUT = """
for i, name in ipairs(KEYS) do
    redis.call('SET', name, ARGV[i + 1], 'NX', 'EX', ARGV[1])
end
"""
"""One command for many verdicts: to write and to answer one for each costs three times as much."""


class RedisCache:
    """A cache that workers share, with the last verdicts in memory before it. The first verdict written stays."""

    def __init__(self, url: str, *, prefix: str = "rw:", expire_s: int = EXPIRE_S) -> None:
        from redis import Redis

        self._redis: Redis = Redis.from_url(url, socket_timeout=TIMEOUT_S, socket_connect_timeout=TIMEOUT_S)
        self._prefix = f"{prefix}verdict:".encode()
        self._expire_s = expire_s
        self._put = self._redis.register_script(_PUT)
        self._near = MemoryCache(50_000)

    def get_many(self, keys: Sequence[Key]) -> dict[Key, Verdict]:
        found = self._near.get_many(keys)
        far = [key for key in keys if key not in found]
        if far:
            values: Any = self._redis.mget([self._prefix + key for key in far])
            fetched = {
                key: Verdict.from_dict(orjson.loads(value))
                for key, value in zip(far, values, strict=True)
                if value is not None
            }
            self._near.put_many(fetched)
            found.update(fetched)
        return found

    def put_many(self, verdicts: Mapping[Key, Verdict]) -> None:
        self._near.put_many(verdicts)
        names = [self._prefix + key for key in verdicts]
        self._put(keys=names, args=[self._expire_s, *(verdict.to_json() for verdict in verdicts.values())])

    def close(self) -> None:
        """Give the connections back."""
        self._redis.close()
