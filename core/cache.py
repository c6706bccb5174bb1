"""Verdicts that are already known, so that identical work is done once.

A key is the digest of what decides a verdict: the scorer's stamp and the fields that it reads (see `digest`). Ungraded
verdicts are never stored: what failed may succeed next time. In memory by default, in an SQLite file on request.
"""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import orjson
from pydantic import BaseModel

from .errors import RewardenError
from .verdict import Verdict

Key = bytes


def digest(stamp: str, fields: Iterable[Any], salt: str = "", prior: Mapping[str, Verdict] | None = None) -> Key:
    """16 bytes over the scorer's stamp digest and the values of the fields that it reads, in order.

    Every value is written with its kind and its length, so that no two different inputs give the same bytes. May raise
    for values that are no JSON, such as nesting a thousand deep.
    """
    pieces = [f"{len(stamp)}:{stamp}"]
    for value in fields:
        if type(value) is str:
            pieces.append(f"s{len(value)}:{value}")
        else:
            text = _json(value)
            pieces.append(f"j{len(text)}:{text}")
    if salt:
        pieces.append(f"salt{len(salt)}:{salt}")
    if prior:
        pieces.append("prior" + _json({name: verdict.to_dict() for name, verdict in prior.items()}))
    return hashlib.blake2b("".join(pieces).encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _json(value: Any) -> str:
    try:
        return orjson.dumps(value, default=_plain, option=orjson.OPT_SORT_KEYS).decode()
    except TypeError:  # lone surrogates, integers over 64 bits, keys that are no text: rare, so slow is fine
        return repr(_plain_tree(value))


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(exclude_unset=True)
    raise TypeError


def _plain_tree(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return _plain_tree(value.model_dump(exclude_unset=True))
    if isinstance(value, Mapping):
        return sorted((repr(key), _plain_tree(item)) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return [_plain_tree(item) for item in value]
    # Python refuses to print integers of more than 4,300 digits in decimal.
    return hex(value) if type(value) is int else repr(value)


class Cache(Protocol):
    """Where verdicts are kept. Methods may be called from any thread."""

    def get_many(self, keys: Sequence[Key]) -> dict[Key, Verdict]:
        """The verdicts that are known."""
        ...

    def put_many(self, verdicts: Mapping[Key, Verdict]) -> None:
        """Remember these; all are graded."""
        ...


class MemoryCache:
    """The last `limit` verdicts used, in this process."""

    def __init__(self, limit: int = 200_000) -> None:
        self._limit = limit
        self._known: OrderedDict[Key, Verdict] = OrderedDict()
        self._lock = threading.Lock()

    def get_many(self, keys: Sequence[Key]) -> dict[Key, Verdict]:
        known = self._known
        with self._lock:
            found = {key: known[key] for key in keys if key in known}
            for key in found:
                known.move_to_end(key)
        return found

    def put_many(self, verdicts: Mapping[Key, Verdict]) -> None:
        with self._lock:
            self._known.update(verdicts)
            while len(self._known) > self._limit:
                self._known.popitem(last=False)

    def __len__(self) -> int:
        return len(self._known)


class SqliteCache:
    """A file that outlives the process and may be shared by several processes of one machine."""

    SCHEMA = 1

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            self._db = sqlite3.connect(self.path, check_same_thread=False, timeout=30, isolation_level=None)
            version = self._db.execute("PRAGMA user_version").fetchone()[0]
            if version == 0 and self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                raise RewardenError(f"{path} is a database, but no cache of verdicts; name another file")
            if version not in (0, self.SCHEMA):
                raise RewardenError(
                    f"{path} is a cache of schema {version}, this version reads {self.SCHEMA}; use another file"
                )
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.execute("CREATE TABLE IF NOT EXISTS verdicts (key BLOB PRIMARY KEY, verdict BLOB) WITHOUT ROWID")
            self._db.execute(f"PRAGMA user_version={self.SCHEMA}")
        except sqlite3.Error as error:
            raise RewardenError(f"cannot use {path} as a cache of verdicts: {error}; name another file") from None
        self._lock = threading.Lock()

    def get_many(self, keys: Sequence[Key]) -> dict[Key, Verdict]:
        found: dict[Key, Verdict] = {}
        with self._lock:
            for start in range(0, len(keys), 500):
                some = keys[start : start + 500]
                marks = ",".join("?" * len(some))
                rows = self._db.execute(f"SELECT key, verdict FROM verdicts WHERE key IN ({marks})", some)  # noqa: S608 - only marks
                found.update((key, Verdict.from_dict(orjson.loads(verdict))) for key, verdict in rows)
        return found

    def put_many(self, verdicts: Mapping[Key, Verdict]) -> None:
        rows = [(key, verdict.to_json()) for key, verdict in verdicts.items()]
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany("INSERT OR IGNORE INTO verdicts VALUES (?, ?)", rows)
            self._db.execute("COMMIT")

    def close(self) -> None:
        self._db.close()
