"""What is lost when workers, or the whole command, are killed: nothing may be.

    python -m rewarden.benchmarks.crash [--rows 5000] [--kills 36] [--runs 10]

Workers: the rows are ones that only the last layer can settle, so that every one of them goes through the pool. An
undisturbed run gives the verdicts to compare with; in the second run random workers get SIGKILL at random moments,
spread over the time that the first one took. Rows are counted as lost (no verdict), doubled (an id twice) and wrong
(not the bytes of the undisturbed verdict).

Command: `rewarden score` on a file of four times as many rows, one in eighty of that kind and the others short, gets
SIGKILL at two random moments of each run, and is then started again with the same arguments and left to end. The output
must have the bytes of an undisturbed run's, and no process of a killed command may be left.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import rewarden

from . import data, results
from .file_path import COMMAND, clear, short_rows
from .processes import descendants, parents, workers

WORKERS = 2


def rows(count: int) -> list[dict[str, str]]:
    """Limits, sums and integrals that take algebra, each with another number; every other one is wrong."""
    made = []
    for i in range(count):
        n, wrong = 2 + i, i % 2
        reference, answer = (
            (f"\\lim_{{x\\to 0}} \\frac{{\\sin({n}x)}}{{x}}", f"{n + wrong}"),
            (f"\\sum_{{k=1}}^{{n}} (k+{n})", f"\\frac{{n(n+1)}}{{2}}+{n + wrong}n"),
            (f"\\lim_{{x\\to 0}} \\frac{{e^{{{n}x}}-1}}{{x}}", f"{n + wrong}"),
            (f"\\int_0^{{{n}}} x^2 dx", f"\\frac{{{n**3 + wrong}}}{{3}}"),
        )[i // 2 % 4]
        made.append({"id": str(i), "completion": f"So \\boxed{{{answer}}}.", "reference": reference})
    return made


def kill_workers(moments: Sequence[float], stop: threading.Event) -> list[int]:
    """Send SIGKILL to a random worker of this process at each of these moments (seconds from now); the pids."""
    rng = random.Random(0)
    killed = []
    began = time.perf_counter()
    for moment in moments:
        if stop.wait(max(0.0, began + moment - time.perf_counter())):
            break
        pids = workers(os.getpid())
        if pids:
            pid = rng.choice(pids)
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:  # it had just been replaced
                continue
            killed.append(pid)
    return killed


def kill_some(count: int, kills: int) -> list[results.Figure]:
    """Workers die while the engine grades."""
    rollouts = [rewarden.Rollout(**row) for row in rows(count)]
    with rewarden.Engine("math", workers=WORKERS, cache=None) as engine:
        engine.warm()
        engine.score(rollouts[:20])
        began = time.perf_counter()
        calm = list(engine.stream(rollouts))
        took = time.perf_counter() - began
        pooled = sum(graded.trace.pooled for graded in calm)
        rng = random.Random(1)
        moments = sorted(rng.uniform(0, 0.95 * took) for _ in range(kills))
        stop = threading.Event()
        killed: list[int] = []
        killer = threading.Thread(target=lambda: killed.extend(kill_workers(moments, stop)))
        killer.start()
        began = time.perf_counter()
        stormy = list(engine.stream(rollouts))
        slower = time.perf_counter() - began
        stop.set()
        killer.join()
        again = sum(graded.trace.attempts > 1 for graded in stormy)
    wanted = [graded.verdict.to_json() for graded in calm]
    ids = Counter(graded.verdict.id for graded in stormy)
    wrong = [
        (before, graded.verdict.to_json())
        for before, graded in zip(wanted, stormy, strict=False)
        if before != graded.verdict.to_json()
    ]
    for before, after in wrong[:20]:
        print(f"wrong: {before.decode()}\n    -> {after.decode()}")
    return [
        results.at_least("rows that went through the pool", pooled, count),
        results.at_least("workers killed by SIGKILL", len(killed), kills * 5 // 6),
        results.plain("rows that were begun again", again),
        results.at_most("rows lost", count - len(ids), 0),
        results.at_most("rows doubled", sum(times - 1 for times in ids.values()), 0),
        results.at_most("rows wrong", len(wrong), 0),
        results.plain("run without and with kills", f"{took:.1f} s, {slower:.1f} s"),
    ]


def score(source: Path, out: Path, *, kill_after: float | None = None) -> tuple[float, int, list[int]]:
    """Run the command, perhaps with a SIGKILL; seconds taken, exit code, and its processes when it was killed."""
    below: list[int] = []
    began = time.perf_counter()
    process = subprocess.Popen(
        [*COMMAND, "score", source, "--recipe", "math", "-o", out], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    try:
        _, said = process.communicate(timeout=kill_after)
        if process.returncode != 0:
            print(said.decode()[-2000:])
    except subprocess.TimeoutExpired:
        below = descendants(process.pid)
        process.kill()
        process.communicate()
    return time.perf_counter() - began, process.returncode, below


def kill_command(count: int, runs: int) -> list[results.Figure]:
    """The whole command dies, twice in each run, and is started again."""
    slow = iter(rows(count // 20))
    mixed = (next(slow) if i % 80 == 79 else row for i, row in enumerate(short_rows(count // 20 * 80)))
    source = data.write_jsonl(data.BUILD / "crash.jsonl", mixed)
    calm, out = source.with_name("crash.calm.jsonl"), source.with_name("crash.out.jsonl")
    clear(calm)
    took, calmly, _ = score(source, calm)
    rng = random.Random(2)
    kills = begun = equal = left = failed = 0
    for _ in range(runs):
        clear(out)
        for _ in range(2):
            if not out.exists():  # it was killed before its end
                _, code, below = score(source, out, kill_after=rng.uniform(took / 4, took))
                kills += code == -signal.SIGKILL
                part = out.with_name(f"{out.name}.part")
                begun += part.exists() and part.stat().st_size > 0
                time.sleep(0.2)
                left += len(set(below) & set(parents()))
        if not out.exists():
            _, code, _ = score(source, out)
            failed += code != 0
        equal += out.read_bytes() == calm.read_bytes()
    return [
        results.plain("undisturbed `rewarden score`", f"{took:.1f} s, exit code {calmly}"),
        results.plain("commands killed by SIGKILL", f"{kills}, {begun} of them with rows written"),
        results.at_least(f"outputs equal byte by byte, of {runs}", equal, runs),
        results.at_most("runs that did not end well after that", failed, 0),
        results.at_most("processes left by killed commands", left, 0),
    ]


def main() -> None:
    """Kill workers, then commands."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--kills", type=int, default=36)
    parser.add_argument("--runs", type=int, default=10)
    options = parser.parse_args()
    figures = kill_some(options.rows, options.kills) + kill_command(options.rows, options.runs)
    results.save("crash", figures, **vars(options))


if __name__ == "__main__":
    main()
