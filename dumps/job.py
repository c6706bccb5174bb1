"""A run over a file from its first check to the finished output, whenever and however often it is killed in between."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from ..core.engine import Engine
from ..core.errors import DumpError
from .journal import Journal, lines_of
from .lookahead import Lookahead
from .progress import Progress, Stage
from .row import Columns
from .scoring import Journals, Pass
from .source import Format, Source, kind_of, open_source
from .summary import Summary
from .target import State, Target


class FileScoring:
    """Scores `source` into `target`; both are paths, or `-`.

    Raises DumpError where the run cannot start or go on; what has been scored until then stays in `OUT.part`, and the
    same run goes on from there. `columns` says where fields come from; `limit` is a number of rows; `tick` is called
    several times a second. The engine stays the caller's.
    """

    def __init__(
        self,
        engine: Engine,
        source: str,
        target: str,
        *,
        columns: Columns | None = None,
        overwrite: bool = False,
        restart: bool = False,
        limit: int | None = None,
        tick: Callable[[Progress], None] | None = None,
    ) -> None:
        self.progress = Progress() if tick is None else Progress(tick)
        self._engine = engine
        self._columns = columns or Columns()
        self._restart = restart
        self._limit = limit
        self._target = Target.of(target)
        # From Parquet to Parquet the columns stay where they are until the end, and so keep their types.
        self._joins = kind_of(source)[0] is Format.PARQUET and self._target.format is Format.PARQUET
        self._source = open_source(source, self._columns, heads=not self._joins)
        clash = self._target.clash(source)
        if clash is not None:
            what = "" if clash == self._target.path else f", which stands beside {target},"
            raise DumpError(f"{clash}{what} is the input itself; write to another file")
        if not self._target.is_stream and self._target.path.exists() and not overwrite:
            raise DumpError(f"{target} exists; --overwrite replaces it")

    def run(self) -> Summary:
        """Score the file, and put the output in its place."""
        source = Lookahead(self._source, self._columns, limit=self._limit)
        source.look()
        if self._target.is_stream:
            self._pass(source, Journals(self._target.journal(resume=False)))
            return self.progress.summary
        state, done = State(self._target), False
        try:
            resume = self._resumes(state)
            part = self._target.journal(resume=resume)
            log = Journal(self._target.beside(".run.jsonl"), resume=resume)
            self._pass(source, Journals(part, log, Journal(self._target.beside(".rejected.jsonl"))))
            self._publish()
            done = True
        finally:
            state.close(done=done or self._left_nothing())
        return self.progress.summary

    @property
    def to_stream(self) -> bool:
        """Whether the rows go to a pipe or device, with no files beside it."""
        return self._target.is_stream

    def _pass(self, source: Source, journals: Journals) -> None:
        Pass(self._engine, source, self._columns, journals, self.progress, limit=self._limit).run()

    def _resumes(self, state: State) -> bool:
        """Whether there is a part to go on with. Raises DumpError for one of another run."""
        found, now = state.lock() or {}, self._identity()
        part = self._target.beside(".part")
        resumes = not self._restart and part.exists() and part.stat().st_size > 0
        if resumes:
            if not found:
                raise DumpError(f"{part} was begun by an unknown command, as its .json is gone: --restart begins anew")
            other = [key for key, value in now.items() if found.get(key) != value]
            if other:
                raise DumpError(
                    f"{part} was begun with another {' and '.join(other)}: give the command that began it to go on, "
                    "or --restart to begin anew"
                )
        else:
            part.unlink(missing_ok=True)  # a kill may come before it is emptied, and it is not what `now` says
        state.save(now)
        return resumes

    def _identity(self) -> dict[str, Any]:
        """All that decides what OUT will hold, by what a person calls it."""
        scorers = [[scorer.stamp.name, scorer.stamp.version, scorer.stamp.digest] for scorer in self._engine.scorers]
        return {
            "input": self._source.identity(),
            "recipe": self._engine.recipe.digest,
            "version of a scorer": scorers,
            "--map": self._columns.mapping,
            "--limit": self._limit,
            "format": "parquet" if self._joins else "jsonl",
        }

    def _publish(self) -> None:
        self.progress.enter(Stage.WRITING)
        self.progress.update(None)
        part = self._target.beside(".part")
        convert: Callable[[Path], None] | None = None
        if self._target.format is Format.PARQUET:
            from . import parquet

            if isinstance(self._source, parquet.ParquetSource) and self._joins:
                convert = partial(parquet.join, self._source, lines_of(part))
            else:
                convert = partial(parquet.convert, lambda: lines_of(part))
        self._target.publish(part, convert)
        if not self.progress.summary.rejected:
            self._target.beside(".rejected.jsonl").unlink(missing_ok=True)

    def _left_nothing(self) -> bool:
        """Whether there is nothing to pick up; then no empty files stay behind."""
        beside = [self._target.beside(suffix) for suffix in (".part", ".run.jsonl", ".rejected.jsonl")]
        if beside[0].exists() and beside[0].stat().st_size:
            return False
        for path in beside:
            if path.exists() and not path.stat().st_size:
                path.unlink()
        return True
