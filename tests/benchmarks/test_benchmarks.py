"""The benchmarks run, measure what they say, and what they check without a clock holds."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

from rewarden.benchmarks import data, kinds, peers, processes, results


def run(script: str, folder: Path, *options: str) -> dict[str, dict[str, Any]]:
    """Run a script at a small size; its figures by name."""
    done = subprocess.run(
        [sys.executable, "-m", f"rewarden.benchmarks.{script}", *options],
        env=os.environ | {"BENCHMARKS_BUILD": str(folder), "PYTHONSAFEPATH": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    report = orjson.loads((folder / "results" / f"{script}.json").read_bytes())
    for figure in report["figures"]:
        assert figure["what"] in done.stdout
    return {figure["what"]: figure for figure in report["figures"]}


def missed(figures: dict[str, dict[str, Any]], *, timed: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """Figures that fell short, but for those that depend on the machine."""
    return [figure for what, figure in figures.items() if figure["reached"] is False and not what.startswith(timed)]


@pytest.mark.slow
@pytest.mark.usefixtures("shared")
def test_accuracy_is_reached(tmp_path: Path) -> None:
    """Cases, gold answers and real rollouts are judged as well as promised."""
    assert missed(run("math_accuracy", tmp_path, "--no-peers")) == []


@pytest.mark.slow
@pytest.mark.usefixtures("shared")
def test_hostile_answers_are_settled_and_harm_nobody(tmp_path: Path) -> None:
    """Hostile rows get an allowed outcome within memory, and the verdicts of their neighbours stay what they are."""
    figures = run("math_hostile", tmp_path, "--clean", "4356")
    timed = ("slowest", "hostile rows settled without the pool", "(mixed run")
    assert missed(figures, timed=timed) == []


@pytest.mark.slow
def test_nothing_is_lost_in_a_crash(tmp_path: Path) -> None:
    """SIGKILL of workers and of the whole command loses, doubles and changes nothing."""
    assert missed(run("crash", tmp_path, "--rows", "300", "--kills", "5", "--runs", "1")) == []


@pytest.mark.slow
@pytest.mark.usefixtures("shared")
def test_throughput_runs(tmp_path: Path) -> None:
    """The throughput script measures with and without the cache, and shows its layers."""
    figures = run("math_throughput", tmp_path, "--rows", "800", "--rounds", "2", "--no-peers")
    assert any(what.startswith("layer ") for what in figures)
    assert "rows/s, ours, each 8 times, cache on" in figures


@pytest.mark.slow
def test_kinds_run(tmp_path: Path) -> None:
    """Each kind of answer is measured, in one process."""
    figures = run("math_kinds", tmp_path, "--rounds", "1", "--rows", "40", "--no-peers")
    assert list(figures) == list(kinds.KINDS)


@pytest.mark.slow
@pytest.mark.usefixtures("shared")
def test_file_path_runs(tmp_path: Path) -> None:
    """The command grades every row of a file that was made for it, and its memory is seen."""
    figures = run("file_path", tmp_path, "--rows", "2000", "--times", "1", "--million", "3000")
    assert missed(figures, timed=("short rows", "real rows")) == []


@pytest.mark.slow
@pytest.mark.usefixtures("shared")
def test_service_runs(tmp_path: Path) -> None:
    """A real service says what the engine says, refuses nothing but what is too much, and answers while it is busy."""
    sizes = ("--rows", "512", "--times", "1", "--seconds", "1", "--requests", "200")
    figures = run("service", tmp_path, *sizes)
    timed = ("added by HTTP", "/livez", "p99", "graded under overload", "growth")
    assert missed(figures, timed=timed) == []


def test_scripts_hide_no_module() -> None:
    """A script is run with its folder first on the path, so no name there may be one of Python's own."""
    names = {path.stem for path in Path(peers.__file__).parent.glob("*.py")}
    assert not names & sys.stdlib_module_names


@pytest.mark.slow
@pytest.mark.usefixtures("shared")
def test_jobs_run(tmp_path: Path) -> None:
    """A real worker behind a real Redis says what the engine says, asked directly and over HTTP."""
    figures = run("jobs", tmp_path, "--rows", "512", "--times", "1")
    assert missed(figures, timed=("added by",)) == []


@pytest.mark.usefixtures("shared")
def test_a_stream_repeats_no_row() -> None:
    """Rows made from real rollouts are all different, and the same in every run."""
    rows = data.stream(9000)
    assert len(set(rows)) == len(rows) == 9000
    assert rows == data.stream(9000)


def test_another_attempt_keeps_its_truth() -> None:
    """The answer and its reference are moved together, so that what was equal stays equal, and the rest different."""
    moved = data._again(data.Pair("First \\boxed{3}, no: \\boxed{18} dollars.", "18"), 2)
    assert moved == ("Attempt 2. First \\boxed{3}, no: \\boxed{32} dollars.", "32")
    fixed = data._again(data.Pair("So \\boxed{18}.", "\\frac{36}{2}"), 2)
    assert fixed == ("Attempt 2. So \\boxed{18}.", "\\frac{36}{2}")


@pytest.mark.parametrize("name", kinds.KINDS)
def test_rows_of_a_kind_differ(name: str) -> None:
    """No row of a kind comes twice, and half of them are equal."""
    rows = kinds.pairs(name, 500)
    assert len({pair for pair, _ in rows}) == 500
    assert sum(equal for _, equal in rows) == 250


def test_no_answer_is_as_good_as_incorrect() -> None:
    """A case that expects `incorrect` allows `no_answer`, whether it is written as one outcome or as several."""
    assert data.allowed({"expected": "incorrect"}) == {"incorrect", "no_answer"}
    assert data.allowed({"expected": ["correct"]}) == {"correct"}


def test_processes_are_found_by_depth() -> None:
    """A child of this process is one step below it, and its own child two."""
    command = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input()'])"
    with subprocess.Popen([sys.executable, "-c", command], stdin=subprocess.PIPE) as child:
        while not processes.descendants(child.pid):
            assert child.poll() is None
        assert child.pid in processes.descendants(os.getpid(), depth=1)
        assert processes.descendants(child.pid)[0] in processes.workers(os.getpid())
        assert processes.resident_mb(child.pid) > 1
        assert 0 < processes.cpu_s(child.pid) < 60
        child.communicate(b"\n")


def test_a_figure_knows_its_target() -> None:
    """A figure is reached at its target, and not beyond it on the wrong side."""
    assert results.at_least("speed", 5.0, 5, "x").reached
    assert not results.at_least("speed", 4.99, 5, "x").reached
    assert results.at_most("memory", 512, 512, "MB").measured == "512 MB"
    assert not results.at_most("memory", 513, 512, "MB").reached


def test_peers_grade(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each way of running math-verify says what is equal, for the rows it is asked about and no others."""
    if not peers.PYTHON.exists():
        pytest.skip("needs the peers' environment, which `benchmarks/run --peers` makes")
    monkeypatch.setattr(peers, "BUILD", tmp_path)
    rng = random.Random(0)
    rows = [data.Pair(f"So \\boxed{{{n}}}", str(n + rng.choice((0, 1)))) for n in range(8)]
    truth = [row.completion == f"So \\boxed{{{row.reference}}}" for row in rows]
    for how in ("direct", "pool", "fork"):
        with peers.Peer(how, rows) as peer:
            assert peer.grade(2, 8).verdicts == truth[2:]
            assert 1 <= len(peer.grade(0, 8, 0.0).verdicts) < 8
