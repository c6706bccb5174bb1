"""The cache answers equal questions alike and different ones never."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewarden import Message, RewardenError, correct, incorrect, scored
from rewarden.core.cache import MemoryCache, SqliteCache, digest

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters()),
    lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(), v, max_size=3),
    max_leaves=6,
)


def _same(a: Any, b: Any) -> bool:
    """Equal, and of equal kinds (1 is not True is not 1.0)."""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(a[k], b[k]) for k in a)
    return type(a) is type(b) and repr(a) == repr(b)


@given(st.lists(values, max_size=3), st.lists(values, max_size=3))
def test_different_inputs_have_different_keys(a: list[Any], b: list[Any]) -> None:
    """Keys are equal exactly when every field is."""
    assert (digest("s", a) == digest("s", b)) == _same(a, b)


def test_fields_do_not_run_together() -> None:
    """Where one field ends and the next begins is part of the key."""
    assert len({digest("s", fields) for fields in (["ab", "c"], ["a", "bc"], ["abc", ""], ["abc"], ["", "abc"])}) == 5
    assert digest("s", ["1"]) != digest("s", [1])


def test_all_that_decides_is_in_the_key() -> None:
    """Stamp, salt and prior verdicts change the key."""
    keys = {
        digest("s", ["x"]),
        digest("t", ["x"]),
        digest("s", ["x"], "salt"),
        digest("s", ["x"], "", {"a": correct()}),
        digest("s", ["x"], "", {"a": incorrect()}),
        digest("s", ["x"], "", {"b": correct()}),
    }
    assert len(keys) == 6


def test_messages_count_by_content() -> None:
    """Chat messages have keys, equal when what they say is."""
    one, same, other = (Message(role="assistant", content=text) for text in ("a", "a", "b"))
    assert digest("s", [[one]]) == digest("s", [[same]]) != digest("s", [[other]])


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_what_is_put_is_got(kind: str, tmp_path: Path) -> None:
    """Known keys come back with equal verdicts, unknown ones not at all."""
    cache = MemoryCache() if kind == "memory" else SqliteCache(tmp_path / "c.db")
    many = {digest("s", [i]): scored(float(i), evidence={"i": i}) for i in range(1200)}
    cache.put_many(many)
    assert cache.get_many([*many, b"unknown"]) == many


def test_memory_is_bounded_and_keeps_what_is_used() -> None:
    """The least recently used verdicts go first."""
    cache = MemoryCache(limit=3)
    cache.put_many({b"a": correct(), b"b": correct(), b"c": correct()})
    cache.get_many([b"a"])
    cache.put_many({b"d": correct()})
    assert set(cache.get_many([b"a", b"b", b"c", b"d"])) == {b"a", b"c", b"d"}


def test_a_file_that_is_no_cache_is_refused(tmp_path: Path) -> None:
    """A foreign file is not overwritten; the message says what to do."""
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but somebody's notes" * 100)
    with pytest.raises(RewardenError, match="another file"):
        SqliteCache(path)
    assert path.read_text().startswith("not a database")


def test_somebody_elses_database_is_left_alone(tmp_path: Path) -> None:
    """An SQLite file with other tables is refused, unchanged."""
    path = tmp_path / "theirs.db"
    with contextlib.closing(sqlite3.connect(path)) as theirs:
        theirs.execute("CREATE TABLE notes (text)")
        theirs.commit()
    before = path.read_bytes()
    with pytest.raises(RewardenError, match="no cache"):
        SqliteCache(path)
    assert path.read_bytes() == before


def test_two_writers_share_a_file(tmp_path: Path) -> None:
    """Two connections to one file see each other's verdicts."""
    one, two = SqliteCache(tmp_path / "c.db"), SqliteCache(tmp_path / "c.db")
    one.put_many({b"a": correct()})
    two.put_many({b"b": incorrect()})
    assert two.get_many([b"a", b"b"]) == one.get_many([b"a", b"b"]) == {b"a": correct(), b"b": incorrect()}
