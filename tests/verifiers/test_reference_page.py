"""The reference page of the small verifiers names every option, with its default."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path

import pytest

from rewarden.core.registry import BUILTIN, create


def options_on_page(page: str, scorer: str) -> dict[str, object]:
    """Option to default, as the table under a scorer's heading says."""
    section = page.split(f"\n## {scorer}\n", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| `(\w+)` \| `([^`]+)` \| \S", section, flags=re.MULTILINE)
    return {name: None if default == "None" else json.loads(default) for name, default in rows}


@pytest.mark.parametrize("scorer", sorted(set(BUILTIN) - {"math"}))
def test_options(scorer: str, root: Path) -> None:
    """The table has all options of the constructor and no others, with their defaults and a reason."""
    page = (root / "docs/reference/verifiers.md").read_text()
    parameters = inspect.signature(type(create(scorer))).parameters.values()
    assert options_on_page(page, scorer) == {parameter.name: parameter.default for parameter in parameters}


@pytest.mark.parametrize("scorer", sorted(set(BUILTIN) - {"math"}))
def test_config_is_complete(scorer: str) -> None:
    """Every option is part of the digest, so that two configurations never share a cache entry."""
    made = create(scorer)
    assert set(made.config()) >= set(inspect.signature(type(made)).parameters)
