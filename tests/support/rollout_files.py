"""Files of rollouts for tests, and the malformed rows that may be among them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Protocol

from rewarden.dumps import Summary
from rewarden.dumps.row import DEPTH

GRADERS = Path(__file__).with_name("file_graders.py")


class Scoring(Protocol):
    """`score(source, target, scorer="Quick", **options)`: score a file in this process."""

    def __call__(self, source: Path | str, target: Path | str, scorer: str = "Quick", **options: Any) -> Summary: ...


def rollouts(count: int, groups: int = 7) -> list[dict[str, Any]]:
    """Rows that have an id, interleaved groups, columns of several types, and one in three wrong."""
    return [
        {
            "id": f"r{i}",
            "group": f"g{i % groups}",
            "completion": f"The answer is {i if i % 3 else i + 1}. {'x' * (i * 7919 % 101)}",
            "reference": str(i),
            "weight": i / 7,
            "tags": ["a", "é", f"日{i}"] if i % 2 else [],
            "note": None if i % 5 else {"level": i, "text": "ü\n"},
        }
        for i in range(count)
    ]


def write(path: Path, rows: list[Any]) -> Path:
    """Rows as JSON lines; bytes are written as they are."""
    path.write_bytes(b"".join((row if isinstance(row, bytes) else json.dumps(row).encode()) + b"\n" for row in rows))
    return path


def read(path: Path) -> list[Any]:
    """The rows of a JSON lines file."""
    return [json.loads(line) for line in path.read_bytes().splitlines()]


REJECTS: dict[str, tuple[bytes, str]] = {
    "not json": (b"{'completion': 'x'}", "not JSON"),
    "torn": (b'{"completion": "x"', "not JSON"),
    "list": (b'[{"completion": "x"}]', "not an object, but a JSON list"),
    "number": (b"17", "not an object, but a JSON number"),
    "no completion": (b'{"reference": "x"}', "no column 'completion'"),
    "null completion": (b'{"completion": null}', "'completion' is null"),
    "wrong type": (b'{"completion": 5}', "completion"),
    "wrong type of a message": (b'{"completion": [{"content": "x"}]}', "role"),
    "wrong type of a field": (b'{"completion": "x", "step": "first"}', "step"),
    "not utf-8": (b'{"completion": "\xff"}', "not UTF-8: byte 0xff at position 17"),
    "lone surrogate": (rb'{"completion": "\ud800"}', "not JSON"),
    "nan": (b'{"completion": "x", "weight": NaN}', "NaN at position 31; write null"),
    "minus infinity": (b'{"completion": "x", "weight": -Infinity}', "Infinity at position"),
    "deep": (b'{"completion": "x", "a": ' + b"[" * 500 + b"]" * 500 + b"}", f"nested deeper than {DEPTH}"),
    "very deep": (b'{"completion": "x", "a": ' + b"[" * 9999 + b"]" * 9999 + b"}", f"nested deeper than {DEPTH}"),
    "endless number": (b'{"completion": "x", "a": ' + b"9" * 5000 + b"}", "not JSON"),
    "two objects": (b'{"completion": "x"}{"completion": "y"}', "not JSON"),
}
"""Malformed rows of each kind, with a part of what is said about it."""
