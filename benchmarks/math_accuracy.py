r"""How often the math verifier is right, beside math-verify 0.9.0, with every difference printed.

    python -m rewarden.benchmarks.math_accuracy [--golds 6319] [--no-peers]

- `cases/math_answers.jsonl` and `cases/math_pairs_upstream.jsonl`: labelled pairs; what math-verify says of them is
  recorded in the rows.
- `data/math/golds.jsonl`: each gold answer in a `\boxed{}` against itself (right), and against the next one of its
  data set (wrong unless they are really equal: those that come out equal are printed to be looked at).
- `data/rollouts/`: agreement with the upstream judgement: on GSM8K the number that the upstream script extracted
  against the answer, on MATH the score that it gave. Agreement counts rows; differences are printed once for each
  (extracted answer, reference).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import rewarden

from . import data, results
from .peers import Peer


def grade(engine: rewarden.Engine, pairs: Iterable[tuple[Any, Any]]) -> list[rewarden.Verdict]:
    """Verdicts on (completion, reference) pairs."""
    return engine.score([rewarden.Rollout(completion=done, reference=wanted) for done, wanted in pairs])


def cases(engine: rewarden.Engine, name: str, target: int) -> list[results.Figure]:
    """Labelled pairs with what math-verify said."""
    rows = data.read(f"cases/{name}.jsonl")
    verdicts = grade(engine, ((row["completion"], row["reference"]) for row in rows))
    right = 0
    for row, verdict in zip(rows, verdicts, strict=True):
        fine = verdict.outcome.value in data.allowed(row)
        right += fine
        if not fine:
            _difference(row["id"], row["completion"], row["reference"], row["expected"], verdict, row.get("why", ""))
    peer = sum(_recorded(row) in data.allowed(row) for row in rows)
    return [
        results.at_least(f"{name}, right of {len(rows)}", right, target),
        results.plain(f"{name}, math-verify 0.9.0", peer),
    ]


def _recorded(row: dict[str, Any]) -> str:
    said = row.get("math_verify_0_9_0")
    return said if isinstance(said, str) else "incorrect"


def _difference(
    id: str, completion: Any, reference: Any, expected: Any, verdict: rewarden.Verdict, why: str = ""
) -> None:
    text = completion if isinstance(completion, str) and len(completion) <= 200 else f"...{str(completion)[-200:]}"
    extracted = (verdict.evidence or {}).get("extracted")
    print(
        f"{id}: expected {expected}, got {verdict.outcome} ({verdict.reason or verdict.explanation})\n"
        f"    reference {reference!r}, extracted {extracted!r}, completion {text!r} {why}"
    )


def gold_answers(engine: rewarden.Engine, count: int, with_peers: bool) -> list[results.Figure]:
    """Gold answers against themselves and their neighbours."""
    rows = data.golds()[:count]
    same = [data.Pair(f"\\boxed{{{row['answer']}}}", row["answer"]) for row in rows]
    neighbours = [
        data.Pair(f"\\boxed{{{after['answer']}}}", row["answer"])
        for row, after in pairwise(rows)
        if after["dataset"] == row["dataset"] and after["answer"] != row["answer"]
    ]
    said_same, said_next = grade(engine, same), grade(engine, neighbours)
    for row, pair, verdict in zip(rows, same, said_same, strict=True):
        if verdict.reward != 1.0:
            _difference(row["id"], pair.completion, pair.reference, "correct (itself)", verdict)
    for pair, verdict in zip(neighbours, said_next, strict=True):
        if verdict.reward != 0.0:
            print(f"neighbours: {pair.completion} for {pair.reference!r}: {verdict.outcome} {verdict.explanation}")
    right = sum(verdict.reward == 1.0 for verdict in said_same)
    equal = sum(verdict.reward != 0.0 for verdict in said_next)
    figures = [
        results.at_least(f"golds equal to themselves, of {len(same)}", right, len(same)),
        results.plain(f"different neighbours not held wrong, of {len(neighbours)} (printed)", equal),
    ]
    if with_peers:
        peer = by_math_verify([*same, *neighbours])
        figures += [
            results.plain("golds equal to themselves, math-verify", sum(peer[: len(same)])),
            results.plain("different neighbours held equal, math-verify", sum(peer[len(same) :])),
        ]
    return figures


def by_math_verify(pairs: Sequence[data.Pair]) -> list[bool]:
    """The verdicts of math-verify on these pairs, from its pool."""
    with Peer("pool", pairs) as pool:
        return pool.grade(0, len(pairs)).verdicts


def rollouts(engine: rewarden.Engine, dataset: str, with_peers: bool) -> list[results.Figure]:
    """Agreement with the upstream judgement on real rollouts."""
    rows = data.rollouts(dataset)
    pairs = [data.Pair(row["completion"], row["answer"]) for row in rows]
    upstream = [_upstream(row) for row in rows]
    verdicts = grade(engine, pairs)
    agreed = [(verdict.reward == 1.0) is judged for verdict, judged in zip(verdicts, upstream, strict=True)]
    shown: set[tuple[str, str]] = set()
    for row, judged, verdict, fine in zip(rows, upstream, verdicts, agreed, strict=True):
        what = (str((verdict.evidence or {}).get("extracted")), row["answer"])
        if not fine and what not in shown:
            shown.add(what)
            label = f"{'right' if judged else 'wrong'} (upstream read {row['upstream_pred']!r})"
            _difference(row["id"], row["completion"], row["answer"], label, verdict)
    figures = [
        results.at_least(f"{dataset} rollouts, agreement with upstream ({len(rows)})", 100 * _share(agreed), 99.5, "%"),
        results.plain(f"{dataset} rollouts, ungraded", sum(not verdict.graded for verdict in verdicts)),
    ]
    if with_peers:
        peer = by_math_verify(pairs)
        share = _share([said is judged for said, judged in zip(peer, upstream, strict=True)])
        figures.append(results.plain(f"{dataset} rollouts, agreement of math-verify", 100 * share, "%"))
    return figures


def _share(flags: Sequence[bool]) -> float:
    return sum(flags) / len(flags)


def _upstream(row: dict[str, Any]) -> bool:
    """What upstream held: its score, or whether the number that it extracted is the answer."""
    if "upstream_score" in row:
        return bool(row["upstream_score"])
    said, wanted = _number(row["upstream_pred"]), _number(row["answer"])
    return said is not None and wanted is not None and abs(said - wanted) < Fraction(1, 10**6)


def _number(text: Any) -> Fraction | None:
    try:
        return Fraction(str(text).replace(",", ""))
    except (ValueError, ZeroDivisionError):
        return None


def main() -> None:
    """Measure all of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--golds", type=int, default=6319)
    parser.add_argument("--no-peers", action="store_true")
    options = parser.parse_args()
    data.require()
    peers = not options.no_peers
    with rewarden.Engine("math", cache=None) as engine:
        figures = cases(engine, "math_answers", 260)
        figures += cases(engine, "math_pairs_upstream", 485)
        figures += gold_answers(engine, options.golds, peers)
        for dataset in data.FILES:
            figures += rollouts(engine, dataset, peers)
    results.save("math_accuracy", figures, **vars(options))


if __name__ == "__main__":
    main()
