r"""The documents are true where a machine can tell: links lead somewhere, and fenced commands and programs run.

A block fenced as `sh` is a list of commands, one a line (`\` at the end continues it); `# exit status 1` behind one
says that it should fail. Blocks fenced as `python` are whole programs; a comment on the first line may name the file
that a later block of the page imports; one called `test_*.py` is run by pytest. `text` is for everything else.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*.md")])
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A fenced block, and where it stands."""

    page: str
    number: int
    language: str
    text: str

    @property
    def commands(self) -> list[str]:
        """The lines of a shell block, continued lines joined."""
        return [line.strip() for line in self.text.replace("\\\n", " ").splitlines() if line.strip()]


def blocks(language: str) -> list[Block]:
    """Every block of a language in every page."""
    every = (
        Block(str(page.relative_to(ROOT)), number, found, text)
        for page in PAGES
        for number, (found, text) in enumerate(FENCE.findall(page.read_text()), start=1)
    )
    return [block for block in every if block.language == language]


def name(block: Block) -> str:
    """The name of a block in a test report."""
    return f"{block.page}-{block.number}"


def slugs(page: Path) -> set[str]:
    """The anchors of a page's headings, as code forges make them."""
    text = FENCE.sub("", page.read_text())
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.fixture
def folder(root: Path, tmp_path: Path) -> Path:
    """A folder with the examples, in which commands may write."""
    shutil.copytree(root / "examples", tmp_path / "examples")
    shutil.copy(root / "Makefile", tmp_path)
    return tmp_path


def shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run one line as a reader would, with the environment's commands first on the path."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"],
        cwd=folder,
        env=environment | {"PATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """Each relative link names a file that exists, and each anchor a heading in it."""
    text = FENCE.sub("", page.read_text())
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        linked = (page.parent / file).resolve() if file else page
        assert linked.exists(), target
        assert linked.is_relative_to(ROOT), target
        assert not anchor or anchor in slugs(linked), target


def test_index_names_every_page() -> None:
    """docs/README.md links every other page under docs/."""
    index = ROOT / "docs/README.md"
    linked = {(index.parent / target).resolve() for target in re.findall(r"\]\(([^)#\s]+)", index.read_text())}
    assert {page for page in PAGES if page.is_relative_to(index.parent)} - {index} <= linked


@pytest.mark.parametrize("block", blocks("sh"), ids=name)
def test_commands_run(block: Block, folder: Path) -> None:
    """The `rewarden` commands of a block succeed one after the other (or fail as announced), and give no traceback."""
    for command in block.commands:
        if re.search(r"\brewarden\b", command):
            announced = re.search(r"# exit status (\d+)", command)
            result = shell(command, folder)
            assert result.returncode == int(announced[1] if announced else 0), f"{command}\n{result.stderr}"
            assert "Traceback" not in result.stderr, command


@pytest.mark.parametrize("block", blocks("sh"), ids=name)
def test_make_targets_exist(block: Block, root: Path) -> None:
    """Every `make` command of a block names targets of the Makefile."""
    for command in block.commands:
        if command.startswith("make "):
            result = shell(command.replace("make ", "make --dry-run ", 1), root)
            assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("page", sorted({block.page for block in blocks("python")}))
def test_programs_run(page: str, folder: Path) -> None:
    """The `python` blocks of a page, each in its file, run to their end one after the other."""
    for block in blocks("python"):
        if block.page == page:
            named = re.match(r"# (\w+\.py)$", block.text, flags=re.MULTILINE)
            program = named[1] if named else f"program_{block.number}.py"
            (folder / program).write_text(block.text)
            runner = "pytest -q --rootdir=." if program.startswith("test_") else "python -P"
            result = shell(f"PYTHONPATH=. {runner} {program}", folder)
            assert result.returncode == 0, result.stdout + result.stderr


def test_demo_scores_the_examples(folder: Path) -> None:
    """`make demo`, once set up, scores every example and says where the result is."""
    installed = f"{sys.prefix}/.run-installed"
    result = shell(f"make --old-file={installed} VENV={sys.prefix} demo", folder)
    assert result.returncode == 0, result.stdout + result.stderr
    scored = folder / "build/math_scored.jsonl"
    assert str(scored.relative_to(folder)) in result.stderr
    rollouts = folder / "examples/math_rollouts.jsonl"
    assert len(scored.read_text().splitlines()) == len(rollouts.read_text().splitlines())
