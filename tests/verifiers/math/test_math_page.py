"""The reference page of the math verifier names every option with its default, every layer and every reason."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path

from rewarden.verifiers.math import MathOptions


def test_options_on_the_page(root: Path) -> None:
    """The table has all fields of `MathOptions` and no others, with their defaults and a reason."""
    page = (root / "docs/reference/math.md").read_text(encoding="utf-8")
    section = page.split("\n## Options\n", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| `(\w+)` \| `([^`]+)` \| \S", section, flags=re.MULTILINE)
    assert {name: json.loads(default) for name, default in rows} == {
        field.name: field.default for field in fields(MathOptions)
    }
