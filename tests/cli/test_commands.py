"""The other commands: what they print, and their exit statuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from command import Run
from hypothesis import given
from hypothesis import strategies as st
from rollout_files import GRADERS

import rewarden
from rewarden.cli import toml
from rewarden.cli.console import duration
from rewarden.core import extras, registry
from rewarden.core.recipe import Recipe, builtin_names, load

QUICK = f"{GRADERS}:Quick"


def test_version(run: Run) -> None:
    """`--version` prints the version of the package."""
    assert run("--version").stdout == f"rewarden {rewarden.__version__}\n"


@pytest.mark.parametrize("command", [[], ["score"], ["verify"], ["recipe", "check"]])
def test_help(run: Run, command: list[str]) -> None:
    """Every command explains itself."""
    ran = run(*command, "--help")
    assert ran.returncode == 0
    assert "Usage:" in ran.stdout


def test_starting_is_quick(tmp_path: Path) -> None:
    """The command starts without loading what only some commands need."""
    code = "import sys; sys.argv = ['rewarden', '--version']\nfrom rewarden.cli.main import main\n"
    code += "try: main()\nexcept SystemExit: pass\nprint(*sys.modules)"
    ran = subprocess.run([sys.executable, "-P", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    loaded = set(ran.stdout.split())
    heavy = {"pyarrow", "sympy", "math_verify", "zstandard", "rewarden.dumps", "rich.progress"}
    assert loaded & heavy == set()


def test_verify_shows_the_verdict(run: Run) -> None:
    """The verdict comes with its evidence and the scorer that gave it."""
    ran = run("verify", "--reference", "4", "--completion", "It is 4.", "--recipe", QUICK)
    assert ran.returncode == 0
    assert ran.stdout.startswith("correct, reward 1\n")
    assert "looked_for" in ran.stdout
    assert "quick 1 (" in ran.stdout
    assert run("verify", "-r", "5", "-c", "It is 4.", "--recipe", QUICK).stdout.startswith("incorrect, reward 0\n")


def test_verify_ungraded_is_status_1(run: Run) -> None:
    """What cannot be graded has no reward, a reason, and the status 1."""
    ran = run("verify", "--completion", "It is 4.", "--recipe", QUICK)
    assert ran.returncode == 1
    assert ran.stdout.startswith("ungraded, no reward\n")
    assert "bad_reference" in ran.stdout


def test_verify_as_json(run: Run) -> None:
    """`--json` prints the whole verdict."""
    found = json.loads(run("verify", "-r", "4", "-c", "4", "--recipe", QUICK, "--json").stdout)
    assert (found["outcome"], found["reward"], found["scorer"]["name"]) == ("correct", 1.0, "quick")


def test_verify_reads_files_and_standard_input(tmp_path: Path, run: Run) -> None:
    """Long texts come from a file or from standard input."""
    (tmp_path / "completion").write_text("été " * 50_000 + "4")
    ran = run("verify", "-r", "-", "-c", "@completion", "--recipe", QUICK, "--json", stdin=b"4")
    assert json.loads(ran.stdout)["evidence"] == {"looked_for": "4", "length": 200_001}
    ran = run("verify", "-r", "4", "-c", "@none", "--recipe", QUICK)
    assert (ran.returncode, ran.stderr) == (2, "rewarden: cannot read none: No such file or directory\n")
    (tmp_path / "bytes").write_bytes(b"\xff")
    assert "not UTF-8" in run("verify", "-r", "4", "-c", "@bytes", "--recipe", QUICK).stderr


def test_scorers_are_listed(run: Run) -> None:
    """Each scorer has a line with its kind, its unit, where it runs and what it reads."""
    ran = run("scorers")
    assert ran.returncode == 0
    lines = {line.split()[0]: line for line in ran.stdout.splitlines() if line.strip()}
    assert {"choice", "exact", "json_schema", "majority", "math", "number", "text"} <= set(lines)
    assert ran.stdout.split()[:3] == ["scorer", "version", "kind"]
    assert lines["exact"].split()[2] == registry.kind("exact")
    assert "rollout" in lines["exact"]
    assert "completion, reference" in lines["exact"]


def test_recipe_check(tmp_path: Path, run: Run) -> None:
    """A recipe is read for mistakes: 0 without, 1 with some, 2 when it cannot be read."""
    (tmp_path / "good.toml").write_text(f'name = "mine"\n[[routes]]\nparts = [{{scorer = "{QUICK}"}}]\n')
    ran = run("recipe", "check", "good.toml")
    assert (ran.returncode, ran.stdout) == (0, "good.toml: mine 1, 1 route: fine\n")
    (tmp_path / "wrong.toml").write_text('name = "mine"\n[[routes]]\nparts = [{scorer = "maths"}]\n')
    ran = run("recipe", "check", "wrong.toml")
    assert ran.returncode == 1
    assert "routes[0]" in ran.stderr
    assert "maths" in ran.stderr
    (tmp_path / "torn.toml").write_text('name = "mine\n')
    assert run("recipe", "check", "torn.toml").returncode == 2
    assert run("recipe", "check", "none.toml").returncode == 2


def test_recipe_show_prints_the_recipe(run: Run) -> None:
    """What is printed is a recipe file that means the same, for a recipe and for a scorer's name."""
    for name in ("auto", "exact"):
        ran = run("recipe", "show", name)
        assert ran.returncode == 0
        assert Recipe.from_toml(ran.stdout) == load(name)


@pytest.mark.parametrize("name", builtin_names())
def test_recipes_survive_as_toml(name: str) -> None:
    """Every built-in recipe is the same after being written as TOML."""
    recipe = load(name)
    assert Recipe.from_toml(toml.dumps(recipe.model_dump(mode="json", exclude_defaults=True))) == recipe


KEYS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)
SCALARS = (
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
)
TOML = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=10
)


@given(data=st.dictionaries(KEYS, TOML, max_size=5))
def test_toml_is_read_back(data: dict[str, object]) -> None:
    """Whatever a recipe may hold is the same after being written and read."""
    assert tomllib.loads(toml.dumps(data)) == data


def test_doctor_finds_a_working_machine(run: Run) -> None:
    """On a machine that runs this suite, the pool survives the death of a worker and nothing essential is missing."""
    ran = run("doctor")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "a worker was killed, and nothing was lost" in ran.stdout
    for what in ("Python", "platform", "processors", "memory"):
        assert what in ran.stdout


def test_doctor_fails_without_a_pool(tmp_path: Path, run: Run) -> None:
    """What essential does not work makes the status 1, and is named."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os\nos.fork = os.posix_spawn = os.posix_spawnp = None\n"
        "import subprocess\ndef no(*a, **k): raise OSError('no processes')\nsubprocess.Popen.__init__ = no\n"
    )
    ran = run("doctor", PYTHONPATH=str(tmp_path))
    assert ran.returncode == 1
    assert "cannot work here: worker pool" in ran.stderr


def test_extras_come_from_the_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing distribution is named by the extra that brings it, or by itself."""
    lines = [
        "orjson>=3.10",
        'math-verify==0.9.0; extra == "math"',
        "sympy>=1.13 ; python_version > '3' and extra == 'math'",
        'rewarden[math]; extra == "all"',
        'pyarrow>=18; extra == "parquet"',
    ]
    monkeypatch.setattr(extras, "requires", lambda _: lines)
    extras.requirements.cache_clear()
    assert extras.requirements() == {"": ["orjson"], "math": ["math-verify", "sympy"], "parquet": ["pyarrow"]}
    monkeypatch.setattr(extras, "installed", lambda name: None if name in ("sympy", "other") else "1")
    assert extras.missing(("sympy", "orjson")) == "pip install 'rewarden[math]'"
    assert extras.missing(("other",)) == "pip install 'other'"
    assert extras.missing(("pyarrow",)) == ""
    extras.requirements.cache_clear()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 us"),
        (12e-6, "12 us"),
        (0.0123, "12.3 ms"),
        (5, "5 s"),
        (59.99, "60 s"),
        (90, "1 min 30 s"),
        (7300, "2 h 1 min"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    """Times are said in units that suit them."""
    assert duration(seconds) == text


def test_a_fault_of_ours_is_a_line(tmp_path: Path, run: Run) -> None:
    """An error that nobody foresaw is one line, too, and REWARDEN_DEBUG=1 adds where it is from."""
    (tmp_path / "broken.py").write_text(
        "from rewarden.core.scorer import Scorer\n\n"
        "class Broken(Scorer):\n    name = 'broken'\n    def config(self):\n        raise ZeroDivisionError('oops')\n"
    )
    ran = run("verify", "-c", "x", "--recipe", "broken.py:Broken")
    assert ran.returncode == 2
    assert len(ran.stderr.splitlines()) == 1
    assert "ZeroDivisionError: oops" in ran.stderr
    command = [sys.executable, "-P", "-m", "rewarden.cli", "verify", "-c", "x", "--recipe", "broken.py:Broken"]
    environment = os.environ | {"REWARDEN_DEBUG": "1"}
    again = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, env=environment)
    assert "Traceback" in again.stderr
