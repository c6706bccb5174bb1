"""Names beside the output, and the lock."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from rollout_files import GRADERS, Scoring, rollouts, write

from rewarden.core.errors import DumpError
from rewarden.dumps.source import Compression, Format
from rewarden.dumps.target import State, Target


def test_two_runs_never_write_the_same_output(tmp_path: Path, score: Scoring) -> None:
    """The second is refused with the number of the first's process, until that has ended, however it ends."""
    source, out = write(tmp_path / "in.jsonl", rollouts(10)), tmp_path / "out.jsonl"
    code = (
        "import sys; from rewarden.dumps.target import State, Target\n"
        f"state = State(Target.of('{out}')); state.lock(); state.save({{}})\n"
        "print(flush=True); sys.stdin.read()\n"
    )
    with subprocess.Popen([sys.executable, "-P", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with pytest.raises(DumpError, match=f"another run .process {other.pid}. is writing"):
            score(source, out)
        other.kill()
        other.wait()
    assert score(source, out).rows == 10


def test_a_torn_state_is_no_state(tmp_path: Path) -> None:
    """What a crash has left half written belongs to nobody."""
    target = Target.of(str(tmp_path / "out.jsonl"))
    target.beside(".part.json").write_text('{"input": ')
    state = State(target)
    assert state.lock() is None
    state.close(done=True)
    assert not target.beside(".part.json").exists()


def test_names_stand_beside_the_output(tmp_path: Path) -> None:
    """Files beside the output have its whole name, so that outputs in two formats do not meet."""
    target = Target.of(str(tmp_path / "out.jsonl.gz"))
    assert (target.format, target.packed, target.is_stream) == (Format.JSONL, Compression.GZIP, False)
    assert target.beside(".rejected.jsonl").name == "out.jsonl.gz.rejected.jsonl"


def test_devices_are_streams_and_never_replaced() -> None:
    """A device gets the rows as they come: it must not be renamed over."""
    assert Target.of("/dev/null").is_stream
    assert Target.of("-").is_stream


@pytest.mark.parametrize(("name", "why"), [("", "folder"), ("none/out.jsonl", "does not exist"), ("out", "suffix")])
def test_impossible_targets(tmp_path: Path, name: str, why: str) -> None:
    """What can never be written is refused before anything is scored."""
    with pytest.raises(DumpError, match=why):
        Target.of(f"{tmp_path}/{name}")


def test_a_stream_gets_every_row(tmp_path: Path) -> None:
    """What goes to a pipe is what would go to a file."""
    source = write(tmp_path / "in.jsonl", [*rollouts(2000), b"no"])
    code = (
        "import sys; from rewarden.core.engine import Engine; from rewarden.dumps import FileScoring\n"
        f"with Engine('{GRADERS}:Quick', cache=None) as engine: FileScoring(engine, sys.argv[1], sys.argv[2]).run()\n"
    )
    command = [sys.executable, "-P", "-c", code]
    piped = subprocess.run([*command, "-", "-"], input=source.read_bytes(), capture_output=True, check=True)
    subprocess.run([*command, str(source), str(tmp_path / "out.jsonl")], check=True)
    assert piped.stdout == (tmp_path / "out.jsonl").read_bytes()
