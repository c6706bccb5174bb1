"""The README's commands for serving rewards do what it says, as a reader would run them."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from service import PATIENCE_S, until

ROOT = Path(__file__).parents[2]
ADDRESS = "http://127.0.0.1:8321"
SECTION = re.search(r"^## Serve rewards$(.*?)^## ", (ROOT / "README.md").read_text(), flags=re.MULTILINE | re.DOTALL)


def block(language: str, place: int) -> str:
    """A fenced block of the section."""
    assert SECTION is not None
    found: list[str] = re.findall(rf"^```{language}\n(.*?)^```$", SECTION[1], flags=re.MULTILINE | re.DOTALL)
    return found[place]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Where the README's own service listens, but for its port."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="rw-") as state:
        environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "XDG_STATE_HOME": state,
        }
        command = f"exec {block('bash', 0).strip()} --port {port}"
        process = subprocess.Popen(["bash", "-c", command], env=environment, stderr=subprocess.PIPE)
        url = f"http://127.0.0.1:{port}"

        def ready() -> bool:
            assert process.poll() is None, process.communicate()[1]
            try:
                return httpx.get(f"{url}/readyz").status_code == 200
            except httpx.TransportError:
                return False

        until(ready)
        yield url
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0


def test_curl(address: str) -> None:
    """The batch is scored: one right answer, and one that nobody can judge and so has no reward."""
    command = block("bash", 1).replace(ADDRESS, address)
    ran = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    assert [verdict["reward"] for verdict in json.loads(ran.stdout)["verdicts"]] == [1.0, None]


def test_client(address: str, tmp_path: Path) -> None:
    """The same through the client, directly and as a job."""
    program = tmp_path / "program.py"
    program.write_text(block("py", 0).replace(ADDRESS, address))
    command = [sys.executable, "-P", str(program)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    assert ran.stdout.strip() == "1.0 correct"


def test_job(address: str) -> None:
    """The job of the how-to page is taken, and done."""
    page = (ROOT / "docs/how-to/run-a-queue.md").read_text()
    (command,) = re.findall(r"^```sh\n(curl .*?)^```$", page, flags=re.MULTILINE | re.DOTALL)
    command = command.replace(ADDRESS, address)
    ran = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    job = json.loads(ran.stdout)["id"]
    until(lambda: httpx.get(f"{address}/v1/jobs/{job}").json()["outcomes"] == {"correct": 1})
