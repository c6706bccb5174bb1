"""The figures that a benchmark prints, and the table of all of them.

    python -m rewarden.benchmarks.results      # the table of what the scripts measured last

Each script saves its figures in build/bench/results/, so that one table shows them all.
"""

from __future__ import annotations

import os
import platform
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any, Final

import orjson

from .data import BUILD

RESULTS: Final = BUILD / "results"


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure and what it must reach. `reached` is None where there is no target."""

    what: str
    measured: str
    target: str = ""
    reached: bool | None = None


def at_least(what: str, value: float, target: float, unit: str = "") -> Figure:
    """A figure that must not be below its target."""
    return Figure(what, _text(value, unit), f">= {_text(target, unit)}", value >= target)


def at_most(what: str, value: float, target: float, unit: str = "") -> Figure:
    """A figure that must not be above its target."""
    return Figure(what, _text(value, unit), f"<= {_text(target, unit)}", value <= target)


def plain(what: str, value: float | str, unit: str = "") -> Figure:
    """A figure without a target."""
    return Figure(what, value if isinstance(value, str) else _text(value, unit))


def _text(value: float, unit: str) -> str:
    number = f"{value:,.0f}" if value == int(value) or abs(value) >= 100 else f"{value:.3g}"
    return f"{number}{unit if unit in ('x', '%') else ' ' + unit if unit else ''}"


def middle(values: list[float]) -> float:
    """The median; the machine is shared, so a mean would measure its other users."""
    return median(values)


def save(name: str, figures: list[Figure], **options: Any) -> None:
    """Print the figures of one script and keep them for the table. `options` say how it was run."""
    width = max(len(figure.what) for figure in figures)
    print()
    for figure in figures:
        mark = {True: "reached", False: "MISSED", None: ""}[figure.reached]
        print(f"{figure.what:<{width}}  {figure.measured:>14}  {figure.target:>14}  {mark}")
    RESULTS.mkdir(parents=True, exist_ok=True)
    report = {
        "name": name,
        "when": datetime.now(UTC).isoformat(timespec="minutes"),
        "options": options,
        "figures": [asdict(figure) for figure in figures],
    }
    (RESULTS / f"{name}.json").write_bytes(orjson.dumps(report, option=orjson.OPT_INDENT_2))


def machine() -> str:
    """The machine in one line."""
    cores = len(os.sched_getaffinity(0))
    model = next(
        (line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")), "unknown"
    )
    return f"{cores} cores of {model}, {platform.system()}, Python {platform.python_version()}"


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def table() -> str:
    """All saved figures as a Markdown table."""
    lines = [machine(), "", "| script | figure | target | measured | |", "|---|---|---|---|---|"]
    for path in sorted(RESULTS.glob("*.json")):
        report = orjson.loads(path.read_bytes())
        for figure in report["figures"]:
            mark = {True: "reached", False: "**missed**", None: ""}[figure["reached"]]
            cells = (report["name"], figure["what"], figure["target"], figure["measured"], mark)
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
