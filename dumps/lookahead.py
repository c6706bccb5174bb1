"""A look at the first rows of an input before anything is scored or written, to notice a wrong command at once.

Noticed are mapped columns that no row has, and files in which no row is a rollout. Not noticed is what only later rows
would show: those are rejected one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from ..core.errors import DumpError
from .row import Columns, Rejected, Row
from .source import Source

PATIENCE = 1000
"""Rows without a mapped column, or without a rollout, before that is taken for a mistake."""

HELD = 256 << 20
"""Bytes of input held while looking, at most; with longer rows, fewer of them are looked at."""


class Lookahead:
    """`source`, whose first rows `look` has seen. Looking ends at the first row that settles all, mostly the first."""

    def __init__(self, source: Source, columns: Columns, *, limit: int | None) -> None:
        self._source = source
        self._columns = columns
        self._most = PATIENCE if limit is None else min(PATIENCE, limit)
        self._held: list[Row | Rejected] = []
        self._rest: Iterator[Row | Rejected] = iter(())
        self._error: DumpError | None = None

    def look(self) -> None:
        """Read until the command is known to fit the input. Raises DumpError, with what to do, when it does not."""
        self._rest = iter(self._source)
        found, size = False, 0
        try:
            for row in islice(self._rest, self._most):
                self._held.append(row)
                found = found or isinstance(row, Row)
                size += len(row.raw if isinstance(row, Rejected) else row.head)
                if (found and not self._columns.unseen) or size > HELD:
                    break
        except DumpError as error:
            if not self._held:
                raise
            self._error = error  # it comes again where the rows before it are at their end
        if self._columns.unseen and self._columns.seen:
            raise DumpError(self._no_column())
        if not found and len(self._held) >= PATIENCE:
            raise DumpError(self._no_rollouts())
        self._columns.settle()

    def _no_column(self) -> str:
        names = ", ".join(map(repr, sorted(self._columns.unseen)))
        rows = "" if len(self._held) < self._most else f"; looked at the first {len(self._held):,}"
        return f"--map names the column {names}, which no row has (columns: {self._columns.listed()}{rows})"

    def _no_rollouts(self) -> str:
        first = self._held[0]
        assert isinstance(first, Rejected)
        why = f"none of the first {len(self._held):,} rows is a rollout; line {first.number}: {first.error}"
        hint = "; --map FIELD=COLUMN names the columns" if self._columns.seen and "--map" not in first.error else ""
        return why + hint

    def __iter__(self) -> Iterator[Row | Rejected]:
        held, self._held = self._held, []
        yield from held
        if self._error is not None:
            raise self._error
        yield from self._rest

    def fraction(self) -> float | None:
        return self._source.fraction()

    def identity(self) -> dict[str, Any]:
        return self._source.identity()
