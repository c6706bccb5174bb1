"""Scorers of every resource and unit, in a module as a user's would be, so that workers can import them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import rewarden
from rewarden import Budget, Resource, Scorer, Unit, Verdict


def _reward(text: str) -> Verdict:
    return rewarden.scored(float(len(text)))


class Length(Scorer):
    """Characters of the completion: inline."""

    name = "length"
    reads = ("completion",)

    def __init__(self, factor: float = 1.0) -> None:
        self.factor = factor

    def config(self) -> Mapping[str, Any]:
        return {"factor": self.factor}

    def score(self, rollouts: Sequence[Any], prior: Sequence[Any]) -> list[Verdict]:
        return [rewarden.scored(self.factor * len(rollout.completion)) for rollout in rollouts]


class Slow(Length):
    """Takes two milliseconds for each."""

    name = "slow"

    def score(self, rollouts: Sequence[Any], prior: Sequence[Any]) -> list[Verdict]:
        time.sleep(0.002 * len(rollouts))
        return super().score(rollouts, prior)


class Crowd(Length):
    """Counts the threads that are in it at once."""

    name = "crowd"
    inside = 0
    most = 0

    def score(self, rollouts: Sequence[Any], prior: Sequence[Any]) -> list[Verdict]:
        Crowd.inside += 1
        Crowd.most = max(Crowd.most, Crowd.inside)
        time.sleep(0.02)
        Crowd.inside -= 1
        return super().score(rollouts, prior)


class Picky(Scorer):
    """Raises on some completions, and returns rubbish on others."""

    name = "picky"
    reads = ("completion",)

    def score(self, rollouts: Sequence[Any], prior: Sequence[Any]) -> list[Verdict]:
        out: list[Any] = []
        for rollout in rollouts:
            if rollout.completion == "raise":
                raise RuntimeError("boom")
            if rollout.completion == "rubbish":
                out.append(1.0)
            elif rollout.completion == "none":
                continue
            elif rollout.completion == "nan":
                out.append(rewarden.scored(float("nan")))
            elif rollout.completion == "object":
                out.append(rewarden.scored(1.0, evidence={"what": object()}))
            elif rollout.completion == "peek":
                out.append(rewarden.scored(rollout.reference))
            else:
                out.append(_reward(rollout.completion))
        return out


class ReferenceKind(Scorer):
    """Says what kind of reference it saw."""

    name = "reference_kind"

    def score(self, rollouts: Sequence[Any], prior: Sequence[Any]) -> list[Verdict]:
        return [rewarden.scored(1.0, explanation=type(rollout.reference).__name__) for rollout in rollouts]


class MuteError(Exception):
    """Cannot be shown."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


class Wild(Scorer):
    """Raises what nobody expects."""

    name = "wild"
    reads = ("completion",)

    def score(self, rollouts: Sequence[Any], prior: Sequence[Any]) -> list[Verdict]:
        for rollout in rollouts:
            match rollout.completion:
                case "exit":
                    raise SystemExit(3)
                case "text":
                    raise MuteError
                case "generator":
                    raise GeneratorExit
        return [_reward(rollout.completion) for rollout in rollouts]


class Half(Length):
    """Inherits name and version, and says something else."""

    def score(self, rollouts: Sequence[Any], prior: Sequence[Any]) -> list[Verdict]:
        return [rewarden.scored(0.5) for _ in rollouts]


class WildRemote(Scorer):
    """An async scorer that raises what nobody expects, or will not be cancelled."""

    name = "wild_remote"
    resource = Resource.IO
    reads = ("completion",)

    def budget(self, rollout: Any) -> Budget:
        return Budget(wall_s=0.3)

    async def score(self, rollouts: Sequence[Any], prior: Sequence[Any]) -> list[Verdict]:
        match rollouts[0].completion:
            case "exit":
                raise SystemExit(0)
            case "interrupt":
                raise KeyboardInterrupt
            case "cancelled":
                raise asyncio.CancelledError
            case "stubborn":
                for _ in range(100):
                    with contextlib.suppress(asyncio.CancelledError):
                        await asyncio.sleep(0.1)
        return [_reward(rollout.completion) for rollout in rollouts]


class Worker(Scorer):
    """Does what the completion says, in a worker of the pool."""

    name = "worker"
    resource = Resource.CPU
    reads = ("completion",)
    seen_in_caller: ClassVar[list[str]] = []

    def budget(self, rollout: Any) -> Budget:
        return Budget(cpu_s=0.3, wall_s=1.5)

    def quick(self, rollout: Any) -> Verdict | None:
        self.seen_in_caller.append(rollout.completion)
        return _reward(rollout.completion) if rollout.completion.startswith("quick") else None

    def score(self, rollouts: Sequence[Any], prior: Sequence[Any]) -> list[Verdict]:
        out = []
        for rollout in rollouts:
            match rollout.completion:
                case "spin":
                    while True:
                        pass
                case "sleep":
                    time.sleep(60)
                case "segv":
                    os.kill(os.getpid(), signal.SIGSEGV)
                case "exit":
                    os._exit(3)
                case "raise":
                    raise RuntimeError("boom")
                case "pid":
                    out.append(rewarden.scored(float(os.getpid())))
                    continue
            out.append(_reward(rollout.completion))
        return out


class Careless(Worker):
    """Its `quick` and `budget` return what they should not."""

    name = "careless"

    def budget(self, rollout: Any) -> Any:
        return None

    def quick(self, rollout: Any) -> Any:
        return 1.0


class SlowToWarm(Worker):
    """Warms for longer than an item may take."""

    name = "slow_to_warm"

    def warm(self) -> None:
        end = time.process_time() + 0.6
        while time.process_time() < end:
            pass


class Blaming(Worker):
    """As `Worker`, but says that the completion is to blame for what it costs."""

    name = "blaming"

    def on_fault(self, rollout: Any, report: Any) -> Verdict:
        return rewarden.incorrect(rewarden.Reason.TOO_COMPLEX, report.detail)


class Remote(Scorer):
    """An async scorer that counts how many calls are under way."""

    name = "remote"
    resource = Resource.IO
    reads = ("completion",)
    concurrency = 8
    calls = 0
    under_way = 0
    most = 0

    def budget(self, rollout: Any) -> Budget:
        return Budget(wall_s=0.5)

    async def score(self, rollouts: Sequence[Any], prior: Sequence[Any]) -> list[Verdict]:
        cls = type(self)
        cls.calls += 1
        cls.under_way += 1
        cls.most = max(cls.most, cls.under_way)
        try:
            if rollouts[0].completion == "raise":
                raise ConnectionError("no route to judge")
            await asyncio.sleep(30 if rollouts[0].completion == "sleep" else 0.005)
        finally:
            cls.under_way -= 1
        return [_reward(rollout.completion) for rollout in rollouts]


class Rank(Scorer):
    """A group scorer: the rank of each member by length, from 0 (shortest) to 1."""

    name = "rank"
    unit = Unit.GROUP
    reads = ("completion",)
    sizes: ClassVar[list[int]] = []

    def score(self, rollouts: Sequence[Any], prior: Sequence[Any]) -> list[Verdict]:
        self.sizes.append(len(rollouts))
        order = sorted(len(rollout.completion) for rollout in rollouts)
        most = max(1, len(order) - 1)
        return [rewarden.scored(order.index(len(rollout.completion)) / most) for rollout in rollouts]


class PooledRank(Rank):
    """The same, in the pool."""

    name = "pooled_rank"
    resource = Resource.CPU


class Share(Scorer):
    """A batch scorer: each completion's share of all characters."""

    name = "share"
    unit = Unit.BATCH
    reads = ("completion",)

    def score(self, rollouts: Sequence[Any], prior: Sequence[Any]) -> list[Verdict]:
        total = sum(len(rollout.completion) for rollout in rollouts)
        return [rewarden.scored(len(rollout.completion) / total) for rollout in rollouts]


class Resident(Scorer):
    """A GPU-like scorer: batches, one call at a time."""

    name = "resident"
    resource = Resource.GPU
    reads = ("completion",)
    batches: ClassVar[list[int]] = []

    def score(self, rollouts: Sequence[Any], prior: Sequence[Any]) -> list[Verdict]:
        self.batches.append(len(rollouts))
        return [_reward(rollout.completion) for rollout in rollouts]


class Boxed(Resident):
    """A scorer that owns its processes, called from threads."""

    name = "boxed_program"
    resource = Resource.SANDBOX
    concurrency = 4

    def score(self, rollouts: Sequence[Any], prior: Sequence[Any]) -> list[Verdict]:
        if rollouts[0].completion == "sleep":
            time.sleep(0.5)
        return super().score(rollouts, prior)


class Bonus(Scorer):
    """Adds one to what an earlier part said."""

    name = "bonus"
    reads = ()

    def __init__(self, on: str = "length") -> None:
        self.on = on

    def config(self) -> Mapping[str, Any]:
        return {"on": self.on}

    def score(self, rollouts: Sequence[Any], prior: Sequence[Any]) -> list[Verdict]:
        return [rewarden.scored((before[self.on].reward or 0.0) + 1.0) for before in prior]
