"""What the file path costs: CPU that `rewarden score` adds to a row, and its memory for a million rows.

    python -m rewarden.benchmarks.file_path [--rows 40000] [--times 5] [--million 1000000]

CPU: the command grades N rows and N/4 rows of a file; the difference, divided by the difference in rows, is what a row
costs without the start-up. The same rows go through Engine.score in a process of its own, which reads them first and
counts the CPU of the grading alone, by the same difference. Both count user and system time with their worker
processes, and run in turn, several times; the figures are medians. Once with short rows (50 characters), and once with
the real rollouts (1 kB).

Memory: the command grades a million short native rows; the peak of its resident memory and of its workers' together,
looked at every 50 ms.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import orjson

import rewarden

from . import data, results
from .processes import Memory

COMMAND = (sys.executable, "-m", "rewarden.cli")


def short_rows(count: int) -> Iterator[dict[str, Any]]:
    """Native rows, one in four wrong; no two alike."""
    for i in range(count):
        wrong = i % 4 == 0
        yield {
            "id": str(i),
            "group": str(i // 8),
            "completion": f"So the answer is $\\boxed{{{i + wrong}}}$.",
            "reference": str(i),
        }


def real_rows(count: int) -> Iterator[dict[str, Any]]:
    """Native rows made from the real rollouts."""
    for i, pair in enumerate(data.stream(count)):
        yield {"id": str(i), "completion": pair.completion, "reference": pair.reference}


def command_cpu(path: Path) -> float:
    """Seconds of CPU of `rewarden score` on this file."""
    out = path.with_suffix(".out.jsonl")
    clear(out)
    return _cpu([*COMMAND, "score", str(path), "--recipe", "math", "-o", str(out)])


def engine_cpu(path: Path) -> float:
    """Seconds of CPU of Engine.score alone on this file's rows."""
    out = subprocess.run(
        [sys.executable, "-m", f"{__package__}.file_path", "--engine", path], capture_output=True, check=True
    )
    return float(out.stdout)


def engine_only(path: Path) -> None:
    """Read rows, grade them, print the seconds of CPU of the grading (this process's)."""
    rollouts = [rewarden.Rollout.parse(orjson.loads(line)) for line in path.read_bytes().splitlines()]
    with rewarden.Engine("math") as engine:
        before = os.times()
        engine.score(rollouts)
        after = os.times()
    # The workers are the zygote's children: they count when both have been reaped, which is after the engine's end.
    ended = os.times()
    ours = after.user + after.system - before.user - before.system
    print(ours + ended.children_user + ended.children_system)


def _cpu(command: list[str]) -> float:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {process.returncode}:\n{said.decode()[-2000:]}")
    return usage.ru_utime + usage.ru_stime


def clear(out: Path) -> None:
    """Remove an output of the command with everything that it keeps beside it."""
    for path in out.parent.glob(f"{out.name}*"):
        path.unlink()
    for path in out.parent.glob(f".{out.name}*"):
        path.unlink()


def cpu(count: int, times: int, name: str, make: Callable[[int], Iterator[dict[str, Any]]]) -> list[results.Figure]:
    """CPU for a row: through the file path, and in the engine alone."""
    few = count // 4
    long = data.write_jsonl(data.BUILD / f"file_path_{name}.jsonl", make(count))
    short = data.write_jsonl(data.BUILD / f"file_path_{name}_few.jsonl", make(few))
    whole, alone = [], []
    for _ in range(times):
        whole.append((command_cpu(long) - command_cpu(short)) / (count - few) * 1e6)
        alone.append((engine_cpu(long) - engine_cpu(short)) / (count - few) * 1e6)
    command, engine = results.middle(whole), results.middle(alone)
    return [
        results.plain(f"{name} rows: CPU of `rewarden score`", command, "us a row"),
        results.plain(f"{name} rows: CPU of Engine.score", engine, "us a row"),
        results.at_most(f"{name} rows: added by the file path", command - engine, 15, "us a row"),
    ]


def memory(count: int) -> list[results.Figure]:
    """Peak memory of the command on short rows."""
    path = data.write_jsonl(data.BUILD / "file_path_million.jsonl", short_rows(count))
    out = path.with_suffix(".out.jsonl")
    clear(out)
    started = perf_counter()
    process = subprocess.Popen(
        [*COMMAND, "score", path, "--recipe", "math", "-o", out], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    with Memory(process.pid, every_s=0.05) as watched:
        process.wait()
    seconds = perf_counter() - started
    rows = sum(1 for _ in out.open("rb"))
    if process.returncode != 0 or rows != count:
        sys.exit(f"rewarden score ended with {process.returncode} and {rows} of {count} rows.")
    clear(out)
    path.unlink()
    return [
        results.plain(f"{count:,} rows", f"{seconds:.0f} s, {count / seconds:,.0f} rows/s"),
        results.plain("peak of the command alone", watched.own_mb, "MB"),
        results.at_most("peak of the command and its workers together", watched.total_mb, 1024, "MB"),
    ]


def main() -> None:
    """Measure CPU, then memory."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=40_000)
    parser.add_argument("--times", type=int, default=5, help="how often each is measured")
    parser.add_argument("--million", type=int, default=1_000_000)
    parser.add_argument("--engine", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.engine is not None:
        engine_only(options.engine)
        return
    data.require()
    figures = cpu(options.rows, options.times, "short", short_rows)
    figures += cpu(options.rows, options.times, "real", real_rows)
    figures += memory(options.million)
    results.save("file_path", figures, rows=options.rows, times=options.times, million=options.million)


if __name__ == "__main__":
    main()
