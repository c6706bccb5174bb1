"""docs/reference/drop-in.md is true: its commands run against a service, and print what the page says."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from service import Running, running_service

import rewarden

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/reference/drop-in.md").read_text()
EXAMPLES = re.findall(r"^```sh\n(.*?)^```\n\n^```json\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
CHANGING = ("id", "created")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service with the recipe of the page, whose scorer is that of CONTRIBUTING.md."""
    folder = tmp_path_factory.mktemp("brief")
    [scorer] = re.findall(
        r"^```python\n(# short_answer\.py\n.*?)^```$", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE | re.DOTALL
    )
    (folder / "short_answer.py").write_text(scorer)
    [recipe] = re.findall(r"^```toml\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
    with running_service(recipes={"brief": rewarden.Recipe.from_toml(recipe, folder=folder)}) as found:
        yield found


def test_every_command_has_its_answer() -> None:
    """No command of the page is left out here."""
    assert len(EXAMPLES) == len(re.findall(r"^curl ", PAGE, flags=re.MULTILINE)) >= 7


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
@pytest.mark.parametrize(("command", "printed"), EXAMPLES, ids=[re.findall(r"8321(\S+?)'", c)[0] for c, _ in EXAMPLES])
def test_a_command_prints_its_answer(url: Running, command: str, printed: str) -> None:
    """The command, sent to the test's service, prints what stands below it, but for ids and times."""
    command = command.replace("http://127.0.0.1:8321", url).replace(
        "curl ", "curl --silent --show-error --max-time 60 "
    )
    found = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=90, check=False)
    assert found.returncode == 0, found.stdout + found.stderr
    assert _steady(json.loads(found.stdout)) == _steady(json.loads(printed))


def _steady(answer: Any) -> Any:
    if not isinstance(answer, dict):
        return answer
    return {key: value for key, value in answer.items() if key not in CHANGING} | {
        "id": str(answer.get("id")).partition("-")[0]
    }
