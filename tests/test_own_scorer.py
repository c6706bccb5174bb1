"""The example of a scorer in its own package: installed by pip, found by its entry points, and run by the engine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

RUN = """
import json, sys
from rewarden import Engine, Recipe, Rollout
from rewarden.core.registry import names
recipe, rows = json.loads(sys.stdin.read())
recipe = recipe if isinstance(recipe, str) else Recipe.model_validate(recipe)
with Engine(recipe, workers=1) as engine:
    verdicts = engine.score([Rollout.parse(row) for row in rows])
print(json.dumps({"names": names(), "verdicts": [json.loads(verdict.to_json()) for verdict in verdicts]}))
"""


@pytest.fixture(scope="module")
def installed(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which pip has installed the example package, and nothing else."""
    source = tmp_path_factory.mktemp("source") / "own_scorer"
    shutil.copytree(
        root / "examples/own_scorer", source, ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info")
    )
    target = tmp_path_factory.mktemp("target")
    options = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "install", *options, "--target", str(target), str(source)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return target


def run(installed: Path, recipe: Any, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """What a fresh interpreter, with the package on its path, makes of these rollouts."""
    result = subprocess.run(
        [sys.executable, "-P", "-c", RUN],
        env=os.environ | {"PYTHONPATH": str(installed)},
        input=json.dumps([recipe, rows]),
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


def rewards(answer: dict[str, Any]) -> list[float | None]:
    """The rewards alone."""
    return [verdict["reward"] for verdict in answer["verdicts"]]


def padded(answer: str, length: int) -> str:
    """A completion of exactly this length."""
    box = rf"\boxed{{{answer}}}"
    return "x" * (length - len(box) - 1) + " " + box


def test_chained_recipe(installed: Path, root: Path) -> None:
    """Every row of the table in the recipe's README comes out as it says, and the package's scorers have names."""
    table = {
        "all right": ([10, 20, 30], "555", [1.0, 0.75, 0.5]),
        "mixed": ([10, 20, 30], "565", [1.0, 0.0, 1.0]),
        "one too long": ([10, 5000, 30], "555", [1.0, 0.0, 1.0]),
        "all wrong": ([10, 20, 30], "666", [0.0, 0.0, 0.0]),
    }
    rows = [
        {"group": group, "completion": padded(answer, length), "reference": "5"}
        for group, (lengths, answers, _) in table.items()
        for length, answer in zip(lengths, answers, strict=True)
    ]
    answer = run(installed, str(root / "examples/recipes/chained.toml"), rows)
    assert rewards(answer) == [reward for *_, expected in table.values() for reward in expected]
    assert {"within_length", "shortest_right", "remote_score"} <= set(answer["names"])
    readme = (root / "examples/recipes/README.md").read_text()
    for group, (lengths, _, expected) in table.items():
        assert f"| {group} | {', '.join(map(str, lengths))} |" in readme
        assert f"| {', '.join(f'{reward:g}' for reward in expected)} |\n" in readme


def test_a_missing_reward_is_passed_on(installed: Path, root: Path) -> None:
    """A broken reference stays ungraded through the chain."""
    rows = [{"group": "g", "completion": padded("5", n), "reference": None} for n in (10, 20)]
    answer = run(installed, str(root / "examples/recipes/chained.toml"), rows)
    assert rewards(answer) == [None, None]


class Service(BaseHTTPRequestHandler):
    """Scores a text by what it says."""

    def do_POST(self) -> None:
        """Answer one request."""
        text = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["text"]
        self.send_response(500 if text == "down" else 200)
        self.end_headers()
        self.wfile.write({"good": b'{"score": 0.5}', "odd": b'{"score": NaN}'}.get(text, b"what?"))

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    """The address of a running service."""
    with HTTPServer(("127.0.0.1", 0), Service) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def test_async_scorer(installed: Path, url: str) -> None:
    """The remote scorer takes the service's score, and whatever fails is ungraded for a reason."""
    recipe = {"name": "remote", "routes": [{"parts": [{"scorer": "remote_score", "config": {"url": url}}]}]}
    answer = run(installed, recipe, [{"completion": text} for text in ("good", "odd", "chatter", "down", "good")])
    assert rewards(answer) == [0.5, None, None, None, 0.5]
    assert [verdict.get("reason") for verdict in answer["verdicts"]] == [
        None,
        "judge_failed",
        "judge_failed",
        "backend_unavailable",
        None,
    ]
