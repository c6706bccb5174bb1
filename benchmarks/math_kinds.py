r"""Speed by kind of answer, one process against one: Rewarden's math scorer beside math-verify.

    python -m rewarden.benchmarks.math_kinds [--rounds 5] [--seconds 1] [--rows 600] [--no-peers]

For each kind (`kinds.py`) both grade the same rows in turn: a completion with its answer in a `\boxed{}` and a bare
reference, never the same row twice, equal and different ones half and half. math-verify takes as many rows as fit into
the seconds of a round (at least one); Rewarden then takes the same rows. All its layers run in this process, with
extraction and the building of the verdict; the last layer too, so that nothing is won by a second process. The first
20 rows of a kind warm both up. The figure is the median of the rounds' ratios.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from time import perf_counter

from rewarden.core.registry import create
from rewarden.core.rollout import Rollout, View, view_of
from rewarden.core.scorer import Scorer
from rewarden.core.verdict import Verdict

from . import data, kinds, results
from .peers import Peer, Run

WARM = 20


def grade(scorer: Scorer, views: Sequence[View]) -> Run:
    """Time the scorer alone, row by row."""
    verdicts = []
    quick, score = scorer.quick, scorer.score
    started = perf_counter()
    for view in views:
        verdict = quick(view)
        if verdict is None:
            said = score([view], [{}])
            assert isinstance(said, Sequence)
            verdict = said[0]
        verdicts.append(verdict)
    seconds = perf_counter() - started
    return Run(seconds, [_right(verdict) for verdict in verdicts])


def _right(verdict: Verdict) -> bool:
    return verdict.reward == 1.0


def main() -> None:
    """Measure one kind after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--rows", type=int, default=600, help="rows of a round at most")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--kind", action="append", choices=list(kinds.KINDS), help="only this kind (may be repeated)")
    options = parser.parse_args()
    scorer = create("math")
    scorer.warm()
    make = view_of(tuple(scorer.reads))
    figures = []
    for name in options.kind or kinds.KINDS:
        rows = kinds.pairs(name, WARM + options.rounds * options.rows)
        pairs, truth = [pair for pair, _ in rows], [equal for _, equal in rows]
        views = [make(make.take(Rollout(completion=pair.completion, reference=pair.reference))) for pair in pairs]
        figures.append(_measure(name, scorer, pairs, views, truth, options))
    results.save("math_kinds", figures, **vars(options))


def _measure(
    name: str,
    scorer: Scorer,
    pairs: list[data.Pair],
    views: list[View],
    truth: list[bool],
    options: argparse.Namespace,
) -> results.Figure:
    """One kind."""
    target = kinds.KINDS[name][1]
    grade(scorer, views[:WARM])
    if options.no_peers:
        run = grade(scorer, views[WARM:])
        print(f"{name:<24} {run.each * 1e6:10,.0f} us{_wrong(run, truth[WARM:])}")
        return results.plain(name, run.each * 1e6, "us a row")
    ratios, ours, theirs = [], [], []
    with Peer("direct", pairs) as peer:
        peer.grade(0, WARM)
        for number in range(options.rounds):
            start = WARM + number * options.rows
            their = peer.grade(start, start + options.rows, options.seconds)
            count = len(their.verdicts)
            our = grade(scorer, views[start : start + count])
            if wrong := _wrong(our, truth[start : start + count]):
                print(f"{name}{wrong}", file=sys.stderr)
            ratios.append(their.each / our.each)
            ours.append(our.each)
            theirs.append(their.each)
    cost = results.middle(ours) * 1e6, results.middle(theirs) * 1e6
    print(f"{name:<24} ours {cost[0]:8,.0f} us   math-verify {cost[1]:10,.0f} us   {results.middle(ratios):8.1f}x")
    return results.at_least(
        f"{name} ({cost[0]:,.0f} us; math-verify {cost[1]:,.0f})", results.middle(ratios), target, "x"
    )


def _wrong(run: Run, truth: list[bool]) -> str:
    wrong = sum(said != true for said, true in zip(run.verdicts, truth, strict=True))
    return f"  ({wrong} of {len(truth)} verdicts wrong)" if wrong else ""


if __name__ == "__main__":
    main()
