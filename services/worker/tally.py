"""What all workers of a queue have graded in the last minutes, added up in Redis: the `Record` of the queue.

Numbers for people and dashboards. What is lost of them when Redis is away is lost; no verdict depends on them.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import orjson

from ...client.queue.ledger import Ledger
from ...core.rollout import Rollout
from ...core.verdict import Graded
from ..record import LAST, STEP_S, STEPS, slow_row, ungraded_row

log = logging.getLogger(__name__)

_KEEP_S = STEP_S * STEPS * 2


class Tally:
    """The shared record on the Redis of a ledger."""

    def __init__(self, ledger: Ledger, *, slow_s: float = 1.0) -> None:
        self._redis = ledger.redis
        self._prefix = f"{ledger.prefix}tally:"
        self._slow_s = slow_s

    async def add(self, recipe: str, rollouts: Sequence[Rollout], graded: Sequence[Graded]) -> None:
        """A batch was graded."""
        now = time.time()
        counts = Counter(
            (one.verdict.scorer.name if one.verdict.scorer is not None else "none", one.verdict.outcome.value)
            for one in graded
        )
        groups = {rollout.group_key for rollout in rollouts} - {None}
        pairs = list(zip(rollouts, graded, strict=True))
        missing = [(rollout, one) for rollout, one in pairs if one.verdict.reward is None]
        touched = {rollout.group_key for rollout, _ in missing} - {None}
        slow = [slow_row(recipe, rollout, one, now) for rollout, one in pairs if one.trace.seconds > self._slow_s]
        step = f"{self._prefix}{int(now) // STEP_S * STEP_S}"
        async with self._redis.pipeline(transaction=False) as pipe:
            pipe.hincrby(step, "rollouts", len(graded))
            pipe.hincrby(step, "cached", sum(one.trace.cached for one in graded))
            pipe.hincrbyfloat(step, "seconds", sum(one.trace.seconds for one in graded))
            for (scorer, outcome), number in counts.items():
                pipe.hincrby(step, f"outcome:{outcome}", number)
                pipe.hincrby(f"{self._prefix}verdicts", f"{scorer} {outcome}", number)
            pipe.expire(step, _KEEP_S)
            for reason, number in Counter(str(one.verdict.reason) for _, one in missing).items():
                pipe.hincrby(f"{self._prefix}reasons", reason, number)
            pipe.hincrby(f"{self._prefix}groups", "seen", len(groups))
            pipe.hincrby(f"{self._prefix}groups", "touched", len(touched))
            for name, rows in (("ungraded", [ungraded_row(recipe, one, now) for _, one in missing]), ("slow", slow)):
                if rows:
                    pipe.lpush(f"{self._prefix}{name}", *(orjson.dumps(row) for row in rows[-LAST:]))
                    pipe.ltrim(f"{self._prefix}{name}", 0, LAST - 1)
            await pipe.execute()

    async def read(self) -> dict[str, Any]:
        """In the shape of `Record.to_dict`, with the reasons and groups so far."""
        now = int(time.time()) // STEP_S * STEP_S
        starts = [now - STEP_S * back for back in range(STEPS - 1, -1, -1)]
        async with self._redis.pipeline(transaction=False) as pipe:
            for start in starts:
                pipe.hgetall(f"{self._prefix}{start}")
            pipe.hgetall(f"{self._prefix}verdicts")
            pipe.hgetall(f"{self._prefix}reasons")
            pipe.hgetall(f"{self._prefix}groups")
            pipe.lrange(f"{self._prefix}ungraded", 0, LAST - 1)
            pipe.lrange(f"{self._prefix}slow", 0, LAST - 1)
            *steps, verdicts, reasons, groups, ungraded, slow = await pipe.execute()
        scorers: dict[str, dict[str, int]] = {}
        for name, number in sorted(_counts(verdicts).items()):
            scorer, _, outcome = name.partition(" ")
            scorers.setdefault(scorer, {})[outcome] = number
        return {
            "step_s": STEP_S,
            "buckets": [_bucket(start, step) for start, step in zip(starts, steps, strict=True) if step],
            "scorers": scorers,
            "reasons": _counts(reasons),
            "groups": {"seen": 0, "touched": 0, **_counts(groups)},
            "ungraded": [orjson.loads(row) for row in ungraded],
            "slow": [orjson.loads(row) for row in slow],
        }


def _counts(found: dict[bytes, bytes]) -> dict[str, int]:
    return {name.decode(): int(number) for name, number in found.items()}


def _bucket(start: int, step: dict[bytes, bytes]) -> dict[str, Any]:
    return {
        "start": start,
        "rollouts": int(step.get(b"rollouts", 0)),
        "cached": int(step.get(b"cached", 0)),
        "seconds": round(float(step.get(b"seconds", 0)), 6),
        "outcomes": {name.decode()[8:]: int(number) for name, number in step.items() if name.startswith(b"outcome:")},
    }
