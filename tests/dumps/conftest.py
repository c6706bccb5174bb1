"""A short way to score a file in this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rollout_files import GRADERS, Scoring

from rewarden.core.engine import Engine
from rewarden.dumps import Columns, FileScoring, Summary


@pytest.fixture
def score() -> Iterator[Scoring]:
    """`score(source, target, scorer="Quick", **options)`: score a file in this process."""
    engines: dict[str, Engine] = {}

    def run(source: Path | str, target: Path | str, scorer: str = "Quick", **options: Any) -> Summary:
        if scorer not in engines:
            engines[scorer] = Engine(f"{GRADERS}:{scorer}", cache=None)
        columns = Columns(options.pop("mapping", None))
        return FileScoring(engines[scorer], str(source), str(target), columns=columns, **options).run()

    yield run
    for engine in engines.values():
        engine.close()
