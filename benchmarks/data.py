"""What the benchmarks grade: real rollouts, gold answers and cases from the folder `shared` beside the checkout.

Covered: reading them, and making a longer stream of rows from the real rollouts. Not covered: getting the data.
"""

from __future__ import annotations

import os
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

ROOT: Final = Path(__file__).resolve().parents[1]
SHARED: Final = ROOT.parent / "shared"
BUILD: Final = Path(os.environ.get("BENCHMARKS_BUILD") or ROOT / "build" / "bench")
"""Where scripts put what they make: rows for child processes, results. Set BENCHMARKS_BUILD to have it elsewhere."""

FILES: Final = {"gsm8k": "gsm8k_tora.jsonl", "math": "math_qwen_cot.jsonl"}
"""Real rollouts by data set: 2,638 of ToRA on GSM8K, 800 of Qwen on MATH."""

_BOXED_INTEGER = re.compile(r"(\\boxed\{)(-?\d{1,15})(\})")
_INTEGER = re.compile(r"-?\d{1,15}")


class Pair(NamedTuple):
    """One row to grade."""

    completion: str
    reference: str


ALGEBRA: Final = Pair(r"So \boxed{\frac{8}{3}}.", r"\int_0^2 x^2 dx")
"""A row that only the last layer settles: grading it shows that the pool is up."""


def available() -> bool:
    """Whether the shared data is there."""
    return (SHARED / "data" / "rollouts").is_dir() and (SHARED / "cases").is_dir()


def require() -> None:
    """Leave the program, in words, where the shared data is missing."""
    if not available():
        sys.exit(f"{SHARED} is missing: the benchmarks need its data/ and cases/ folders beside the checkout.")


def read(path: str) -> list[dict[str, Any]]:
    """The rows of a JSONL file, named from the shared folder."""
    return [orjson.loads(line) for line in (SHARED / path).read_bytes().splitlines()]


def rollouts(dataset: str) -> list[dict[str, Any]]:
    """The real rollouts on `gsm8k` or `math`, as they are."""
    return read(f"data/rollouts/{FILES[dataset]}")


def golds() -> list[dict[str, Any]]:
    """The gold answers of MATH and GSM8K: id, dataset, answer."""
    return read("data/math/golds.jsonl")


def stream(count: int, *, seed: int = 0) -> list[Pair]:
    r"""`count` rows made from the real rollouts, no two with the same completion and reference, in random order.

    The 3,183 different pairs of completion and answer are used again and again:

    - the first time as they are;
    - after that with `Attempt k. ` in front of the reasoning, and with 7k added both to the integer in the last
      `\boxed{}` and to the reference where both are integers (nearly all of GSM8K, most of MATH), so that the pair of
      answer and reference is new as well and the verdict stays what it was;
    - one time in four with the gold answer of another problem of the same data set in place of its own, which makes
      most of those wrong. About 65 of 100 rows are right.
    """
    rng = random.Random(seed)
    references: dict[str, list[str]] = {dataset: [] for dataset in FILES}
    for gold in golds():
        references[gold["dataset"]].append(gold["answer"])
    base = [(dataset, Pair(row["completion"], row["answer"])) for dataset in FILES for row in rollouts(dataset)]
    base = list(dict.fromkeys(base))
    rows: dict[Pair, None] = {}
    attempt = 0
    while len(rows) < count:
        if attempt == 0:
            rng.shuffle(base)
            rows.update(dict.fromkeys(pair for _, pair in base))
        else:
            for number, (dataset, (completion, reference)) in enumerate(base):
                foreign = (number + attempt) % 4 == 0
                own = rng.choice(references[dataset]) if foreign else reference
                rows[_again(Pair(completion, own), attempt)] = None
        attempt += 1
    made = list(rows)[:count]
    rng.shuffle(made)
    return made


def _again(pair: Pair, attempt: int) -> Pair:
    """The row as another attempt: with new reasoning and, where both are integers, a new answer and reference."""
    completion, reference = pair
    boxes = list(_BOXED_INTEGER.finditer(completion))
    if boxes and _INTEGER.fullmatch(reference):
        last = boxes[-1]
        box = f"\\boxed{{{int(last[2]) + 7 * attempt}}}"
        completion = completion[: last.start()] + box + completion[last.end() :]
        reference = str(int(reference) + 7 * attempt)
    return Pair(f"Attempt {attempt}. {completion}", reference)


def hostile() -> list[dict[str, Any]]:
    """Answers that hang, explode or starve a grader, with the outcomes that are allowed."""
    return read("cases/math_hostile.jsonl")


def allowed(row: dict[str, Any]) -> frozenset[str]:
    """The outcomes that a case allows; where it is `incorrect`, `no_answer` is as good."""
    expected = row["expected"]
    names = {expected} if isinstance(expected, str) else set(expected)
    return frozenset(names | {"no_answer"} if "incorrect" in names else names)


def write_jsonl(path: Path, rows: Iterator[dict[str, Any]]) -> Path:
    """Write rows to a JSONL file, one by one, making its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        for row in rows:
            file.write(orjson.dumps(row) + b"\n")
    return path
