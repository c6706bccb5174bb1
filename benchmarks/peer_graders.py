r"""The graders that Rewarden is measured beside, served on standard input and output; runs in the peers' environment.

    build/peers-venv/bin/python benchmarks/peer_graders.py direct|pool|fork ROWS.jsonl

- `direct`: math-verify in this process: parse the reference (in `\boxed{}`, as trainers pass it), parse the completion,
  verify; its own defaults, with its own time-outs.
- `pool`: the same in a warm pool of two processes, by chunks. Fast, and not safe: one hung answer keeps a process.
- `fork`: a process forked for each call, two at a time, asked every 50 ms whether it has ended and killed after 10 s:
  what a trainer does to be safe. Written after the description of NeMo Gym's math verifier; the processes inherit an
  imported math-verify, and like there they parse with cold tables.

Each line on standard input is a command: `START STOP [SECONDS]` grades these rows (until the seconds are over) and
answers one line of JSON with the seconds taken and the verdicts. Time is taken here, around the grading alone.
"""

from __future__ import annotations

import asyncio
import json
import logging
import multiprocessing
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter

from math_verify import parse, verify
from math_verify.errors import TimeoutException

Row = tuple[str, str]
"""Completion and reference."""

WORKERS = 2
CHUNK = 50
POLL_S = 0.05
DEADLINE_S = 10.0


def grade(row: Row) -> bool:
    """What trainers call: errors and time-outs are a no, as they are there."""
    completion, reference = row
    try:
        return bool(verify(parse("\\boxed{" + reference + "}"), parse(completion)))
    except (Exception, TimeoutException):  # noqa: BLE001 - trainers do
        return False


def direct(rows: list[Row]) -> list[bool]:
    """One after the other."""
    return [grade(row) for row in rows]


def _send(row: Row, connection: Connection) -> None:
    connection.send(grade(row))


async def _forked(row: Row, slots: asyncio.Semaphore) -> bool:
    context = multiprocessing.get_context("fork")
    async with slots:
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_send, args=(row, theirs))
        process.start()
        theirs.close()
        deadline = perf_counter() + DEADLINE_S
        while process.is_alive():
            if perf_counter() > deadline:
                process.kill()
                process.join()
                break
            await asyncio.sleep(POLL_S)
        try:
            return bool(ours.recv()) if ours.poll() else False
        except EOFError:
            return False
        finally:
            ours.close()


def fork(rows: list[Row]) -> list[bool]:
    """A process for each row, two at a time."""

    async def run() -> list[bool]:
        slots = asyncio.Semaphore(WORKERS)
        return list(await asyncio.gather(*(_forked(row, slots) for row in rows)))

    return asyncio.run(run())


def main() -> None:
    """Read the rows, say `ready`, and obey."""
    how, path = sys.argv[1:]
    logging.getLogger("math_verify").setLevel(logging.CRITICAL)
    with Path(path).open(encoding="utf-8") as file:
        rows: list[Row] = [tuple(json.loads(line)) for line in file]
    run: Callable[[list[Row]], list[bool]]
    if how == "pool":
        pool = multiprocessing.get_context("fork").Pool(WORKERS)

        def run(some: list[Row]) -> list[bool]:
            return pool.map(grade, some, chunksize=CHUNK)

    else:
        run = {"direct": direct, "fork": fork}[how]
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        start, stop, *limit = line.split()
        chosen = rows[int(start) : int(stop)]
        started = perf_counter()
        if limit:
            verdicts = []
            for row in chosen:
                verdicts += run([row])
                if perf_counter() - started > float(limit[0]):
                    break
        else:
            verdicts = run(chosen)
        seconds = perf_counter() - started
        print(json.dumps({"seconds": seconds, "verdicts": [int(verdict) for verdict in verdicts]}), flush=True)


if __name__ == "__main__":
    main()
