"""The command in a process of its own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from command import COMMAND, Run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """`run("score", ..., stdin=b"")`: the command in an empty folder, with what it says as text."""

    def call(*args: str | Path, stdin: bytes | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
        ran = subprocess.run(
            [*COMMAND, *map(str, args)],
            cwd=tmp_path,
            env=os.environ | {"COLUMNS": "200"} | environment,
            input=stdin if stdin is not None else b"",
            capture_output=True,
            check=False,
            timeout=120,
        )
        assert b"Traceback" not in ran.stderr, ran.stderr.decode()
        out, err = (stream.decode("utf-8", "replace") for stream in (ran.stdout, ran.stderr))
        return subprocess.CompletedProcess(ran.args, ran.returncode, out, err)

    return call
