"""Workers as the command starts them, their processes within reach, and rollouts with what an undisturbed run says."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from service import PATIENCE_S, until

from rewarden import AsyncRewardClient, Reason, RewardClient, Verdict
from rewarden.services.embedded import worker_command

WAIT_S = 90.0
"""How long a job of these tests may take at most, whatever is done to it."""


def rollouts(count: int, seed: int = 0, hard: float = 0.02) -> list[dict[str, Any]]:
    """Mixed work, the same for the same seed: math of which some needs the last layer, choices, texts, majorities."""
    rng = random.Random(seed)
    made: list[dict[str, Any]] = []
    while len(made) < count:
        i, dice = len(made), rng.random()
        a, b = rng.randrange(50), rng.randrange(50)
        row: dict[str, Any] = {"id": f"r{seed}-{i}"}
        if dice < hard:  # for computer algebra, in the pool
            a = rng.randrange(1, 10_000)
            row |= {"completion": f"\\boxed{{\\int_0^{{{a}}} x dx}}", "reference": f"\\frac{{{a**2}}}{{2}}"}
        elif dice < 0.6:
            row |= {"completion": f"So it is \\boxed{{{a}+{b}}}.", "reference": str(a + b + rng.randrange(2))}
        elif dice < 0.75:
            row |= {"completion": f"The answer is ({rng.choice('ABCD')}).", "reference": "B", "scorer": "choice"}
        elif dice < 0.9:
            row |= {"completion": f"<answer>a tale of {a % 3} cities</answer>", "reference": "a tale of 2 cities"}
            row |= {"scorer": "text"}
        else:
            made += [
                {
                    "id": f"r{seed}-{i}-{member}",
                    "completion": f"\\boxed{{{rng.randrange(3)}}}",
                    "group": f"g{seed}-{i}",
                    "scorer": "majority",
                }
                for member in range(min(4, count - len(made)))
            ]
            continue
        made.append(row)
    return made


@cache
def undisturbed(count: int, seed: int = 0, hard: float = 0.02) -> tuple[Verdict, ...]:
    """The verdicts on `rollouts` of this process, where nothing dies."""
    with RewardClient("local") as client:
        return tuple(client.score(rollouts(count, seed, hard)))


def differences(found: Sequence[Verdict], wanted: Sequence[Verdict], allowed: Sequence[Reason] = ()) -> list[Any]:
    """Where the verdicts are not those of the undisturbed run, and not ungraded for one of the `allowed` reasons."""
    return [
        (row, one, other)
        for row, (one, other) in enumerate(zip(found, wanted, strict=True))
        if one.to_dict() != other.to_dict() and not (one.reward is None and one.reason in allowed)
    ]


def collected(target: str, job: str, wait_s: float = WAIT_S) -> list[Verdict]:
    """The verdicts of a job in order of their rows. Each has come exactly once, within `wait_s`."""
    return asyncio.run(_collected(target, job, wait_s))


async def _collected(target: str, job: str, wait_s: float) -> list[Verdict]:
    found: dict[int, Verdict] = {}
    async with asyncio.timeout(wait_s), AsyncRewardClient(target, retries=1000, retry_for_s=wait_s) as client:
        attached = client.attach(job)
        async for arrival in attached.verdicts():
            assert arrival.row not in found, f"row {arrival.row} has two verdicts"
            assert arrival.cursor == len(found) + 1
            found[arrival.row] = arrival.verdict
        status = await attached.status()
    assert status.done == status.total == len(found)
    assert status.outcomes == Counter(verdict.outcome.value for verdict in found.values())
    return [found[row] for row in range(len(found))]


class Worker:
    """`rewarden worker` in a process of its own: a supervisor, the process that grades, and its pool."""

    def __init__(self, url: str, *arguments: str) -> None:
        support = str(Path(__file__).parent)
        self.process = subprocess.Popen(
            worker_command(["--queue", url, "--workers", "1", *arguments]),
            env={**os.environ, "PYTHONPATH": support},
            stderr=None if os.environ.get("CHAOS_LOG") else subprocess.DEVNULL,
        )

    @property
    def main(self) -> int | None:
        """The process that takes batches; None while there is none."""
        return next(iter(children(self.process.pid)), None)

    @property
    def pool(self) -> list[int]:
        """What the main process has started, and what that has."""
        main = self.main
        return [] if main is None else descendants(main)

    def everything(self) -> list[int]:
        """All its processes."""
        return [self.process.pid, *descendants(self.process.pid)]

    def stop(self) -> None:
        """End it in good order, by force when it does not."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise


@contextmanager
def workers(url: str, count: int = 2, *arguments: str) -> Iterator[list[Worker]]:
    """So many workers; those that are left at the end are stopped, and nothing of any survives."""
    made = [Worker(url, *arguments) for _ in range(count)]
    try:
        yield made
    finally:
        known = [pid for worker in made for pid in worker.everything()]
        for worker in made:
            if worker.process.poll() is None:
                worker.process.send_signal(signal.SIGTERM)
        try:
            for worker in made:
                worker.process.wait(PATIENCE_S)
            until(lambda: not any(alive(pid) for pid in known))
        finally:
            for worker in made:
                worker.process.kill()


def children(pid: int) -> list[int]:
    """The living children of a process, whichever thread started them."""
    found = []
    for place in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += [int(child) for child in place.read_text().split()]
    return [child for child in found if alive(child)]


def descendants(pid: int) -> list[int]:
    """The children of a process, theirs, and so on."""
    return [one for child in children(pid) for one in (child, *descendants(child))]


def alive(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def kill(pid: int | None) -> None:
    """SIGKILL for a process, if it is there."""
    if pid is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
