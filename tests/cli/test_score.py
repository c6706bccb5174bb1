"""`rewarden score`: exit statuses, what is said, and being killed at any moment."""

from __future__ import annotations

import gzip
import json
import os
import pty
import random
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from command import COMMAND, Run
from rollout_files import GRADERS, read, rollouts, write

QUICK, SLOW, RANK = (f"{GRADERS}:{name}" for name in ("Quick", "Slow", "Rank"))


def test_scores_a_file(tmp_path: Path, run: Run) -> None:
    """The rows are in OUT, the summary is on standard error, and standard output stays empty."""
    write(tmp_path / "in.jsonl", rollouts(300))
    ran = run("score", "in.jsonl", "-o", "out.jsonl", "--recipe", QUICK)
    assert (ran.returncode, ran.stdout) == (0, "")
    assert len(read(tmp_path / "out.jsonl")) == 300
    for said in ("rows", "correct", "incorrect", "mean reward", "no signal", "rows/s", "300 rows in out.jsonl"):
        assert said in ran.stderr


def test_rejected_rows_are_exit_status_1(tmp_path: Path, run: Run) -> None:
    """A row without a verdict is reported with its line, kept, and makes the status 1."""
    write(tmp_path / "in.jsonl", [*rollouts(2), b"{", *rollouts(2)])
    ran = run("score", "in.jsonl", "-o", "out.jsonl", "--recipe", QUICK)
    assert ran.returncode == 1
    assert "line 3 rejected: not JSON" in ran.stderr
    assert "1 row rejected, as they are no rollouts; they are in out.jsonl.rejected.jsonl" in ran.stderr
    assert [row["line"] for row in read(tmp_path / "out.jsonl.rejected.jsonl")] == [3]
    assert len(read(tmp_path / "out.jsonl")) == 4


def test_fail_on_ungraded(tmp_path: Path, run: Run) -> None:
    """An ungraded row is a verdict, so that it makes the status 1 on request only."""
    write(tmp_path / "in.jsonl", [{"completion": "x"}, *rollouts(2)])
    assert run("score", "in.jsonl", "-o", "out.jsonl", "--recipe", QUICK).returncode == 0
    ran = run("score", "in.jsonl", "-o", "out.jsonl", "--recipe", QUICK, "--overwrite", "--fail-on", "ungraded")
    assert ran.returncode == 1
    assert "bad_reference" in ran.stderr


def test_quiet_says_nothing_but_errors(tmp_path: Path, run: Run) -> None:
    """Silence means that all is well."""
    write(tmp_path / "in.jsonl", rollouts(2))
    assert run("score", "in.jsonl", "-o", "out.jsonl", "--recipe", QUICK, "--quiet").stderr == ""
    assert "exists" in run("score", "in.jsonl", "-o", "out.jsonl", "--recipe", QUICK, "--quiet").stderr


def test_standard_streams(tmp_path: Path, run: Run) -> None:
    """`-` reads standard input and writes standard output, and nothing else is written."""
    rows = rollouts(20)
    source = write(tmp_path / "in.jsonl", [*rows, b"no"])
    ran = run("score", "-", "-o", "-", "--recipe", QUICK, "--map", "reference=id", stdin=source.read_bytes())
    assert ran.returncode == 1
    assert [json.loads(line)["id"] for line in ran.stdout.splitlines()] == [row["id"] for row in rows]
    assert "line 21 rejected" in ran.stderr
    assert os.listdir(tmp_path) == ["in.jsonl"]  # noqa: PTH208


def test_a_reader_that_has_had_enough(tmp_path: Path) -> None:
    """`| head` ends the command without a complaint."""
    write(tmp_path / "in.jsonl", rollouts(20_000))
    command = f"set -o pipefail; {' '.join(COMMAND)} score in.jsonl -o - --recipe {QUICK} -q | head -n 1"
    ran = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (141, "")
    assert json.loads(ran.stdout)["id"] == "r0"


def test_pipes_of_a_shell(tmp_path: Path) -> None:
    """`<(...)`, `>(...)` and /dev/stdout are streams of JSON lines, in and out."""
    write(tmp_path / "in.jsonl", rollouts(20))
    command = f"{' '.join(COMMAND)} score -q --recipe {QUICK}"
    script = (
        f"{command} <(head -3 in.jsonl) -o /dev/stdout | wc -l; {command} in.jsonl -o >(wc -l > n); sleep 0.2; cat n"
    )
    ran = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.stderr == ""
    assert ran.stdout.split() == ["3", "20"]


def test_rejected_rows_are_told_even_when_quiet(tmp_path: Path, run: Run) -> None:
    """In a pipeline the standard error is the only place for them: the first twenty, then how many more."""
    source = write(tmp_path / "in.jsonl", [*rollouts(1), *([b"no"] * 25)])
    ran = run("score", "-", "-o", "-", "--recipe", QUICK, "-q", stdin=source.read_bytes())
    assert ran.returncode == 1
    *told, last = ran.stderr.splitlines()
    assert [line.split()[1] for line in told] == [str(i) for i in range(2, 22)]
    assert "25 rows rejected, as they are no rollouts (5 more than shown)" in last
    ran = run("score", "in.jsonl", "-o", "out.jsonl", "--recipe", QUICK, "-q")
    assert ran.stderr.splitlines()[-1].endswith("they are in out.jsonl.rejected.jsonl")


def test_the_summary_says_what_went_wrong(tmp_path: Path, run: Run) -> None:
    """Missing references, who graded, why the first row has no reward; and no row steers the terminal."""
    write(tmp_path / "in.jsonl", [{"completion": "x", "gold\x1b[2J": "x"}] * 3)
    ran = run("score", "in.jsonl", "-o", "out.jsonl", "--recipe", QUICK)
    assert "first bad_reference: line 1: there is no reference" in ran.stderr
    assert "no row has a reference" in ran.stderr
    assert "--map reference=COLUMN" in ran.stderr
    assert "\x1b" not in ran.stderr
    assert [line.split() for line in ran.stderr.splitlines() if line.startswith("by ")] == [
        ["by", "quick", "3", "100.0%"]
    ]


USAGE = {
    "no such file": (["none.jsonl", "-o", "out.jsonl"], "there is no file none.jsonl"),
    "no output": (["in.jsonl"], "Missing option '--output'"),
    "unknown option": (["in.jsonl", "-o", "out.jsonl", "--fast"], "No such option: --fast"),
    "unknown recipe": (["in.jsonl", "-o", "out.jsonl", "--recipe", "maths"], "no recipe or scorer is called 'maths'"),
    "no recipe file": (["in.jsonl", "-o", "out.jsonl", "--recipe", "none.toml"], "cannot read the recipe none.toml"),
    "no such attribute": (["in.jsonl", "-o", "out.jsonl", "--recipe", f"{GRADERS}:None"], "has no attribute 'None'"),
    "bad suffix": (["in.jsonl", "-o", "out.txt", "--recipe", QUICK], "its suffix names no format"),
    "no folder": (["in.jsonl", "-o", "none/out.jsonl", "--recipe", QUICK], "does not exist"),
    "bad map": (["in.jsonl", "-o", "out.jsonl", "--map", "reference"], "--map takes field=column"),
    "no such column": (
        ["in.jsonl", "-o", "out.jsonl", "--recipe", QUICK, "--map", "reference=gold"],
        "--map names the column 'gold', which no row has",
    ),
    "two caches": (["in.jsonl", "-o", "out.jsonl", "--cache", "c.db", "--no-cache"], "contradict"),
    "no cache": (["in.jsonl", "-o", "out.jsonl", "--recipe", QUICK, "--cache", "no/c.db"], "cannot use no/c.db"),
    "full device": (["in.jsonl", "-o", "/dev/full", "--recipe", QUICK], "No space left on device"),
    "zero workers": (["in.jsonl", "-o", "out.jsonl", "--workers", "0"], "'--workers': Input should be"),
    "the input itself": (["in.jsonl", "-o", "in.jsonl", "--recipe", QUICK, "--overwrite"], "the input itself"),
}


@pytest.mark.parametrize("mistake", USAGE)
def test_mistakes_are_one_line_and_status_2(tmp_path: Path, run: Run, mistake: str) -> None:
    """What cannot be done is said in one line, and leaves nothing behind."""
    write(tmp_path / "in.jsonl", rollouts(3))
    arguments, said = USAGE[mistake]
    ran = run("score", *arguments)
    assert ran.returncode == 2
    assert said in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
    assert ran.stderr.startswith("rewarden: ")
    assert os.listdir(tmp_path) == ["in.jsonl"]  # noqa: PTH208


def test_a_bug_in_a_scorer_is_a_verdict(tmp_path: Path, run: Run) -> None:
    """A scorer that raises costs no other row, and no status 2."""
    (tmp_path / "buggy.py").write_text(
        "from rewarden.core.scorer import scorer\n\n"
        "@scorer('buggy', reads=('completion',))\n"
        "def buggy(rollout):\n    return 1 / len(rollout.completion)\n"
    )
    write(tmp_path / "in.jsonl", [{"completion": "x"}, {"completion": ""}, {"completion": "yy"}])
    ran = run("score", "in.jsonl", "-o", "out.jsonl", "--recipe", "buggy.py:buggy")
    assert ran.returncode == 0
    assert [row["reward"] for row in read(tmp_path / "out.jsonl")] == [1.0, None, 0.5]


def test_a_cache_file_serves_a_later_run(tmp_path: Path, run: Run) -> None:
    """Verdicts that an earlier run has kept are not made again, and the output is the same."""
    write(tmp_path / "in.jsonl", rollouts(50))
    run("score", "in.jsonl", "-o", "one.jsonl", "--recipe", QUICK, "--cache", "cache.db")
    ran = run("score", "in.jsonl", "-o", "two.jsonl", "--recipe", QUICK, "--cache", "cache.db")
    assert "from the cache" in ran.stderr
    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two.jsonl").read_bytes()
    assert all(row.get("cached", True) for row in read(tmp_path / "two.jsonl.run.jsonl"))


def test_progress_on_a_terminal(tmp_path: Path) -> None:
    """A terminal gets a bar with the rate, and the time that is left."""
    write(tmp_path / "in.jsonl", rollouts(15_000))
    ours, theirs = pty.openpty()
    command = [*COMMAND, "score", "in.jsonl", "-o", "out.jsonl", "--recipe", SLOW]
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "120"}
    with subprocess.Popen(command, cwd=tmp_path, stderr=theirs, env=environment) as process:
        os.close(theirs)
        said = b""
        while True:
            try:
                said += os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
    os.close(ours)
    assert process.returncode == 0
    text = said.decode()
    assert "scoring" in text
    assert "rows/s" in text
    assert "left" in text
    assert "15,000 rows in out.jsonl" in text


# -- killed -----------------------------------------------------------------------------------------------------------


def start(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """The command, under way."""
    return subprocess.Popen([*COMMAND, *arguments], cwd=folder, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)


def wait_for_bytes(process: subprocess.Popen[bytes], path: Path, size: int) -> None:
    """Until the file has this many bytes, or the process has ended."""
    while process.poll() is None and not (path.exists() and path.stat().st_size >= size):
        time.sleep(0.002)


@pytest.mark.parametrize(
    ("suffixes", "recipe"),
    [
        (("jsonl", "jsonl"), SLOW),
        (("jsonl", "jsonl"), RANK),
        (("jsonl.gz", "jsonl.zst"), SLOW),
        (("jsonl", "parquet"), SLOW),
        (("parquet", "parquet"), SLOW),
    ],
    ids=["plain", "groups", "packed", "to parquet", "parquet"],
)
def test_killed_at_any_moment_it_goes_on(tmp_path: Path, run: Run, suffixes: tuple[str, str], recipe: str) -> None:
    """After kills at random moments, the same command gives the bytes of an undisturbed run."""
    chance = random.Random(str(suffixes))
    rows: list[Any] = rollouts(6000)
    for _ in range(5):
        rows.insert(chance.randrange(len(rows)), b"no rollout")
    source, whole, out = f"in.{suffixes[0]}", f"whole.{suffixes[1]}", f"out.{suffixes[1]}"
    make_source(write(tmp_path / "rows.jsonl", rows), tmp_path / source)
    command = ("score", source, "--recipe", recipe, "--no-cache", "-o")
    began = time.monotonic()
    assert run(*command, whole).returncode == int(suffixes[0] != "parquet")
    takes = time.monotonic() - began
    kills = 0
    while kills < 3:
        process = start(tmp_path, *command, out)
        if chance.random() < 0.5:
            wait_for_bytes(process, tmp_path / f"{out}.part", chance.randrange(1_500_000))
        else:
            time.sleep(chance.uniform(0.3, 0.9) * takes)
        if process.poll() is None:
            kills += 1
            process.kill()
        elif kills < 3:  # too late: once more
            (tmp_path / out).unlink(missing_ok=True)
        process.communicate()
    if not (tmp_path / out).exists():
        run(*command, out)
    assert (tmp_path / out).read_bytes() == (tmp_path / whole).read_bytes()
    logged = [row["line"] for row in read(tmp_path / f"{out}.run.jsonl")[:-1]]
    in_file = [row for row in rows if suffixes[0] != "parquet" or not isinstance(row, bytes)]
    assert logged == [line for line, row in enumerate(in_file, 1) if not isinstance(row, bytes)]
    left = {path.name.removeprefix(out) for path in tmp_path.glob(f"{out}*")}
    assert left == {"", ".run.jsonl"} | ({".rejected.jsonl"} if suffixes[0] != "parquet" else set())


def make_source(rows: Path, source: Path) -> None:
    """The rows in the format of the name; those that are no JSON cannot be in a Parquet file."""
    if source.suffix == ".parquet":
        pa = pytest.importorskip("pyarrow", reason="needs the extra `parquet`")
        good = [json.loads(line) for line in rows.read_bytes().splitlines() if line.startswith(b"{")]
        pytest.importorskip("pyarrow.parquet").write_table(pa.Table.from_pylist(good), source)
    elif source.suffix == ".gz":
        source.write_bytes(gzip.compress(rows.read_bytes()))
    else:
        source.write_bytes(rows.read_bytes())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_it_in_good_order(tmp_path: Path, run: Run, number: signal.Signals) -> None:
    """It keeps what is done, says how to go on, and its status names the signal."""
    write(tmp_path / "in.jsonl", rollouts(5000))
    command = ("score", "in.jsonl", "--recipe", SLOW, "-o")
    process = start(tmp_path, *command, "out.jsonl")
    wait_for_bytes(process, tmp_path / "out.jsonl.part", 500_000)
    process.send_signal(number)
    said = process.communicate(timeout=60)[1].decode()
    assert process.returncode == 128 + number
    assert f"stopped by {number.name} after" in said
    assert "give the same command again to go on" in said
    done = (tmp_path / "out.jsonl.part").read_bytes()
    assert done.endswith(b"}\n")
    told = int(said.partition(" after ")[2].partition(" rows")[0].replace(",", ""))
    assert abs(told - done.count(b"\n")) <= 1  # a signal may come between the two
    ran = run(*command, "out.jsonl")
    assert "there before" in ran.stderr
    run(*command, "whole.jsonl")
    assert (tmp_path / "out.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_two_commands_do_not_share_an_output(tmp_path: Path, run: Run) -> None:
    """The second is refused as long as the first is running."""
    write(tmp_path / "in.jsonl", rollouts(20_000))
    process = start(tmp_path, "score", "in.jsonl", "--recipe", SLOW, "-o", "out.jsonl")
    wait_for_bytes(process, tmp_path / "out.jsonl.part", 1000)
    ran = run("score", "in.jsonl", "--recipe", SLOW, "-o", "out.jsonl")
    process.kill()
    process.communicate()
    assert ran.returncode == 2
    assert f"another run (process {process.pid}) is writing out.jsonl" in ran.stderr
