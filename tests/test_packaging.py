"""What is installed: the wheel's contents, what `import rewarden` costs, and that no other package is shadowed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import rewarden

# Folders of the checkout that hold no part of the package.
NOT_PACKAGED = {"benchmarks", "build", "dist", "docs", "examples", "k8s", "requirements", "tests"}
HEAVY = {
    *("antlr4", "flint", "latex2sympy2_extended", "math_verify", "mpmath", "sympy"),
    *("jsonschema", "pyarrow"),
    *("fastapi", "numpy", "torch"),
}


def project(root: Path) -> dict[str, Any]:
    """pyproject.toml as it is."""
    return tomllib.loads((root / "pyproject.toml").read_text())


def package_folders(root: Path) -> list[Path]:
    """Every folder of the checkout that is a package, the root first."""
    skip = {folder for folder in root.iterdir() if folder.name in NOT_PACKAGED or folder.name.startswith(".")}
    inits = (init for init in root.rglob("__init__.py") if not skip & set(init.parents))
    return sorted(init.parent for init in inits)


def run(code: str, **environment: str) -> str:
    """What `code` prints in a fresh interpreter that does not search the folder it is started in."""
    command = [sys.executable, "-P", "-c", code]
    result = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


@pytest.fixture(scope="module")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel, built from a copy so that nothing is left in the checkout."""
    copy = tmp_path_factory.mktemp("source") / "any-name"
    out = tmp_path_factory.mktemp("wheel")
    shutil.copytree(root, copy, ignore=shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist"))
    code = f"import sys; from setuptools.build_meta import build_wheel; build_wheel({str(out)!r})"
    result = subprocess.run([sys.executable, "-c", code], cwd=copy, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return next(out.glob("rewarden-*.whl"))


def test_every_package_is_named(root: Path) -> None:
    """pyproject.toml names each package that exists, and none that does not."""
    folders = (folder.relative_to(root) for folder in package_folders(root))
    expected = {".".join(("rewarden", *folder.parts)) for folder in folders}
    assert set(project(root)["tool"]["setuptools"]["packages"]) == expected


def test_wheel_holds_the_package_and_nothing_else(root: Path, wheel: Path) -> None:
    """The wheel has every file of every package, `py.typed` and the licence, and no test, example or benchmark."""
    top = [folder for folder in package_folders(root) if folder.parent == root]
    files = {file for folder in top for file in folder.rglob("*") if file.is_file() and "__pycache__" not in file.parts}
    expected = {f"rewarden/{file.relative_to(root)}" for file in {*files, *root.glob("*.py"), root / "py.typed"}}
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    packed = {name for name in names if not name.startswith(f"rewarden-{rewarden.__version__}.dist-info/")}
    assert packed == expected
    assert f"rewarden-{rewarden.__version__}.dist-info/licenses/LICENSE" in names


def test_wheel_imports_without_the_checkout(wheel: Path, tmp_path: Path) -> None:
    """Every module imports from the unpacked wheel alone."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    code = """
import importlib, pathlib, pkgutil, rewarden
for module in pkgutil.walk_packages(rewarden.__path__, "rewarden."):
    if not module.name.endswith(".__main__"):
        importlib.import_module(module.name)
print(pathlib.Path(rewarden.__file__).parent)
"""
    assert run(code, PYTHONPATH=str(tmp_path)) == str(tmp_path / "rewarden")


def test_version_has_one_source(root: Path) -> None:
    """The installed metadata, `rewarden.__version__` and the newest heading of the changelog agree."""
    headings = re.findall(r"^## (\d\S*)", (root / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    assert version("rewarden") == rewarden.__version__ == headings[0]


def test_import_is_quick() -> None:
    """`import rewarden` takes less than 0.3 s of CPU: the best of five, as other work on the machine only adds."""
    code = "import time; start = time.process_time(); import rewarden; print(time.process_time() - start)"
    assert min(float(run(code)) for _ in range(5)) < 0.3


def test_import_brings_no_heavy_package() -> None:
    """`import rewarden` loads none of the optional packages, whether they are installed or not."""
    loaded = run("import sys, rewarden; print(*{name.partition('.')[0] for name in sys.modules})").split()
    assert "rewarden" in loaded
    assert not HEAVY & set(loaded)


def test_no_package_is_shadowed(root: Path, tmp_path: Path) -> None:
    """A package on the path that is called like one of our folders is imported as itself, and ours as ours."""
    ours = [folder.name for folder in package_folders(root) if folder.parent == root]
    assert ours
    for name in ours:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("WHOSE = 'theirs'\n")
    code = f"""
import importlib
for name in {ours}:
    assert importlib.import_module(name).WHOSE == "theirs", name
    assert not hasattr(importlib.import_module("rewarden." + name), "WHOSE"), name
"""
    run(code, PYTHONPATH=str(tmp_path))


def test_locks_pin_what_is_declared(root: Path) -> None:
    """Each requirement is pinned at a version that it allows, from no named place; the test lock adds to the other."""
    tables = project(root)
    extras = [line for lines in tables["project"]["optional-dependencies"].values() for line in lines]
    declared = [*tables["build-system"]["requires"], *tables["project"]["dependencies"], *extras]
    tools = [line for line in (root / "requirements/test.in").read_text().splitlines() if not line.startswith("#")]
    locks = {}
    for name in ("run.txt", "test.txt"):
        lines = (root / "requirements" / name).read_text().splitlines()
        pins = dict(re.fullmatch(r"([\w.-]+)==([\w.+!]+)", line).groups() for line in lines)  # type: ignore[union-attr, misc]
        locks[name] = {canonicalize_name(package): pinned for package, pinned in pins.items()}
    for line, lock in [*((line, "run.txt") for line in declared), *((line, "test.txt") for line in tools)]:
        wanted = Requirement(line)
        if wanted.name != "rewarden":
            assert wanted.specifier.contains(locks[lock][canonicalize_name(wanted.name)]), line
    assert locks["run.txt"].items() <= locks["test.txt"].items()


def test_runs_without_the_test_tools(root: Path) -> None:
    """Nothing that users run imports a package that is locked for the tests alone."""
    pins = {}
    for name in ("run.txt", "test.txt"):
        lines = (root / "requirements" / name).read_text().splitlines()
        pins[name] = {canonicalize_name(line.partition("==")[0]) for line in lines}
    ours = sorted({*package_folders(root)} - {root})
    modules = [
        f"rewarden.{'.'.join(path.relative_to(root).with_suffix('').parts)}"
        for folder in ours
        for path in folder.glob("*.py")
        if path.stem not in ("__init__", "__main__")
    ]
    code = f"""
import importlib, re, sys
from importlib.metadata import packages_distributions
for module, distributions in packages_distributions().items():
    if {{re.sub("[-_.]+", "-", name).lower() for name in distributions}} <= {pins["test.txt"] - pins["run.txt"]}:
        sys.modules[module] = None
for module in {modules}:
    importlib.import_module(module)
from rewarden.client.queue.broker import celery_app
print(celery_app("redis://127.0.0.1:1/0").connection_for_write().transport.driver_type)
"""
    assert run(code).strip() == "redis"


def test_licence_is_apache_2(root: Path) -> None:
    """The licence is the whole Apache License 2.0, and the metadata says so."""
    text = (root / "LICENSE").read_text()
    assert re.match(r"\s+Apache License\s+Version 2\.0, January 2004", text)
    assert [f"   {number}. " in text for number in range(1, 10)] == [True] * 9
    assert "END OF TERMS AND CONDITIONS" in text
    assert project(root)["project"]["license"] == "Apache-2.0"
