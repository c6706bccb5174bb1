"""Inputs and circumstances that once lost rows, files or runs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from rollout_files import Scoring, read, rollouts, write

from rewarden.core.errors import DumpError
from rewarden.dumps import Progress
from rewarden.dumps import parquet as module
from rewarden.dumps.cell import objects
from rewarden.dumps.row import Columns, Row
from rewarden.dumps.target import State, Target

pa = pytest.importorskip("pyarrow", reason="needs the extra `parquet`")
pq = pytest.importorskip("pyarrow.parquet")


def table(**columns: Any) -> Any:
    """Two rows that are rollouts, with other columns."""
    return pa.table({"completion": ["a 0", "a 1"], "reference": ["0", "1"], **columns})


@pytest.mark.parametrize("how", ["replaced", "written over, with the old times"])
def test_a_parquet_file_that_changes_is_not_published(tmp_path: Path, score: Scoring, how: str) -> None:
    """Rewards never meet rows that they were not given on, whether the file is another or only its content is."""
    source, other, out = (tmp_path / name for name in ("in.parquet", "other.parquet", "out.parquet"))
    pq.write_table(table(), source)
    pq.write_table(pa.table({"completion": ["b 0", "b 1"], "reference": ["1", "0"]}), other)
    before, done = source.stat(), False

    def tick(progress: Progress) -> None:
        nonlocal done
        if progress.summary.rows and not done:
            done = True
            if how == "replaced":
                other.replace(source)
            else:
                source.write_bytes(other.read_bytes())
                os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))

    with pytest.raises(DumpError):
        score(source, out, tick=tick)
    assert done
    assert not out.exists()
    assert not Path(f"{out}.part.final").exists()


def test_a_row_that_is_not_the_scored_one_is_noticed(tmp_path: Path) -> None:
    """A verdict is joined to the row of its digest only."""
    pq.write_table(table(), tmp_path / "in.parquet")
    source = module.ParquetSource(tmp_path / "in.parquet", Columns(), heads=False)
    tail = b',"reward":1.0,"outcome":"correct","reason":null,"verdict":{}}'
    lines = [row.head + tail for row in source if isinstance(row, Row)]
    module.join(source, lines, tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet").num_rows == 2
    spoilt = [lines[0], lines[1].replace(b'"row":"', b'"row":"f')]
    with pytest.raises(DumpError, match="changed"):
        module.join(source, spoilt, tmp_path / "out.parquet")


@pytest.mark.parametrize("suffix", ["", ".part", ".part.json", ".part.json.new", ".rejected.jsonl", ".run.jsonl"])
@pytest.mark.parametrize("link", [os.link, os.symlink, None])
def test_no_file_of_the_run_is_the_input(tmp_path: Path, score: Scoring, suffix: str, link: Any) -> None:
    """The input survives, whatever it is called and whatever links to it."""
    source, out = write(tmp_path / "in.jsonl", rollouts(3)), tmp_path / "out.jsonl"
    data, clash = source.read_bytes(), Path(f"{out}{suffix}")
    if link is not None:
        link(source, clash)
    elif clash.suffix == ".jsonl":
        source = source.rename(clash)
    else:
        return
    with pytest.raises(DumpError, match="is the input itself"):
        score(source, out, overwrite=True, restart=True)
    assert source.read_bytes() == data


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_a_row_of_verdict_columns_alone(tmp_path: Path, score: Scoring, suffix: str) -> None:
    """The output is JSON though nothing stands before the verdict, also when a run goes on."""
    if suffix == "jsonl":
        source = write(tmp_path / "in.jsonl", [{"verdict": "x"}])
    else:
        source = tmp_path / "in.parquet"
        pq.write_table(pa.table({"verdict": ["x"]}), source)
    score(source, tmp_path / "out.jsonl", mapping={"completion": "verdict"})
    assert list(read(tmp_path / "out.jsonl")[0]) == ["reward", "outcome", "reason", "verdict"]


def test_a_kill_leaves_the_old_state_or_the_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever fails while the state is saved, what was said before can be read."""
    target = Target.of(str(tmp_path / "out.jsonl"))
    state = State(target)
    state.lock()
    state.save({"input": 1})
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "full")))
        with pytest.raises(DumpError, match="full"):
            state.save({"input": 2})
    state.close(done=False)
    again = State(target)
    assert (again.lock() or {})["input"] == 1
    again.close(done=True)
    assert not list(tmp_path.iterdir())


def test_runs_of_one_process_exclude_each_other(tmp_path: Path) -> None:
    """The second is refused, the first keeps its lock, and the third may go on when the first has ended."""
    target = Target.of(str(tmp_path / "out.jsonl"))
    first, second = State(target), State(target)
    first.lock()
    for _ in range(2):
        with pytest.raises(DumpError, match=f"another run .process {os.getpid()}. is writing"):
            second.lock()
        second.close(done=False)
    first.close(done=True)
    second.lock()
    second.close(done=True)


@pytest.mark.parametrize(("reward", "value"), [(2**60 + 1, float(2**60)), (True, 1.0), (None, None), (0.5, 0.5)])
def test_rewards_are_doubles(tmp_path: Path, reward: Any, value: float | None) -> None:
    """Whatever number a scorer says, the column has doubles."""
    line = json.dumps({"completion": "x", "reward": reward, "outcome": "scored", "reason": None, "verdict": {}})
    module.convert(lambda: iter([line.encode()]), tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet")["reward"].to_pylist() == [value]


ODD = {
    "duration": pa.array([1, None], pa.duration("ns")),
    "time": pa.array([1, 2], pa.time64("ns")),
    "nested": pa.array([[1], None], pa.list_(pa.timestamp("ns"))),
    "map": pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.timestamp("ns"))),
    "zone": pa.array([1, 2], pa.timestamp("us", "Mars/X")),
    "zone ns": pa.array([1, 2], pa.timestamp("ns", "Mars/X")),
    "date": pa.array([2**31 - 1, 0], pa.int32()).cast(pa.date32()),
    "late": pa.array([2**53, 0], pa.timestamp("ms", "UTC")),
}


@pytest.mark.parametrize("name", ODD)
def test_times_beyond_python_are_text(tmp_path: Path, score: Scoring, name: str) -> None:
    """Such a column costs no row, and comes through unchanged or as text."""
    pq.write_table(table(odd=ODD[name]), tmp_path / "in.parquet")
    for suffix in ("parquet", "jsonl"):
        summary = score(tmp_path / "in.parquet", tmp_path / f"out.{suffix}")
        assert (summary.rows, summary.rejected) == (2, 0)
    assert pq.read_table(tmp_path / "out.parquet")["odd"].cast(ODD[name].type).combine_chunks() == ODD[name]
    odd = read(tmp_path / "out.jsonl")[0]["odd"]
    assert isinstance(odd, str) or (isinstance(odd, list) and odd)


def test_text_that_is_none_costs_its_row_where_it_is_needed(tmp_path: Path, score: Scoring) -> None:
    """Bad UTF-8 in a column that nobody reads stays what it is; written as JSON, its row is rejected, and no other."""
    bad = pa.Array.from_buffers(pa.string(), 2, pa.array([b"\xff", b"ok"]).buffers())
    pq.write_table(table(odd=bad), tmp_path / "in.parquet")
    assert score(tmp_path / "in.parquet", tmp_path / "out.parquet").rejected == 0
    summary = score(tmp_path / "in.parquet", tmp_path / "out.jsonl")
    assert (summary.rows, summary.rejected) == (1, 1)


def test_fields_of_one_name_become_pairs() -> None:
    """Nothing of a struct is lost where two fields share a name."""
    odd = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    assert objects(pa.record_batch({"odd": odd})) == [{"odd": [["a", 1], ["a", 2]]}]


def test_rejected_rows_have_all_columns(tmp_path: Path, score: Scoring) -> None:
    """A rejected row is written whole, though only some of its columns are read."""
    pq.write_table(pa.table({"completion": [None, "x"], "other": [1, 2]}), tmp_path / "in.parquet")
    score(tmp_path / "in.parquet", tmp_path / "out.parquet")
    assert read(tmp_path / "out.parquet.rejected.jsonl")[0]["row"] == {"completion": None, "other": 1}


def test_what_is_held_is_bounded_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long rows come in smaller chunks, and none is lost."""
    monkeypatch.setattr(module, "CHUNK", 1000)
    lines = [json.dumps({"i": i, "x": "x" * 400}).encode() for i in range(10)]
    chunks = list(module._chunks(lines))
    assert max(map(len, chunks)) == 3
    assert [row["i"] for chunk in chunks for row in chunk] == list(range(10))
    tables = list(module._regrouped(pa, (pa.table({"x": ["x" * 400], "i": [i]}) for i in range(10))))
    assert max(map(len, tables)) == 3
    assert [i for one in tables for i in one["i"].to_pylist()] == list(range(10))
