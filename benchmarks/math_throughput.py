"""Verdicts a second on real rollouts, beside a warm pool of math-verify and a grader that forks for each call.

    python -m rewarden.benchmarks.math_throughput [--rows 50000] [--rounds 10] [--no-peers]

Rows come from `data.stream`: made from 3,438 real rollouts, no (completion, reference) twice. Rewarden and the pool
take the same rows in turn, a round each (A B A B ...), so that both see the same noise; the figures are medians of the
rounds' ratios. Both have two processes, both are warm. The forking grader is so slow that it gets 100 rows a round,
in three rounds. With the cache on, each row of a round is there 8 times, in random order, and the pool grades all of
them, as it has no cache. The table of layers says which layer settled a row (`evidence.layer`), and what a row of
it costs when its rows are graded alone.
"""

from __future__ import annotations

import argparse
import random
from collections import defaultdict
from collections.abc import Sequence
from time import perf_counter

import rewarden

from . import data, results
from .peers import Peer, Run

WORKERS = 2
REPEATS = 8
FORK_ROWS = 100
FORK_ROUNDS = 3
PRINTED = 30
"""Rows on which Rewarden and math-verify differ."""


def as_rollouts(pairs: Sequence[data.Pair]) -> list[rewarden.Rollout]:
    """Rows as a trainer hands them over."""
    return [rewarden.Rollout(completion=pair.completion, reference=pair.reference) for pair in pairs]


def grade(engine: rewarden.Engine, rollouts: Sequence[rewarden.Rollout]) -> tuple[Run, list[rewarden.Verdict]]:
    """Time one call of the engine."""
    started = perf_counter()
    verdicts = engine.score(rollouts)
    seconds = perf_counter() - started
    return Run(seconds, [verdict.reward == 1.0 for verdict in verdicts]), verdicts


def started(cache: str | None) -> tuple[rewarden.Engine, float]:
    """An engine with warm workers, and the seconds that it took to have them."""
    began = perf_counter()
    engine = rewarden.Engine("math", workers=WORKERS, cache=cache)
    engine.warm()
    grade(engine, as_rollouts([data.ALGEBRA]))
    return engine, perf_counter() - began


def cache_off(rows: list[data.Pair], rounds: int, with_peers: bool) -> list[results.Figure]:
    """Different rows, no cache: beside the pool and the forking grader, then by layer."""
    engine, startup = started(None)
    rollouts = as_rollouts(rows)
    size = len(rows) // rounds
    spans = [(number * size, (number + 1) * size) for number in range(rounds)]
    figures = [results.plain("start-up, ours", startup, "s")]
    with engine:
        grade(engine, as_rollouts(data.stream(500, seed=1)))
        if with_peers:
            measured, verdicts = beside_peers(engine, rows, rollouts, spans)
            figures += measured
        else:
            runs = [grade(engine, rollouts[start:stop]) for start, stop in spans]
            verdicts = [verdict for _, said in runs for verdict in said]
            speed = results.middle([1 / run.each for run, _ in runs])
            figures.append(results.plain("rows/s, ours, cache off", speed))
        return figures + layers(engine, rollouts, verdicts)


def beside_peers(
    engine: rewarden.Engine,
    rows: Sequence[data.Pair],
    rollouts: Sequence[rewarden.Rollout],
    spans: Sequence[tuple[int, int]],
) -> tuple[list[results.Figure], list[rewarden.Verdict]]:
    """The pool and Rewarden in turn, then the forking grader and Rewarden in turn."""
    ours: list[Run] = []
    theirs: list[Run] = []
    verdicts: list[rewarden.Verdict] = []
    with Peer("pool", rows) as pool:
        pool.grade(0, min(len(rows), 500))
        for start, stop in spans:
            theirs.append(pool.grade(start, stop))
            run, said = grade(engine, rollouts[start:stop])
            ours.append(run)
            verdicts += said
    forked: list[Run] = []
    beside: list[Run] = []
    with Peer("fork", rows) as fork:
        for number, (start, stop) in enumerate(spans[:FORK_ROUNDS]):
            forked.append(fork.grade(number * FORK_ROWS, (number + 1) * FORK_ROWS))
            beside.append(grade(engine, rollouts[start:stop])[0])
    said_theirs = [verdict for run in theirs for verdict in run.verdicts]
    return [
        results.plain("start-up, math-verify pool", pool.startup_s, "s"),
        results.plain("rows/s, ours, cache off", results.middle([1 / run.each for run in ours])),
        results.plain("rows/s, math-verify pool", results.middle([1 / run.each for run in theirs])),
        results.plain("rows/s, fork per call", results.middle([1 / run.each for run in forked])),
        results.at_least("times the pool, cache off", times(theirs, ours), 5, "x"),
        results.at_least("times fork per call", times(forked, beside), 200, "x"),
        results.plain("same verdict as math-verify", agreement(rows, verdicts, said_theirs), "%"),
    ], verdicts


def times(theirs: Sequence[Run], ours: Sequence[Run]) -> float:
    """How many times as fast we are: the median of the rounds."""
    return results.middle([their.each / our.each for their, our in zip(theirs, ours, strict=True)])


def agreement(rows: Sequence[data.Pair], ours: Sequence[rewarden.Verdict], theirs: Sequence[bool]) -> float:
    """Percentage of rows on which both say the same; some of the others are printed."""
    same = 0
    printed: set[tuple[str, str]] = set()
    for row, our, their in zip(rows, ours, theirs, strict=False):
        agree = (our.reward == 1.0) is their
        same += agree
        what = (str((our.evidence or {}).get("extracted")), row.reference)
        if not agree and what not in printed and len(printed) < PRINTED:
            printed.add(what)
            print(f"extracted {what[0]!r}, reference {what[1]!r}: {our.outcome}; math-verify: {their}")
    return 100 * same / len(theirs)


def layers(
    engine: rewarden.Engine, rollouts: Sequence[rewarden.Rollout], verdicts: Sequence[rewarden.Verdict]
) -> list[results.Figure]:
    """How much each layer settles, and what one of its rows costs, extraction and engine included."""
    by_layer: dict[str, list[rewarden.Rollout]] = defaultdict(list)
    for rollout, verdict in zip(rollouts, verdicts, strict=False):
        by_layer[str((verdict.evidence or {}).get("layer", verdict.outcome.value))].append(rollout)
    count = sum(map(len, by_layer.values()))
    figures = []
    for layer, settled in sorted(by_layer.items(), key=lambda item: -len(item[1])):
        some = settled[:5000]
        cost = results.middle([grade(engine, some)[0].each for _ in range(3)])
        share = f"{100 * len(settled) / count:.2f} % of rows, {cost * 1e6:,.0f} us a row"
        figures.append(results.plain(f"layer {layer}", share))
    return figures


def cache_on(rows: list[data.Pair], rounds: int, with_peers: bool) -> list[results.Figure]:
    """Each row 8 times and the cache in memory, beside the pool."""
    rng = random.Random(0)
    size = len(rows) // rounds // REPEATS
    repeated: list[data.Pair] = []
    for number in range(rounds):
        some = rows[number * size : (number + 1) * size] * REPEATS
        rng.shuffle(some)
        repeated += some
    rollouts = as_rollouts(repeated)
    spans = [(number * size * REPEATS, (number + 1) * size * REPEATS) for number in range(rounds)]
    engine, _ = started("memory")
    with engine:
        grade(engine, as_rollouts(data.stream(500, seed=1)))
        if not with_peers:
            speed = [1 / grade(engine, rollouts[start:stop])[0].each for start, stop in spans]
            return [results.plain("rows/s, ours, each 8 times, cache on", results.middle(speed))]
        ours, theirs = [], []
        with Peer("pool", repeated) as pool:
            pool.grade(0, min(len(repeated), 500))
            for start, stop in spans:
                theirs.append(pool.grade(start, stop))
                ours.append(grade(engine, rollouts[start:stop])[0])
    return [
        results.plain("rows/s, ours, each 8 times, cache on", results.middle([1 / run.each for run in ours])),
        results.at_least("times the pool, each 8 times, cache on", times(theirs, ours), 20, "x"),
    ]


def main() -> None:
    """Measure with the cache off, then on."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--no-peers", action="store_true")
    options = parser.parse_args()
    data.require()
    rows = data.stream(options.rows)
    figures = cache_off(rows, options.rounds, not options.no_peers)
    figures += cache_on(rows, options.rounds, not options.no_peers)
    results.save("math_throughput", figures, **vars(options))


if __name__ == "__main__":
    main()
