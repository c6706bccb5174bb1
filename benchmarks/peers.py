"""Peers in their own environment, kept warm beside Rewarden so that both can be timed in turn.

The environment is build/peers-venv, with what benchmarks/peers.txt pins; benchmarks/run makes it.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import Any, Final, Literal, NamedTuple, Self

import orjson

from .data import BUILD, ROOT, Pair

PYTHON: Final = ROOT / "build" / "peers-venv" / "bin" / "python"


class Run(NamedTuple):
    """What a grader did with some rows."""

    seconds: float
    verdicts: list[bool]
    """One for each row; fewer where the time ran out."""

    @property
    def each(self) -> float:
        """Seconds for one row."""
        return self.seconds / len(self.verdicts)


def require() -> None:
    """Leave the program, in words, where the peers are not installed."""
    if not PYTHON.exists():
        sys.exit(f"{PYTHON} is missing: run benchmarks/run --peers first, or leave the peers out with --no-peers.")


class Peer:
    """A grader of peer_graders.py on these rows; a context manager that ends its process."""

    def __init__(self, how: Literal["direct", "pool", "fork"], rows: Sequence[Pair]) -> None:
        require()
        path = BUILD / f"peer-{how}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(orjson.dumps([*row]) + b"\n" for row in rows))
        script = Path(__file__).with_name("peer_graders.py")
        started = perf_counter()
        self._process = subprocess.Popen(
            [PYTHON, script, how, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._answer()
        self.startup_s = perf_counter() - started
        """Seconds until it could take its first row, with the imports and the reading of the rows."""

    def grade(self, start: int, stop: int, limit_s: float | None = None) -> Run:
        """Grade the rows from `start` to `stop`, or as many as fit into the limit."""
        assert self._process.stdin is not None
        command = f"{start} {stop}" if limit_s is None else f"{start} {stop} {limit_s}"
        self._process.stdin.write(command.encode() + b"\n")
        self._process.stdin.flush()
        answer = self._answer()
        return Run(answer["seconds"], [bool(verdict) for verdict in answer["verdicts"]])

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"a peer's process ended with code {self._process.wait()}")
        answer: dict[str, Any] = orjson.loads(line)
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:  # the end of its input ends it, and its own processes first
            self._process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
