"""Scoring a file: the order is kept, each row is there once with all it had, and equal runs give equal bytes."""

from __future__ import annotations

import contextlib
import fcntl
import gzip
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard
from rollout_files import GRADERS, REJECTS, Scoring, read, rollouts, write

from rewarden.core.engine import Engine
from rewarden.core.errors import DumpError
from rewarden.dumps import FileScoring, Progress, Rejected, Row
from rewarden.dumps import journal as journal_module
from rewarden.dumps.journal import Journal

ADDED = ["reward", "outcome", "reason", "verdict"]


def beside(path: Path) -> set[str]:
    """The suffixes of the files that a run has left beside its output, and of the output."""
    return {found.name.removeprefix(path.name) for found in path.parent.glob(f"{path.name}*")}


def interrupted(score: Scoring, source: Path, out: Path, scorer: str, after: int, **options: Any) -> None:
    """Score until `after` rows are written (roughly), then fail as a bug would."""

    class InterruptError(Exception):
        """What stops the run."""

    def tick(progress: Progress) -> None:
        if progress.summary.rows - progress.summary.resumed >= after:
            raise InterruptError

    with pytest.raises(InterruptError):
        score(source, out, scorer, tick=tick, **options)


@pytest.mark.parametrize("scorer", ["Quick", "Rank"])
def test_every_row_once_in_order_with_all_columns(tmp_path: Path, score: Scoring, scorer: str) -> None:
    """The output is the input, row by row, with the columns of the verdict behind."""
    rows = rollouts(3000)
    summary = score(write(tmp_path / "in.jsonl", rows), tmp_path / "out.jsonl", scorer)
    out = read(tmp_path / "out.jsonl")
    assert [{k: v for k, v in row.items() if k not in ADDED} for row in out] == rows
    assert all(list(row)[-4:] == ADDED for row in out)
    assert all(row["verdict"]["id"] == row["id"] and row["verdict"]["reward"] == row["reward"] for row in out)
    assert summary.rows == 3000
    assert beside(tmp_path / "out.jsonl") == {"", ".run.jsonl"}


def test_bytes_of_the_input_are_kept(tmp_path: Path, score: Scoring) -> None:
    """A row passes through as it was written: digits, spaces, escapes, order and doubled keys."""
    line = rb'{ "b" : 1.50e1, "completion": "\u00e9",  "a": 123456789012345678901234567890, "a": [ ] }'
    score(write(tmp_path / "in.jsonl", [line]), tmp_path / "out.jsonl")
    assert (tmp_path / "out.jsonl").read_bytes().startswith(line[:-1].rstrip() + b',"reward":')


def test_rewards_are_those_of_the_engine(tmp_path: Path, score: Scoring) -> None:
    """Nothing that a scorer says is changed on the way to the file; what it could not grade has no reward."""
    rows = rollouts(60)
    for row in rows[::10]:
        del row["reference"]
    score(write(tmp_path / "in.jsonl", rows), tmp_path / "out.jsonl")
    for row, found in zip(rows, read(tmp_path / "out.jsonl"), strict=True):
        if "reference" not in row:
            assert (found["reward"], found["outcome"], found["reason"]) == (None, "ungraded", "bad_reference")
        else:
            assert found["reward"] == float(row["reference"] in row["completion"])


@pytest.mark.parametrize("suffix", ["jsonl", "jsonl.gz", "jsonl.zst", "parquet"])
def test_two_runs_are_equal_byte_by_byte(tmp_path: Path, score: Scoring, suffix: str) -> None:
    """Times, names and the moment leave no trace in the output."""
    source = write(tmp_path / "in.jsonl", rollouts(2000))
    outs = [tmp_path / f"{i}" / f"out{i}.{suffix}" for i in range(2)]
    for out in outs:
        out.parent.mkdir()
        score(source, out)
        os.utime(source)
    assert outs[0].read_bytes() == outs[1].read_bytes()


def test_compressed_outputs_are_the_plain_one_packed(tmp_path: Path, score: Scoring) -> None:
    """Packing changes nothing but the packing, in and out."""
    source = write(tmp_path / "in.jsonl", rollouts(3000))
    for suffix in ("jsonl", "jsonl.gz", "jsonl.zst"):
        score(source, tmp_path / f"out.{suffix}")
    plain = (tmp_path / "out.jsonl").read_bytes()
    assert gzip.decompress((tmp_path / "out.jsonl.gz").read_bytes()) == plain
    assert zstandard.ZstdDecompressor().decompress((tmp_path / "out.jsonl.zst").read_bytes()) == plain
    for suffix in ("jsonl.gz", "jsonl.zst"):
        score(tmp_path / f"out.{suffix}", tmp_path / "again.jsonl", overwrite=True)
        assert read(tmp_path / "again.jsonl") == read(tmp_path / "out.jsonl")


def test_scoring_a_scored_file_replaces_the_verdict(tmp_path: Path, score: Scoring) -> None:
    """The columns of an earlier run are replaced, not doubled; all others stay."""
    source = write(tmp_path / "in.jsonl", [{**row, "big": 10**30} for row in rollouts(100)])
    score(source, tmp_path / "one.jsonl", "Quick")
    score(tmp_path / "one.jsonl", tmp_path / "two.jsonl", "Rank")
    score(source, tmp_path / "direct.jsonl", "Rank")
    assert read(tmp_path / "two.jsonl") == read(tmp_path / "direct.jsonl")
    assert (tmp_path / "two.jsonl").read_bytes().count(b'"reward"') == 200


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("scorer", ["Quick", "Rank"])
def test_rejected_rows_lose_nothing_else(tmp_path: Path, score: Scoring, seed: int, scorer: str) -> None:
    """Malformed rows of each kind at any place are set aside with their line; the others are scored as without them."""
    chance = random.Random(seed)
    good = rollouts(1500)
    lines: list[Any] = list(good)
    for raw, _ in REJECTS.values():
        lines.insert(chance.choice([0, len(lines), chance.randrange(len(lines))]), raw)
    summary = score(write(tmp_path / "in.jsonl", lines), tmp_path / "out.jsonl", scorer)
    score(write(tmp_path / "good.jsonl", good), tmp_path / "clean.jsonl", scorer)
    assert (tmp_path / "out.jsonl").read_bytes() == (tmp_path / "clean.jsonl").read_bytes()
    rejected = read(tmp_path / "out.jsonl.rejected.jsonl")
    assert [row["line"] for row in rejected] == [i for i, line in enumerate(lines, 1) if isinstance(line, bytes)]
    assert summary.rejected == len(rejected) == len(REJECTS)
    for row in rejected:
        raw = lines[row["line"] - 1]
        kept = json.dumps(row["row"]) if "row" in row else row["raw"]
        assert json.loads(raw) == row["row"] if "row" in row else kept == raw.decode("utf-8", "backslashreplace")


def test_nothing_rejected_leaves_no_file(tmp_path: Path, score: Scoring) -> None:
    """A stale list of rejected rows does not outlive a run that rejects none."""
    score(write(tmp_path / "in.jsonl", [b"no"]), tmp_path / "out.jsonl")
    assert beside(tmp_path / "out.jsonl") == {"", ".run.jsonl", ".rejected.jsonl"}
    score(write(tmp_path / "in.jsonl", rollouts(1)), tmp_path / "out.jsonl", overwrite=True)
    assert beside(tmp_path / "out.jsonl") == {"", ".run.jsonl"}


@pytest.mark.parametrize("suffix", ["jsonl", "jsonl.gz", "jsonl.zst", "parquet"])
def test_an_empty_file_gives_an_empty_file(tmp_path: Path, score: Scoring, suffix: str) -> None:
    """No rows in, no rows out, in every format; and what was written can be read."""
    score(write(tmp_path / "in.jsonl", []), tmp_path / f"out.{suffix}")
    assert score(tmp_path / f"out.{suffix}", tmp_path / "again.jsonl").rows == 0
    assert (tmp_path / "again.jsonl").read_bytes() == b""


def test_a_verdict_that_is_no_json_is_ungraded(tmp_path: Path, score: Scoring) -> None:
    """Evidence that nobody could read costs its row the verdict, and no other row."""
    source = write(tmp_path / "in.jsonl", [{"completion": str(i)} for i in range(6)])
    summary = score(source, tmp_path / "out.jsonl", "Unprintable")
    assert [row["reason"] for row in read(tmp_path / "out.jsonl")] == [None, "scorer_error"] * 3
    assert summary.reasons == {"scorer_error": 3}


def test_limit_reads_the_first_rows(tmp_path: Path, score: Scoring) -> None:
    """A limit counts rows of the input, rejected ones too."""
    source = write(tmp_path / "in.jsonl", [*rollouts(3), b"no", *rollouts(10)])
    summary = score(source, tmp_path / "out.jsonl", limit=5)
    assert (summary.rows, summary.rejected) == (4, 1)


def test_the_run_log_has_a_line_for_each_row(tmp_path: Path, score: Scoring) -> None:
    """Times go to the log by line number, with the totals at its end."""
    source = write(tmp_path / "in.jsonl", [b"no", *rollouts(20)])
    summary = score(source, tmp_path / "out.jsonl")
    *rows, last = read(tmp_path / "out.jsonl.run.jsonl")
    assert [row["line"] for row in rows] == list(range(2, 22))
    assert set(rows[0]) == {"line", "seconds", "cached", "pooled", "attempts"}
    assert last["summary"]["outcomes"] == dict(summary.outcomes)
    assert last["summary"]["rejected"] == 1


# -- going on ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["jsonl", "jsonl.gz", "jsonl.zst", "parquet"])
@pytest.mark.parametrize("scorer", ["Quick", "Rank"])
def test_an_interrupted_run_goes_on(tmp_path: Path, score: Scoring, suffix: str, scorer: str) -> None:
    """What is left of the run is scored, what was there is counted, and the result is that of an undisturbed run."""
    lines: list[Any] = [*rollouts(4000), b"no"]
    lines.insert(100, b"{")
    source = write(tmp_path / "in.jsonl", lines)
    out = tmp_path / f"out.{suffix}"
    undisturbed = score(source, tmp_path / f"whole.{suffix}", scorer)
    for _ in range(2):
        interrupted(score, source, out, scorer, 1000)
        assert not out.exists()
        assert beside(out) == {".part", ".part.json", ".run.jsonl", ".rejected.jsonl"}
    summary = score(source, out, scorer)
    assert out.read_bytes() == (tmp_path / f"whole.{suffix}").read_bytes()
    assert beside(out) == {"", ".run.jsonl", ".rejected.jsonl"}
    assert 2000 <= summary.resumed < 4000
    rejected = [tmp_path / f"{name}.{suffix}.rejected.jsonl" for name in ("out", "whole")]
    assert rejected[0].read_bytes() == rejected[1].read_bytes()
    for name in ("rows", "rejected", "outcomes", "reasons", "mean_reward", "no_signal", "groups"):
        assert getattr(summary, name) == getattr(undisturbed, name), name
    logged = [row["line"] for row in read(Path(f"{out}.run.jsonl"))[:-1]]
    assert logged == [i for i in range(1, 4003) if i not in (101, 4002)]


@pytest.mark.parametrize("keep", [0, 1, 10_001, 99_999])
@pytest.mark.parametrize("junk", [b"", b"\0" * 700, b'{"id": "torn'])
def test_a_torn_line_is_scored_again(tmp_path: Path, score: Scoring, keep: int, junk: bytes) -> None:
    """Wherever a crash has cut the part, and whatever it has left behind the cut, only whole rows count as done."""
    source = write(tmp_path / "in.jsonl", rollouts(2000))
    out = tmp_path / "out.jsonl"
    score(source, tmp_path / "whole.jsonl")
    interrupted(score, source, out, "Quick", 1000)
    part = tmp_path / "out.jsonl.part"
    part.write_bytes(part.read_bytes()[:keep] + junk)
    score(source, out)
    assert out.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_a_spoilt_line_in_the_part_is_scored_again(tmp_path: Path, score: Scoring) -> None:
    """A whole line that is no JSON (blocks of a disk that never arrived) is dropped with all behind it."""
    source = write(tmp_path / "in.jsonl", rollouts(2000))
    out = tmp_path / "out.jsonl"
    score(source, tmp_path / "whole.jsonl")
    for scorer in ("Quick", "Rank"):
        interrupted(score, source, out, scorer, 1000, overwrite=True)
        part = tmp_path / "out.jsonl.part"
        lines = part.read_bytes().splitlines(keepends=True)
        lines[700] = b"\0" * (len(lines[700]) - 1) + b"\n"
        part.write_bytes(b"".join(lines))
        summary = score(source, out, scorer, overwrite=True)
        assert summary.resumed == 700
        score(source, tmp_path / "whole.jsonl", scorer, overwrite=True)
        assert out.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


CHANGES: dict[str, tuple[str, Callable[[dict[str, Any]], object]]] = {
    "scorer": ("another recipe", lambda call: call.update(scorer="Slow")),
    "map": ("another --map", lambda call: call.update(mapping={"reference": "id"})),
    "limit": ("another --limit", lambda call: call.update(limit=1999)),
    "input": ("another input", lambda call: write(call["source"], rollouts(2001))),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_part_of_another_run_is_refused(tmp_path: Path, score: Scoring, change: str) -> None:
    """What was begun otherwise is neither mixed nor deleted, unless one asks for it."""
    source = write(tmp_path / "in.jsonl", rollouts(2000))
    out = tmp_path / "out.jsonl"
    interrupted(score, source, out, "Quick", 1000)
    part = (tmp_path / "out.jsonl.part").read_bytes()
    call: dict[str, Any] = {"source": source, "target": out}
    why, edit = CHANGES[change]
    edit(call)
    with pytest.raises(DumpError, match=why + ".*--restart"):
        score(**call)
    assert (tmp_path / "out.jsonl.part").read_bytes() == part
    assert score(**call, restart=True).resumed == 0


def test_an_input_that_differs_inside_is_refused(tmp_path: Path, score: Scoring) -> None:
    """Rows that were done are compared with the input, so that an edit in its middle is noticed."""
    rows = rollouts(9000)
    source = write(tmp_path / "in.jsonl", rows)
    interrupted(score, source, tmp_path / "out.jsonl", "Quick", 6000)
    rows[4000]["completion"] = rows[4000]["completion"].replace("The", "Der")
    write(source, rows)
    with pytest.raises(DumpError, match=r"differs at line 4001 from when .*/out.jsonl.part was begun; --restart"):
        score(source, tmp_path / "out.jsonl")


def test_a_run_that_never_began_leaves_nothing(tmp_path: Path, score: Scoring) -> None:
    """A mistake in the command is corrected without --restart."""
    source = write(tmp_path / "in.jsonl", rollouts(10))
    with pytest.raises(DumpError, match="'anwser', which no row has"):
        score(source, tmp_path / "out.jsonl", mapping={"reference": "anwser"})
    assert beside(tmp_path / "out.jsonl") == set()
    assert score(source, tmp_path / "out.jsonl", mapping={"reference": "id"}).rows == 10


def test_a_wrong_column_is_noticed_early(tmp_path: Path, score: Scoring) -> None:
    """In a long file, a mapped column that is not there stops the run before anything is scored."""
    source = write(tmp_path / "in.jsonl", rollouts(5000))
    with pytest.raises(DumpError, match="'anwser', which no row has"):
        score(source, tmp_path / "out.jsonl", mapping={"reference": "anwser"})
    assert beside(tmp_path / "out.jsonl") == set()


def test_an_existing_output_is_not_replaced_unasked(tmp_path: Path, score: Scoring) -> None:
    """An output is replaced on request only, whole, and never by a run that fails."""
    source, out = write(tmp_path / "in.jsonl", rollouts(2000)), tmp_path / "out.jsonl"
    out.write_bytes(b"precious")
    with pytest.raises(DumpError, match="exists; --overwrite"):
        score(source, out)
    interrupted(score, source, out, "Quick", 1000, overwrite=True)
    assert out.read_bytes() == b"precious"
    assert score(source, out, overwrite=True).resumed > 0
    assert len(read(out)) == 2000


def test_the_input_is_never_the_output(tmp_path: Path, score: Scoring) -> None:
    """Not even under another name, nor on request."""
    source = write(tmp_path / "in.jsonl", rollouts(3))
    (tmp_path / "link.jsonl").symlink_to(source)
    for name in ("in.jsonl", "link.jsonl", "../" + tmp_path.name + "/in.jsonl"):
        with pytest.raises(DumpError, match="the input itself"):
            score(source, tmp_path / name, overwrite=True)


def test_a_link_is_followed(tmp_path: Path, score: Scoring) -> None:
    """The file behind a link is replaced, and the link stays."""
    source = write(tmp_path / "in.jsonl", rollouts(3))
    (tmp_path / "real.jsonl").touch()
    (tmp_path / "link.jsonl").symlink_to("real.jsonl")
    score(source, tmp_path / "link.jsonl", overwrite=True)
    assert (tmp_path / "link.jsonl").is_symlink()
    assert len(read(tmp_path / "real.jsonl")) == 3


@pytest.mark.parametrize("suffix", ["jsonl.gz", "jsonl.zst"])
def test_what_a_damaged_file_has_is_scored_before_the_error(tmp_path: Path, score: Scoring, suffix: str) -> None:
    """The rows before the damage are in the part, and the error says where it is."""
    rows = b"".join(json.dumps(row).encode() + b"\n" for row in rollouts(8000))
    packed = gzip.compress(rows) if suffix.endswith("gz") else zstandard.ZstdCompressor().compress(rows)
    source = tmp_path / f"in.{suffix}"
    source.write_bytes(packed[: len(packed) * 3 // 4])
    with pytest.raises(DumpError, match=r"damaged after line (\d+)") as error:
        score(source, tmp_path / "out.jsonl")
    line = int(str(error.value).partition("after line ")[2].partition(":")[0])
    assert len(read(tmp_path / "out.jsonl.part")) == line > 1000


def test_a_damaged_file_gives_no_verdicts_on_parts_of_groups(tmp_path: Path, score: Scoring) -> None:
    """Where verdicts depend on other rows, rows that cannot be read would change them: nothing is scored."""
    packed = gzip.compress(b"".join(json.dumps(row).encode() + b"\n" for row in rollouts(8000)))
    (tmp_path / "in.jsonl.gz").write_bytes(packed[: len(packed) * 3 // 4])
    with pytest.raises(DumpError, match="damaged after line"):
        score(tmp_path / "in.jsonl.gz", tmp_path / "out.jsonl", "Rank")
    assert beside(tmp_path / "out.jsonl") == set()


@pytest.mark.parametrize("writes", [1, 2, 3, 5])
def test_a_full_disk_is_an_error_that_a_later_run_mends(
    tmp_path: Path, score: Scoring, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    """Whichever write finds the disk full, half done or not, a later run goes on and gives the same bytes."""
    source, out = write(tmp_path / "in.jsonl", rollouts(6000)), tmp_path / "out.jsonl"
    score(source, tmp_path / "whole.jsonl")
    real, left = os.write, [writes]

    def full(fd: int, data: Any) -> int:
        left[0] -= 1
        if left[0] == 0:
            return real(fd, data[: len(data) // 2 + 1])
        if left[0] < 0:
            raise OSError(28, "No space left on device")
        return real(fd, data)

    monkeypatch.setattr(journal_module, "HOLD", 1 << 16)
    monkeypatch.setattr("os.write", full)
    with pytest.raises(DumpError, match="No space left on device; free some space"):
        score(source, out)
    monkeypatch.undo()
    assert not out.exists()
    score(source, out)
    assert out.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


@pytest.mark.parametrize("suffix", ["jsonl", "jsonl.gz", "parquet"])
def test_a_limit_on_file_size(tmp_path: Path, score: Scoring, suffix: str) -> None:
    """A real limit of the system gives a clear error, and a run without it goes on."""
    source, out = write(tmp_path / "in.jsonl", rollouts(6000)), tmp_path / f"out.{suffix}"
    score(source, tmp_path / f"whole.{suffix}")
    code = (
        f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1000000, resource.RLIM_INFINITY))\n"
        "from rewarden.core.engine import Engine; from rewarden.dumps import FileScoring\n"
        f"with Engine('{GRADERS}:Quick', cache=None) as engine: FileScoring(engine, '{source}', '{out}').run()\n"
    )
    ran = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=False)
    assert "DumpError: cannot write" in ran.stderr
    assert "File too large" in ran.stderr
    assert not out.exists()
    assert score(source, out).resumed > 1000
    assert out.read_bytes() == (tmp_path / f"whole.{suffix}").read_bytes()


def test_rows_are_not_kept(tmp_path: Path) -> None:
    """At any moment only the rows that the engine works on are in memory, whatever the length of the file."""
    source = write(tmp_path / "in.jsonl", rollouts(20_000))
    taken, ahead = 0, []
    with Engine(f"{GRADERS}:Quick", cache=None) as engine:
        job = FileScoring(engine, str(source), "/dev/null")
        rows = job._source

        class Counting:
            """The source, watched."""

            fraction, identity = rows.fraction, rows.identity

            def __iter__(self) -> Iterator[Row | Rejected]:
                nonlocal taken
                for row in rows:
                    taken += 1
                    ahead.append(taken - job.progress.summary.rows)
                    yield row

        job._source = Counting()
        assert job.run().rows == 20_000
    assert max(ahead) < 8000


def test_journal_appends_behind_what_was_taken(tmp_path: Path) -> None:
    """Lines that were not taken are dropped, a torn one too; what follows stands behind those taken."""
    path = tmp_path / "journal"
    path.write_bytes(b"one\ntwo\nthree\nto")
    journal = Journal(path, resume=True)
    assert journal.peek() == b"one"
    assert journal.peek() == b"one"
    journal.take()
    assert journal.peek() == b"two"
    journal.append(b"2\n")
    assert journal.peek() is None
    journal.finish()
    assert path.read_bytes() == b"one\n2\n"


# -- looking before anything is written -------------------------------------------------------------------------------


def test_a_wrong_column_of_objects_is_noticed(tmp_path: Path, score: Scoring) -> None:
    """The message lists the columns there are, and a path that leads nowhere counts as no column."""
    source = write(tmp_path / "in.jsonl", [{"completion": "x", "model": {"truth": 1}}] * 3)
    with pytest.raises(DumpError, match=r"'model.gold', which no row has \(columns: completion, model\)"):
        score(source, tmp_path / "out.jsonl", mapping={"reference": "model.gold"})
    assert beside(tmp_path / "out.jsonl") == set()


@pytest.mark.parametrize(("raw", "why"), [({"response": "x"}, "--map completion=COLUMN"), (b"x", "not JSON")])
def test_a_file_without_rollouts_stops_at_once(tmp_path: Path, score: Scoring, raw: Any, why: str) -> None:
    """When none of the first 1000 rows is a rollout the command is wrong, and nothing is written; 999 are rejected."""
    with pytest.raises(DumpError, match=f"none of the first 1,000 rows is a rollout; line 1: .*{why}"):
        score(write(tmp_path / "in.jsonl", [raw] * 1000 + rollouts(5)), tmp_path / "out.jsonl")
    assert beside(tmp_path / "out.jsonl") == set()
    assert score(write(tmp_path / "in.jsonl", [raw] * 999 + rollouts(5)), tmp_path / "out.jsonl").rows == 5


def test_a_column_that_comes_late_is_found(tmp_path: Path, score: Scoring) -> None:
    """Looking goes on to row 1000, and no row that was looked at is lost or doubled."""
    rows = [{"completion": "1"}] * 999 + [{"completion": "1", "gold": "1"}] * 3
    summary = score(write(tmp_path / "in.jsonl", rows), tmp_path / "out.jsonl", mapping={"reference": "gold"})
    assert (summary.rows, summary.outcomes["correct"]) == (1002, 3)


def test_a_limit_ends_the_look(tmp_path: Path, score: Scoring) -> None:
    """What lies behind --limit is not read to find a column."""
    rows = [{"completion": "1"}] * 5 + [{"completion": "1", "gold": "1"}]
    with pytest.raises(DumpError, match="which no row has"):
        score(write(tmp_path / "in.jsonl", rows), tmp_path / "out.jsonl", mapping={"reference": "gold"}, limit=5)


# -- what the summary says ---------------------------------------------------------------------------------------------


def test_missing_references_are_noted(tmp_path: Path, score: Scoring) -> None:
    """A run without any reference, though the scorer reads it, names the option and the columns."""
    rows = [{"completion": "x", "answer": "x"}] * 3
    (note,) = score(write(tmp_path / "in.jsonl", rows), tmp_path / "a.jsonl").notes
    assert "--map reference=COLUMN" in note
    assert "columns: completion, answer" in note
    assert not score(tmp_path / "in.jsonl", tmp_path / "b.jsonl", "Rank").notes
    assert not score(write(tmp_path / "in.jsonl", [*rows, *rollouts(1)]), tmp_path / "c.jsonl").notes


@pytest.mark.parametrize("scorer", ["Quick", "Rank"])
def test_scorers_and_causes_are_counted(tmp_path: Path, score: Scoring, scorer: str) -> None:
    """Rows are counted by who graded them, and the first row without a reward is told with its line, resumed or not."""
    rows = rollouts(2000)
    del rows[3]["reference"], rows[1900]["reference"]
    source = write(tmp_path / "in.jsonl", rows)
    interrupted(score, source, tmp_path / "out.jsonl", scorer, 500)
    summary = score(source, tmp_path / "out.jsonl", scorer)
    assert summary.resumed >= 500
    assert summary.scorers == {scorer.lower(): 2000}
    told = {"bad_reference": (4, "there is no reference")} if scorer == "Quick" else {}
    assert summary.causes == told


# -- flushing ---------------------------------------------------------------------------------------------------------


def test_the_log_never_lacks_a_row_of_the_part(tmp_path: Path, score: Scoring, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whenever a kill comes, each row that is in the part has its line in the log."""
    monkeypatch.setattr(journal_module, "HOLD", 5000)
    out, checks = tmp_path / "out.jsonl", []
    real = os.write

    def watched(fd: int, data: Any) -> int:
        written = real(fd, data)
        part, log = (Path(f"{out}{suffix}") for suffix in (".part", ".run.jsonl"))
        if part.exists() and log.exists():
            checks.append(part.read_bytes().count(b"\n") <= log.read_bytes().count(b"\n"))
        return written

    monkeypatch.setattr("os.write", watched)
    score(write(tmp_path / "in.jsonl", rollouts(1500)), out)
    assert len(checks) > 50
    assert all(checks)


def test_verdicts_leave_before_more_rows_are_awaited(tmp_path: Path) -> None:
    """All rows of a step have been written when the engine asks for rows of another."""
    steps: list[tuple[int, int]] = []
    out = tmp_path / "out"
    os.mkfifo(out)
    taken = os.open(out, os.O_RDWR | os.O_NONBLOCK)
    fcntl.fcntl(taken, fcntl.F_SETPIPE_SZ, 1 << 20)  # nobody reads after the last row
    with Engine(f"{GRADERS}:Quick", cache=None) as engine:
        job = FileScoring(engine, str(write(tmp_path / "in.jsonl", rollouts(400))), str(out))
        rows, seen = job._source, 0

        class Watching:
            """The source, and how many verdicts have left when a row is taken."""

            fraction, identity = rows.fraction, rows.identity

            def __iter__(self) -> Iterator[Row | Rejected]:
                nonlocal seen
                for row in rows:
                    with contextlib.suppress(BlockingIOError):
                        seen += os.read(taken, 1 << 20).count(b"\n")
                    steps.append((job.progress.summary.rows, seen))
                    yield row

        job._source = Watching()
        job.run()
    os.close(taken)
    assert all(rows == left for rows, left in steps)
    assert steps[-1][0] > 0
