"""What tests run in spawned processes, which must be able to import it."""

from __future__ import annotations

from typing import Any


def call(function: Any, arguments: dict[str, Any], results: Any) -> None:
    """Put what `function(**arguments)` returns into `results`."""
    results.put(function(**arguments))
    getattr(function, "close", lambda: None)()
