"""What the queue costs: CPU that jobs add to a rollout.

    python -m rewarden.benchmarks.jobs [--rows 5120] [--times 5]

The same real rollouts, new ones for every measurement, go through `Engine.score` in this process; through
`RewardClient` and Redis to a worker; and as jobs through `RewardClient`, `rewarden serve` and Redis to that worker.
Jobs have 512 rollouts, which the queue cuts into batches of 64. CPU is that of this process, of the service, of Redis,
of the worker and of their children, together; what a way adds is its CPU less that of the engine on the same rollouts.
The figures are medians of the rounds.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import rewarden
from rewarden.client import RewardClient
from rewarden.client.queue.batches import SHARES
from rewarden.core.verdict import Verdict

from . import data, results, serving
from .service import spent

BATCH = 64
"""Rollouts in a batch."""

JOB = BATCH * SHARES
"""Rollouts in a job, so that it is cut into such batches."""


@dataclass
class Way:
    """One way to the worker."""

    ask: Callable[[list[rewarden.Rollout]], list[Verdict]]
    added: list[float] = field(default_factory=list)
    """Microseconds of CPU for a rollout, in each round."""
    parts: list[list[float]] = field(default_factory=list)
    """The whole of it, by process."""

    def by_process(self) -> str:
        """Where it went."""
        parts = zip(("client", "Redis", "worker", "service"), zip(*self.parts, strict=True), strict=True)
        return ", ".join(f"{name} {results.middle(list(each)):.0f} us" for name, each in parts)


def overhead(count: int, times: int) -> list[results.Figure]:
    """CPU that the queue adds to a rollout, without and with HTTP."""
    pairs = data.stream(2 * count * times + 2 * JOB)
    first, pairs = pairs[: 2 * JOB], pairs[2 * JOB :]
    alone: list[float] = []
    with (
        rewarden.Engine("math", workers=2) as engine,
        serving.workers() as (url, pids),
        serving.service("--queue", url) as service,
        RewardClient(url, recipe="math", batch_size=JOB) as direct,
        RewardClient(service.url, recipe="math") as client,
    ):

        def through_jobs(rollouts: Sequence[rewarden.Rollout]) -> list[Verdict]:
            jobs = [client.start_job(rollouts[at : at + JOB]) for at in range(0, len(rollouts), JOB)]
            return [verdict for job in jobs for verdict in job.result()]

        warm = serving.rollouts(first)
        engine.warm()
        engine.score(warm)
        direct.score(warm[:JOB])
        through_jobs(warm[JOB:])
        ways = (Way(direct.score), Way(through_jobs))
        for at in range(0, 2 * count * times, count):
            way = ways[at // count % 2]
            # Objects of their own for each: a rollout may remember what was asked of it.
            here, there = (serving.rollouts(pairs[at : at + count], at) for _ in range(2))
            by_engine = spent([], engine.score, here)
            by_worker = spent([*pids, service.pid], way.ask, there)
            assert by_engine.result == by_worker.result, "the worker says other than the engine"
            alone.append(by_engine.total / count * 1e6)
            way.added.append((by_worker.total - by_engine.total) / count * 1e6)
            way.parts.append([seconds / count * 1e6 for seconds in by_worker.each])
    queued, through = ways
    return [
        results.plain("CPU of the engine, in this process", results.middle(alone), "us"),
        results.plain("CPU through the queue", queued.by_process()),
        results.at_most(f"added by the queue in batches of {BATCH}", results.middle(queued.added), 150, "us"),
        results.plain("CPU through HTTP and the queue", through.by_process()),
        results.at_most(f"added by jobs over HTTP in batches of {BATCH}", results.middle(through.added), 150, "us"),
    ]


def main() -> None:
    """Measure both ways."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5120)
    parser.add_argument("--times", type=int, default=5, help="how often each is measured")
    options = parser.parse_args()
    data.require()
    results.save("jobs", overhead(options.rows, options.times), **vars(options))


if __name__ == "__main__":
    main()
