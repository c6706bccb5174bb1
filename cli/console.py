"""Lines and tables for a person. Results go to standard output, everything else to standard error."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Sequence

WIDTH = 160
"""Of a table where there is no terminal."""


def complain(message: str) -> None:
    """An error, in one line."""
    say(f"rewarden: {' '.join(message.split())}")


def say(line: str) -> None:
    """A line on standard error. Where nobody can read it, nothing happens.

    It may quote a file, which must not steer the terminal.
    """
    shown = "".join(char if char.isprintable() else " " for char in line)
    try:
        sys.stderr.write(f"{shown}\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        pass


def table(rows: Iterable[Sequence[str]], *, heads: Sequence[str], stderr: bool = False) -> None:
    """A table as wide as the terminal, or as wide as it needs to be where there is none."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(stderr=stderr, highlight=False)
    made = Table(box=None, pad_edge=False, header_style="bold", show_header=any(heads))
    for number, head in enumerate(heads):
        made.add_column(head, no_wrap=number == 0, overflow="fold")
    for row in rows:
        made.add_row(*(Text(cell) for cell in row))
    if console.is_terminal:
        console.print(made)
        return
    plain = Console(file=io.StringIO(), width=WIDTH, highlight=False)
    plain.print(made)
    text = plain.file.getvalue()  # type: ignore[attr-defined]  # the StringIO above
    (sys.stderr if stderr else sys.stdout).write("".join(f"{line.rstrip()}\n" for line in text.splitlines()))


def count(number: int, noun: str) -> str:
    """`1 row`, `1,234 rows`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def duration(seconds: float) -> str:
    """A length of time in the two largest units that say something."""
    if seconds < 0.001:
        return f"{seconds * 1e6:.0f} us"
    if seconds < 1:
        return f"{seconds * 1e3:.3g} ms"
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min"
