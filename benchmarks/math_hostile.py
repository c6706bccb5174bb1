"""What hostile answers do: to themselves, to the workers, and to their neighbours.

    python -m rewarden.benchmarks.math_hostile [--clean 87120] [--only-alone]

Alone: each of the 44 rows of cases/math_hostile.jsonl is graded by itself on warm workers. It must get an outcome that
the file allows within its deadline (2 s) + 0.3 s, no worker may pass 512 MB (resident, looked at every 10 ms), and at
least 30 must be settled without the pool in under 1 ms (median of 5). Every row that fails is printed.

Mixed: one hostile row after every 99 real rollouts, all 44 of them by turns but in random order. The verdicts of all
the others must be the bytes of a clean run's, and the run may take 1.2 times the clean run plus the seconds that
hostile rows held a worker, shared over the workers. That needs a clean run of seconds: in a short one, the last
deadline of one worker outweighs all the rest.
"""

from __future__ import annotations

import argparse
import os
import random
from time import perf_counter

import rewarden

from . import data, results
from .processes import Memory

WORKERS = 2
DEADLINE_S = 2.0
GRACE_S = 0.3
MEMORY_MB = 512.0
QUICK_S = 0.001


def engine() -> rewarden.Engine:
    """With warm workers and no cache."""
    made = rewarden.Engine("math", workers=WORKERS, cache=None)
    made.warm()
    made.score([rewarden.Rollout(completion=data.ALGEBRA.completion, reference=data.ALGEBRA.reference)] * 20)
    return made


def alone() -> list[results.Figure]:
    """Each hostile row by itself."""
    allowed = quick = 0
    slowest = 0.0
    rows = data.hostile()
    with engine() as grader, Memory(os.getpid()) as memory:
        for row in rows:
            rollout = rewarden.Rollout(id=row["id"], completion=row["completion"], reference=row["reference"])
            started = perf_counter()
            (graded,) = grader.stream([rollout])
            seconds = perf_counter() - started
            verdict = graded.verdict
            slowest = max(slowest, seconds)
            fine = verdict.outcome.value in data.allowed(row)
            allowed += fine
            if not graded.trace.pooled:
                again = [_seconds(grader, rollout) for _ in range(5)]
                quick += results.middle(again) < QUICK_S
            if not fine or seconds > 0.1:
                where = " (pool)" if graded.trace.pooled else ""
                wrong = "" if fine else f"; ALLOWED: {row['expected']}"
                print(f"{row['id']} {row['name']}: {verdict.outcome}, {verdict.reason}, {seconds:.3f} s{where}{wrong}")
    return [
        results.at_least("hostile rows with an allowed outcome", allowed, len(rows)),
        results.at_most("slowest hostile row", slowest, DEADLINE_S + GRACE_S, "s"),
        results.at_least("hostile rows settled without the pool in under 1 ms", quick, 30),
        results.at_most("most memory of a worker", memory.worker_mb, MEMORY_MB, "MB"),
    ]


def _seconds(grader: rewarden.Engine, rollout: rewarden.Rollout) -> float:
    started = perf_counter()
    grader.score([rollout])
    return perf_counter() - started


def mixed(count: int) -> list[results.Figure]:
    """One hostile row in each hundred."""
    clean = [
        rewarden.Rollout(id=str(i), completion=pair.completion, reference=pair.reference)
        for i, pair in enumerate(data.stream(count))
    ]
    hostile = data.hostile()
    bad = []
    for i in range(count // 99):
        again, which = divmod(i, len(hostile))
        bad.append((f"Attempt {again}. {hostile[which]['completion']}", hostile[which]["reference"]))
    random.Random(0).shuffle(bad)
    rows = []
    for i, rollout in enumerate(clean, 1):
        rows.append(rollout)
        if i % 99 == 0:
            completion, reference = bad.pop()
            rows.append(rewarden.Rollout(id="hostile", completion=completion, reference=reference))
    with engine() as grader:
        grader.score(clean[:500])
        clean_runs = []
        for _ in range(3):
            started = perf_counter()
            alone = grader.score(clean)
            clean_runs.append(perf_counter() - started)
        started = perf_counter()
        graded = list(grader.stream(rows))
        seconds = perf_counter() - started
    held = sum(some.trace.seconds for some in graded if some.verdict.id == "hostile" and some.trace.pooled)
    others = [some.verdict for some in graded if some.verdict.id != "hostile"]
    changed = [(a, b) for a, b in zip(alone, others, strict=True) if a.to_json() != b.to_json()]
    for before, after in changed:
        print(f"changed beside hostile rows: {before.to_json().decode()}\n  -> {after.to_json().decode()}")
    clean_s = results.middle(clean_runs)
    return [
        results.plain("clean run", clean_s, "s"),
        results.plain("run with 1 hostile row in 100", seconds, "s"),
        results.plain("seconds that hostile rows held workers", held, "s"),
        results.at_most("verdicts of other rows that changed", len(changed), 0),
        results.at_most(
            "(mixed run - deadlines used / workers) / clean run", (seconds - held / WORKERS) / clean_s, 1.2, "x"
        ),
    ]


def main() -> None:
    """Measure alone, then mixed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clean", type=int, default=87_120, help="real rows of the mixed run (99 for a hostile one)")
    parser.add_argument("--only-alone", action="store_true")
    options = parser.parse_args()
    data.require()
    figures = alone()
    if not options.only_alone:
        figures += mixed(options.clean)
    results.save("math_hostile", figures, **vars(options))


if __name__ == "__main__":
    main()
