"""A score from a service over HTTP: an async scorer, whose calls overlap."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.request import Request, urlopen

from rewarden.core.budget import Budget
from rewarden.core.extraction import visible
from rewarden.core.reasons import Reason
from rewarden.core.scorer import Prior, Resource, Scorer
from rewarden.core.verdict import Verdict, scored, ungraded


class RemoteScore(Scorer):
    """Posts `{"text": ...}` to `url` and takes `{"score": ...}`, a number in [0, 1], as the reward.

    The engine calls it from its event loop, `concurrency` at a time, and gives up after the wall seconds of `budget`:
    then the rollout is `ungraded: deadline`. What fails here is ungraded too: a service that is down is no 0.
    """

    name = "remote_score"
    resource = Resource.IO
    reads = ("completion",)
    concurrency = 16

    def __init__(self, url: str, timeout_s: float = 30.0) -> None:
        if not url.startswith(("http://", "https://")):
            raise ValueError(f"url must start with http:// or https://, not {url!r}")
        self.url = url
        self.timeout_s = timeout_s

    def config(self) -> Mapping[str, Any]:
        """What is part of the cache key. How long to wait decides no reward."""
        return {"url": self.url}

    def budget(self, rollout: Any) -> Budget:
        """Seconds until a call is given up."""
        return Budget(cpu_s=self.timeout_s, wall_s=self.timeout_s)

    async def score(self, rollouts: Sequence[Any], prior: Sequence[Prior]) -> Sequence[Verdict]:
        """One verdict for each rollout, asked for at once."""
        return await asyncio.gather(*(self._one(visible(rollout.completion).text) for rollout in rollouts))

    async def _one(self, text: str) -> Verdict:
        try:
            answer = await asyncio.to_thread(self._post, text)
        except OSError as error:
            return ungraded(Reason.BACKEND_UNAVAILABLE, f"{self.url}: {error}")
        try:
            reward = float(json.loads(answer)["score"])
        except (KeyError, TypeError, ValueError):
            return ungraded(Reason.JUDGE_FAILED, f"{self.url} gave no score: {answer[:100]!r}")
        if not (math.isfinite(reward) and 0 <= reward <= 1):
            return ungraded(Reason.JUDGE_FAILED, f"{self.url} gave a score outside [0, 1]: {reward}")
        return scored(reward)

    def _post(self, text: str) -> bytes:
        request = Request(self.url, json.dumps({"text": text}).encode(), {"Content-Type": "application/json"})  # noqa: S310 - __init__ lets only http pass
        with urlopen(request, timeout=self.timeout_s) as response:  # noqa: S310 - same
            content: bytes = response.read(1 << 20)
        return content
