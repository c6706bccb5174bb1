"""The command: where it listens, what stops it, and what it says when it cannot start."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from command import COMMAND
from service import PATIENCE_S, until

from rewarden.cli.serve import serve
from rewarden.core import extras
from rewarden.core.errors import ServiceError

SLOW = """
import time
from rewarden import Resource, Scorer, scored

class Slow(Scorer):
    name = "slow_for_drain"
    resource = Resource.SANDBOX
    reads = ("completion",)

    def score(self, rollouts, prior):
        time.sleep(float(rollouts[0].completion))
        return [scored(1.0) for _ in rollouts]
"""


class Command:
    """A service in a process of its own."""

    def __init__(self, process: subprocess.Popen[str], url: str, said: list[str]) -> None:
        self.process = process
        self.url = url
        self.said = said

    def log(self) -> list[dict[str, Any]]:
        """The lines of the log, once the process has ended."""
        return [json.loads(line) for line in self.said if line.startswith("{")]


@contextmanager
def command(*args: str | Path, cwd: Path) -> Iterator[Command]:
    """`rewarden serve` on a free port."""
    process = subprocess.Popen(
        [*COMMAND, "serve", "--port", "0", "--workers", "1", *map(str, args)],
        cwd=cwd, env=os.environ | {"PYTHONPATH": str(cwd)}, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    said: list[str] = []
    assert process.stderr is not None
    stream = process.stderr

    thread = threading.Thread(target=lambda: said.extend(stream), daemon=True)
    thread.start()
    try:
        until(lambda: process.poll() is not None or any("listening on" in line for line in said))
        assert process.poll() is None, said
        found = re.search(r"listening on (\S+)", "".join(said))
        assert found is not None
        yield Command(process, found[1], said)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(PATIENCE_S)
        thread.join(PATIENCE_S)
        stream.close()


def test_drain(tmp_path: Path) -> None:
    """Told to stop, a service is not ready at once and refuses new work, ends what is under way, and exits with 0."""
    (tmp_path / "slow_for_drain.py").write_text(SLOW)
    with command("--recipe", "slow=slow_for_drain:Slow", cwd=tmp_path) as running:
        until(lambda: httpx.get(f"{running.url}/readyz").status_code == 200)
        answers: list[httpx.Response] = []
        sent = {"recipe": "slow", "rollouts": [{"id": "r", "completion": "2.5"}]}
        asker = threading.Thread(
            target=lambda: answers.append(httpx.post(f"{running.url}/v1/score", json=sent, timeout=60))
        )
        asker.start()
        until(lambda: httpx.get(f"{running.url}/v1/status").json()["in_flight"]["rollouts"] == 1)
        running.process.send_signal(signal.SIGTERM)
        until(lambda: httpx.get(f"{running.url}/readyz").status_code == 503)
        refused = httpx.post(f"{running.url}/v1/score", json=sent)
        assert (refused.status_code, refused.json()["code"]) == (503, "draining")
        assert httpx.get(f"{running.url}/livez").status_code == 200
        asker.join(PATIENCE_S)
        assert answers[0].json()["verdicts"][0]["reward"] == 1.0
        assert running.process.wait(PATIENCE_S) == 0
    slow = [line for line in running.log() if line["event"] == "slow rollout"]
    assert [(line["rollout"], line["scorer"]) for line in slow] == [("r", "slow_for_drain")]


def test_log(tmp_path: Path) -> None:
    """Every request is one JSON line with its id and counts, and no completion, prompt or key is in the log."""
    with command(cwd=tmp_path) as running:
        rows = [{"completion": "the secret completion", "prompt": "the secret prompt", "reference": "x"}]
        sent = {"recipe": "exact", "rollouts": rows}
        httpx.post(f"{running.url}/v1/score", json=sent, headers={"X-Request-ID": "abc", "X-API-Key": "rw_secret"})
        httpx.post(f"{running.url}/v1/score", content=b"the secret body")
        httpx.get(f"{running.url}/livez")
        running.process.send_signal(signal.SIGINT)
        assert running.process.wait(PATIENCE_S) == 0
    lines = [line for line in running.log() if line["event"] == "request"]
    assert [(line["route"], line["status"]) for line in lines] == [("/v1/score", 200), ("/v1/score", 400)]
    assert lines[0]["request_id"] == "abc"
    assert lines[0]["outcomes"] == {"incorrect": 1}
    assert lines[1]["problem"] == "not_json"
    assert "secret" not in "".join(running.said)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--host", "0.0.0.0"], "rewarden keys create"),
        (["--keys", "none.json"], "cannot read the keys"),
        (["--only", "cooking"], "no scorer does work of the kind cooking"),
        (["--route", "math"], "KIND=TARGET"),
        (["--route", "math=ftp://x"], "a target is http://HOST:PORT or `queue`"),
        (["--route", "math=queue"], "needs a queue"),
        (["--queue", "mysql://x:secret@y"], "redis://HOST:PORT/0"),
        (["--recipe", "mine=none.toml"], "none.toml"),
        (["--recipe", "../x=math"], "cannot be offered"),
        (["--cache", "x", "--no-cache"], "contradict"),
        (["--log-level", "LOUD"], "LOUD"),
        (["--host", "192.0.2.1", "--keys", "keys.json"], "cannot listen on 192.0.2.1"),
    ],
)
def test_what_cannot_start(tmp_path: Path, args: list[str], says: str) -> None:
    """What cannot start says why in one line, and exits with 2."""
    (tmp_path / "keys.json").write_text('{"keys": []}')
    ran = subprocess.run(
        [*COMMAND, "serve", "--port", "0", *args], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    assert ran.returncode == 2, ran.stderr
    assert says in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
    assert "secret" not in ran.stderr


def test_missing_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where what a service needs is not installed, it says how to get it."""
    have = extras.installed
    monkeypatch.setattr(extras, "installed", lambda name: None if name == "fastapi" else have(name))
    with pytest.raises(ServiceError, match=r"pip install 'rewarden\[serve\]'"):
        serve()


def test_port_in_use(tmp_path: Path) -> None:
    """A port that is taken is named in one line."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ran = subprocess.run(
            [*COMMAND, "serve", "--port", port], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
        )
    assert (ran.returncode, len(ran.stderr.splitlines())) == (2, 1)
    assert f"cannot listen on 127.0.0.1:{port}" in ran.stderr
    assert "--port" in ran.stderr


def test_keys_command(tmp_path: Path) -> None:
    """A key is made, works, is listed without its secret, and is revoked."""

    def keys(*args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*COMMAND, "keys", *args], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
        )

    made = keys("create", "--name", "trainer", "--scopes", "score,admin", "--expires", "30d")
    key = made.stdout.strip()
    assert re.fullmatch(r"rw_[0-9a-f]{12}_[\w-]{43}", key)
    assert key not in (tmp_path / "keys.json").read_text()
    listed = keys("list").stdout
    assert "trainer" in listed
    assert "score, admin" in listed
    assert key[16:] not in listed
    with command("--keys", "keys.json", cwd=tmp_path) as running:
        assert httpx.get(f"{running.url}/v1/status", headers={"X-API-Key": key}).status_code == 200
        assert keys("revoke", key.split("_")[1]).returncode == 0
        until(lambda: httpx.get(f"{running.url}/v1/status", headers={"X-API-Key": key}).status_code == 401)
    for wrong in (
        ["create", "--name", "x", "--scopes", "root"],
        ["create", "--name", "x", "--expires", "soon"],
        ["create", "--name", "x", "--file", "no/keys.json"],
        ["revoke", "abcd"],
        ["list", "--file", "none.json"],
    ):
        ran = keys(*wrong)
        assert (ran.returncode, len(ran.stderr.splitlines())) == (2, 1), ran.stderr
