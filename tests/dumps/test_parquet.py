"""Parquet in and out: types survive, what has no type becomes text, and rows are those of the JSON file."""

from __future__ import annotations

import base64
import datetime as dt
import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from rollout_files import Scoring, read, rollouts, write

from rewarden.core.errors import DumpError
from rewarden.dumps import Columns, Row, open_source
from rewarden.dumps import parquet as module
from rewarden.dumps.row import VERDICT_COLUMNS

pa = pytest.importorskip("pyarrow", reason="needs the extra `parquet`")
pq = pytest.importorskip("pyarrow.parquet")

WHEN = dt.datetime(2026, 5, 4, 3, 2, 1, tzinfo=dt.UTC)


def typed(count: int) -> Any:
    """A table with types that JSON does not have."""
    return pa.table(
        {
            "completion": [f"answer {i}" for i in range(count)],
            "reference": pa.array([str(i) for i in range(count)]).dictionary_encode(),
            "when": pa.array([WHEN] * count, pa.timestamp("ms", "UTC")),
            "precise": pa.array([10**18 + i for i in range(count)], pa.timestamp("ns")),
            "price": [Decimal("1.10")] * count,
            "image": [b"\xff\x00"] * count,
            "small": pa.array([i % 100 for i in range(count)], pa.int8()),
            "scores": pa.array([[float("nan"), 1.5]] * count, pa.list_(pa.float32())),
            "pairs": pa.array([[("a", 1)]] * count, pa.map_(pa.string(), pa.int64())),
            "outcome": ["old"] * count,
        }
    )


@pytest.mark.parametrize("count", [1, 999, 10_000])
def test_parquet_to_parquet_keeps_every_type(tmp_path: Path, score: Scoring, count: int) -> None:
    """Columns come out as they went in, to the bit, and the columns of an earlier verdict are replaced."""
    table = typed(count)
    pq.write_table(table, tmp_path / "in.parquet", row_group_size=777)
    score(tmp_path / "in.parquet", tmp_path / "out.parquet")
    out = pq.read_table(tmp_path / "out.parquet")
    assert out.column_names == [*(n for n in table.column_names if n != "outcome"), *VERDICT_COLUMNS]
    for name in table.column_names[:-1]:
        assert out[name].type == table[name].type
        before, after = (found[name] if name != "precise" else found[name].cast("int64") for found in (table, out))
        assert str(after.to_pylist()) == str(before.to_pylist())  # as text, because NaN equals nothing
    assert out["reward"].to_pylist() == [1.0] * count
    assert json.loads(out["verdict"][0].as_py())["outcome"] == "correct"
    groups = pq.ParquetFile(tmp_path / "out.parquet").metadata
    sizes = [groups.row_group(i).num_rows for i in range(groups.num_row_groups)]
    assert all(size == module.ROW_GROUP for size in sizes[:-1])


def test_parquet_to_json_writes_text_for_what_json_lacks(tmp_path: Path, score: Scoring) -> None:
    """Times, decimals and bytes become text, and what is no number becomes null."""
    pq.write_table(typed(2), tmp_path / "in.parquet")
    score(tmp_path / "in.parquet", tmp_path / "out.jsonl")
    row = read(tmp_path / "out.jsonl")[0]
    assert row["when"] == "2026-05-04T03:02:01+00:00"
    assert row["precise"].startswith("2001-09-09")
    assert row["price"] == "1.10"
    assert base64.b64decode(row["image"]) == b"\xff\x00"
    assert row["scores"] == [None, 1.5]
    assert row["pairs"] == [["a", 1]]
    assert row["outcome"] == "correct"


def test_rejected_rows_are_left_out(tmp_path: Path, score: Scoring) -> None:
    """A row without a completion is set aside by its number; the others keep their own columns."""
    table = pa.table(
        {"completion": ["a 0", None, "a 2", None, None, "a 5"], "reference": list("012345"), "n": range(6)}
    )
    pq.write_table(table, tmp_path / "in.parquet")
    for suffix in ("parquet", "jsonl"):
        summary = score(tmp_path / "in.parquet", tmp_path / f"out.{suffix}")
        assert (summary.rows, summary.rejected) == (3, 3)
        assert [row["line"] for row in read(tmp_path / f"out.{suffix}.rejected.jsonl")] == [2, 4, 5]
    assert pq.read_table(tmp_path / "out.parquet")["n"].to_pylist() == [0, 2, 5]
    assert [row["n"] for row in read(tmp_path / "out.jsonl")] == [0, 2, 5]
    assert [row["reward"] for row in read(tmp_path / "out.jsonl")] == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("scorer", ["Quick", "Rank"])
def test_the_formats_say_the_same(tmp_path: Path, score: Scoring, scorer: str) -> None:
    """JSON to Parquet to JSON gives the rows that JSON to JSON gives, up to keys that the type of a column adds."""
    source = write(tmp_path / "in.jsonl", rollouts(3000))
    score(source, tmp_path / "direct.jsonl", scorer)
    score(source, tmp_path / "out.parquet", scorer)
    score(tmp_path / "out.parquet", tmp_path / "back.jsonl", scorer)
    assert read(tmp_path / "back.jsonl") == read(tmp_path / "direct.jsonl")


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


def same(found: Any, value: Any) -> bool:
    """Whether a value that came back is the one that went in, but for null keys that its column's type has added."""
    if isinstance(value, dict):
        return isinstance(found, dict) and all(same(found[k], value.get(k)) for k in found) and not value.keys() - found
    if isinstance(value, list):
        return isinstance(found, list) and len(found) == len(value) and all(map(same, found, value))
    if value is None and isinstance(found, dict):
        return False
    return bool(found == value) and (isinstance(value, bool) is isinstance(found, bool))


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.lists(JSON_VALUES, min_size=1, max_size=8), cut=st.integers(1, 4))
@example(values=[{"a": 0.5}, {"a": True}], cut=2)
@example(values=[[0.5], [True]], cut=1)
@example(values=[0.5, 2**53 + 1], cut=1)
@example(values=[{}, {"a": {}}], cut=2)
def test_any_json_column_survives(tmp_path: Path, values: list[Any], cut: int) -> None:
    """A column of any values is written with one type, or as JSON text: nothing is lost, rounded or refused."""
    verdict = {"reward": None, "outcome": "ungraded", "reason": "deadline", "verdict": {"reward": None}}
    lines = [json.dumps({"completion": "x", "v": value, **verdict}).encode() for value in values]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "ROW_GROUP", cut)
        module.convert(lambda: iter(lines), tmp_path / "out.parquet")
    table = pq.read_table(tmp_path / "out.parquet")
    found = table["v"].to_pylist()
    text = table.schema.field("v").type == pa.string() and not all(v is None or isinstance(v, str) for v in values)
    for value, back in zip(values, found, strict=True):
        if text:
            assert json.loads(back) == value if back is not None else value is None
        else:
            assert same(back, value)


def test_objects_with_many_keys_become_text(tmp_path: Path) -> None:
    """Keys that are data do not become a schema of thousands of columns."""
    lines = [json.dumps({"completion": "x", "v": {f"k{i}": 1}, "reward": 1.0, "outcome": "scored", "reason": None,
                         "verdict": {}}).encode() for i in range(2000)]  # fmt: skip
    module.convert(lambda: iter(lines), tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet")["v"][1999].as_py() == '{"k1999":1}'


def test_chat_messages_stay_messages(tmp_path: Path, score: Scoring) -> None:
    """Messages come back as messages that are a completion, though some have keys that others lack."""
    messages = [
        [{"role": "assistant", "content": "4"}],
        [{"role": "assistant", "content": None, "tool_calls": [{"name": "f"}]}, {"role": "tool", "content": "4"}],
    ]
    source = write(tmp_path / "in.jsonl", [{"completion": message, "reference": "4"} for message in messages])
    score(source, tmp_path / "out.parquet")
    rows = list(open_source(str(tmp_path / "out.parquet"), Columns()))
    assert all(isinstance(row, Row) for row in rows)
    assert rows[1].rollout.completion[0].tool_calls == [{"name": "f"}]  # type: ignore[union-attr]


def test_damaged_files_are_an_error(tmp_path: Path) -> None:
    """A Parquet file with a broken page is named with the place."""
    pq.write_table(pa.table({"completion": [str(i) * 50 for i in range(50_000)]}), tmp_path / "in.parquet")
    data = bytearray((tmp_path / "in.parquet").read_bytes())
    data[len(data) // 2 : len(data) // 2 + 5000] = b"\xff" * 5000
    (tmp_path / "in.parquet").write_bytes(data)
    with pytest.raises(DumpError, match=r"damaged after row \d+"):
        list(open_source(str(tmp_path / "in.parquet"), Columns()))


def test_without_pyarrow_the_extra_is_named(tmp_path: Path) -> None:
    """Where pyarrow is missing, the message says how to get it, and JSON lines work."""
    write(tmp_path / "in.jsonl", rollouts(2))
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from rewarden.dumps import *\n"
        f"assert len(list(open_source('{tmp_path}/in.jsonl', Columns()))) == 2\n"
        f"open('{tmp_path}/in.parquet', 'w')\n"
        f"open_source('{tmp_path}/in.parquet', Columns())\n"
    )
    ran = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=False)
    assert "DumpError: Parquet files need the extra `parquet`: pip install 'rewarden[parquet]'" in ran.stderr
