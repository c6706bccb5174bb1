"""The commands in the pages on services do what the pages say."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from service import Running

DOCS = Path(__file__).parents[2] / "docs"
ADDRESS = "http://127.0.0.1:8321"

EXPECTED = {
    "how-to/run-a-service.md": [(1.0, None), (None, "bad_reference")],
    "reference/http.md": [(1.0, None), (1.0, None), (None, "bad_rollout")],
}


@pytest.mark.parametrize("page", EXPECTED)
def test_curl(url: Running, page: str) -> None:
    """The requests of the page, sent as it says, get the verdicts that it speaks of."""
    (command,) = re.findall(r"^```sh\n(curl .*?)^```$", (DOCS / page).read_text(), flags=re.MULTILINE | re.DOTALL)
    assert ADDRESS in command
    ran = subprocess.run(
        ["bash", "-c", command.replace(ADDRESS, url)], capture_output=True, text=True, check=True, timeout=60
    )
    verdicts = json.loads(ran.stdout)["verdicts"]
    assert [(verdict["reward"], verdict.get("reason")) for verdict in verdicts] == EXPECTED[page]
