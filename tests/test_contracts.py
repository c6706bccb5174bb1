"""The import contracts of pyproject.toml hold, and would notice every arrow that docs/design/001-layout.md forbids."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ALLOWED = {
    "core": set(),
    "client": {"core"},
    "verifiers": {"core"},
    "reward_models": {"core", "verifiers"},
    "dumps": {"core"},
    "services": {"core", "client", "verifiers", "reward_models", "dumps"},
    "trainer": {"core", "client"},
    "cli": {"core", "client", "verifiers", "reward_models", "dumps", "services", "trainer"},
}
FORBIDDEN = [(a, b) for a in ALLOWED for b in ALLOWED if a != b and b not in ALLOWED[a]]


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the linter on the package in `folder`, which may be a copy of the checkout."""
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-logo", "--no-cache"]
    path = {"PYTHONPATH": str(folder.parent)} if folder.name == "rewarden" else {}
    # A wide terminal: the report must not be wrapped where a test reads it.
    environment = os.environ | path | {"COLUMNS": "300"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def package(root: Path, tmp_path: Path) -> Path:
    """A copy of the package, with every folder that the design names."""
    copy = tmp_path / "rewarden"
    copy.mkdir()
    for name in ("__init__.py", "pyproject.toml"):
        shutil.copy(root / name, copy)
    for name in ALLOWED:
        if (root / name).is_dir():
            shutil.copytree(root / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        (copy / name).mkdir(exist_ok=True)
        (copy / name / "__init__.py").touch()
    return copy


def test_contracts_hold(root: Path) -> None:
    """No package of the checkout imports what it may not."""
    report = lint(root)
    assert report.returncode == 0, report.stdout


def test_allowed_arrows_pass(package: Path) -> None:
    """Every arrow that the design allows passes."""
    for importer, others in ALLOWED.items():
        lines = [f"import rewarden.{other}.allowed" for other in sorted(others)]
        (package / importer / "allowed.py").write_text("\n".join(lines))
    report = lint(package)
    assert report.returncode == 0, report.stdout


@pytest.mark.parametrize(("importer", "imported"), FORBIDDEN, ids=lambda name: name)
def test_forbidden_arrow_is_reported(package: Path, importer: str, imported: str) -> None:
    """Each arrow that the design forbids fails the check, and the report names the line that draws it."""
    (package / importer / "planted.py").write_text(f"from ..{imported} import target\n")
    (package / imported / "target.py").touch()
    report = lint(package)
    assert report.returncode == 1
    assert re.search(rf"rewarden\.{importer}\.planted\s*->\s*rewarden\.{imported}\.target", report.stdout)


def test_unplaced_package_is_reported(package: Path) -> None:
    """A new top-level package fails the check until it has a place in the layers."""
    (package / "unplaced").mkdir()
    (package / "unplaced" / "__init__.py").touch()
    report = lint(package)
    assert report.returncode == 1
    assert "rewarden.unplaced" in report.stdout
