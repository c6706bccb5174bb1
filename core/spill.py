"""A mapping from row numbers to objects that keeps the newest in memory and the rest in a temporary file.

Interleaved groups make rows wait for rows that come much later; this bounds the memory of that wait, whatever the file.
"""

from __future__ import annotations

import pickle
import sqlite3
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Spill(Generic[Value]):
    """`put` and `pop` by row number; at most `in_memory` objects of `weight` bytes in all stay in memory.

    The file is private, deleted as it is opened, and read back only by this object (it holds pickles).
    """

    def __init__(self, in_memory: int = 20_000, weight: int = 1 << 26) -> None:
        self._in_memory = in_memory
        self._most_weight = weight
        self._weights: dict[int, int] = {}
        self._weight = 0
        self._held: dict[int, Value] = {}
        self._db: sqlite3.Connection | None = None
        self._spilled = 0

    def __len__(self) -> int:
        return len(self._held) + self._spilled

    def put(self, row: int, value: Value, weight: int = 1000) -> None:
        """Keep `value`, of about so many bytes; a row is put once."""
        self._held[row] = value
        self._weights[row] = weight
        self._weight += weight
        while len(self._held) > self._in_memory or (self._weight > self._most_weight and len(self._held) > 1):
            self._spill()

    def pop(self, row: int) -> Value:
        """Take the value back. Raises KeyError when it was never put, or already taken."""
        if row in self._held:
            return self._release(row)
        if self._db is not None:
            found = self._db.execute("DELETE FROM held WHERE row = ? RETURNING value", (row,)).fetchone()
            if found is not None:
                self._spilled -= 1
                value: Value = pickle.loads(found[0])  # noqa: S301 - written by this object, in a file that nobody else has
                return value
        raise KeyError(row)

    def __contains__(self, row: int) -> bool:
        if row in self._held:
            return True
        return (
            self._spilled > 0
            and self._db is not None
            and self._db.execute("SELECT 1 FROM held WHERE row = ?", (row,)).fetchone() is not None
        )

    def _release(self, row: int) -> Value:
        self._weight -= self._weights.pop(row)
        return self._held.pop(row)

    def _spill(self) -> None:
        """Move the older half to the file; the newer rows are likelier to be asked for next."""
        if self._db is None:
            # An unnamed database of SQLite lives in a temporary file that only this connection sees.
            self._db = sqlite3.connect("", check_same_thread=False, isolation_level=None)
            self._db.execute("CREATE TABLE held (row INTEGER PRIMARY KEY, value BLOB)")
        oldest = list(self._held)[: len(self._held) // 2]
        self._db.execute("BEGIN")
        self._db.executemany(
            "INSERT INTO held VALUES (?, ?)",
            ((row, pickle.dumps(self._release(row), pickle.HIGHEST_PROTOCOL)) for row in oldest),
        )
        self._db.execute("COMMIT")
        self._spilled += len(oldest)

    def close(self) -> None:
        """Give the file back."""
        if self._db is not None:
            self._db.close()
        self._held.clear()
