"""Remote input names no code and no place: whatever a request calls a recipe or scorer, nothing is imported or read."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from problem_document import problem
from service import Running

TRAP = "raise SystemExit(open(__file__ + '.sprung', 'w').write('x'))\n"

NAMES = [
    "/etc/passwd",
    "../../etc/passwd",
    "file:///etc/passwd",
    "auto.toml",
    "./math",
    "os:system",
    "os.system",
    "subprocess:Popen",
    "rewarden.verifiers.math.scorer:MathScorer",
    "own_scorers:Length",
    "math:MathScorer",
    "http://127.0.0.1:9/recipe.toml",
    "redis://127.0.0.1:6379/0",
    "sqlite:////tmp/x.db",
    "__import__('os').system('id')",
    "math; import os",
    "{{7*7}}",
    "${jndi:ldap://x}",
    "math\x00",
    "math\n",
    " math",
    "MATH",
    "queue",
    "*",
    "..",
    "recipes/auto",
]


def score(url: str, sent: dict[str, Any]) -> httpx.Response:
    """Ask for scores."""
    return httpx.post(f"{url}/v1/score", json=sent)


@pytest.mark.parametrize("name", NAMES)
def test_names_are_looked_up_and_nothing_else(url: Running, name: str) -> None:
    """As a recipe it is unknown; as a rollout's scorer it is that rollout's verdict; pinned to it, another version."""
    before = set(sys.modules)
    row = {"completion": "x", "reference": "x"}
    problem(score(url, {"recipe": name, "rollouts": [row]}), 404, "unknown_recipe")
    answer = score(url, {"recipe": "exact", "rollouts": [row, row | {"scorer": name}]})
    assert [(v["reward"], v.get("reason")) for v in answer.json()["verdicts"]] == [(1.0, None), (None, "no_route")]
    pinned = score(url, {"recipe": f"exact@{name}", "rollouts": [row]})
    assert pinned.status_code in (404, 409)
    assert not {module for module in set(sys.modules) - before if module in ("own_scorers", "subprocess_trap")}


def test_files_with_code_are_not_run(url: Running, tmp_path: Path) -> None:
    """A scorer in a file, and a recipe in a file, are neither run nor read."""
    trap = tmp_path / "trap.py"
    trap.write_text(TRAP)
    recipe = tmp_path / "trap.toml"
    recipe.write_text(f'name = "trap"\n[[routes]]\nparts = [{{scorer = "{trap}:X"}}]\n')
    recipe.chmod(0o000)
    for name in (f"{trap}:X", str(recipe), str(trap)):
        problem(score(url, {"recipe": name, "rollouts": [{"completion": "x"}]}), 404, "unknown_recipe")
        answer = score(url, {"recipe": "exact", "rollouts": [{"completion": "x", "scorer": name}]})
        assert answer.json()["verdicts"][0]["reason"] == "no_route"
    assert not Path(f"{trap}.sprung").exists()
    assert "trap" not in sys.modules


@pytest.mark.parametrize(
    "extra",
    [
        {"routes": [{"when": [{"field": "__class__", "op": "eq", "value": "1"}], "parts": [{"scorer": "math"}]}]},
        {"config": {"path": "/etc/passwd"}},
        {"recipe": {"name": "x", "routes": [{"parts": [{"scorer": "os:system"}]}]}},
        {"scorer": "os:system"},
        {"cache": "/tmp/x"},
        {"callback_url": "http://127.0.0.1:9"},
    ],
)
def test_a_request_brings_no_recipe(url: Running, extra: dict[str, Any]) -> None:
    """A request cannot bring rules, configuration, places or addresses of its own."""
    problem(score(url, {"rollouts": [{"completion": "x"}]} | extra), 422, "invalid_request")


def test_predicates_see_data_alone(url: Running) -> None:
    """What looks like code in the fields that a recipe looks at is text like any other."""
    code = "__import__('os').system('touch /tmp/rewarden-trap')"
    row = {"completion": "x", "reference": code, "data_source": code, "metadata": {code: code}, "model": code}
    answer = score(
        url, {"recipe": "auto", "rollouts": [row, {"completion": code, "reference": {"$ref": "/etc/passwd"}}]}
    )
    assert answer.status_code == 200
    assert len(answer.json()["verdicts"]) == 2
