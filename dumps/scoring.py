"""The one pass over the input of a run: rows in, rows with verdicts out, in order, each exactly once.

A run that finds the part of an earlier one goes through the input again, checks that the rows in the part are those of
the input, and scores only the others. Where verdicts depend on other rows, it scores all and writes only the others.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass

import orjson

from ..core.engine import Engine
from ..core.errors import DumpError
from ..core.reasons import Reason
from ..core.rollout import Rollout
from ..core.spill import Spill
from ..core.verdict import Graded, Trace, ungraded
from .journal import Journal
from .progress import Progress, Stage
from .row import Columns, Rejected, Row, loads, with_reward
from .source import Source

TICK = 64
"""Rows between looks at the clock."""


@dataclass(frozen=True, slots=True)
class Journals:
    """What a run writes as it goes."""

    part: Journal
    """Rows with verdicts, or the stream that gets them."""
    log: Journal | None = None
    """A line for each row: how its verdict came about."""
    rejects: Journal | None = None

    @property
    def all(self) -> list[Journal]:
        """Those that there are, the part last: a row that a kill has left in it must not lack its line in the log."""
        return [journal for journal in (self.rejects, self.log, self.part) if journal is not None]

    def flush(self) -> None:
        """Hand all that is held to the system."""
        for journal in self.all:
            journal.flush()


class Pass:
    """Scores what `source` has into `journals`."""

    def __init__(
        self,
        engine: Engine,
        source: Source,
        columns: Columns,
        journals: Journals,
        progress: Progress,
        *,
        limit: int | None,
    ) -> None:
        self._engine = engine
        self._source = source
        self._columns = columns
        self._journals = journals
        self._part = journals.part
        self._log = journals.log
        self._progress = progress
        self._summary = progress.summary
        self._limit = limit
        # Rows that wait for their verdict, by their place among the rollouts: line, columns and group.
        self._waiting: Spill[tuple[int, bytes, str | None]] = Spill()
        self._read = 0  # rollouts read
        self._done = 0  # of these, the first ones, which the part holds already
        self._ended = False  # whether all have been read
        self._has_reference = False  # whether any row had one
        self._error: DumpError | None = None

    def run(self) -> None:
        """Score all rows. Whatever ends it early, what has been scored is handed to the system first."""
        try:
            self._score()
            if self._error is not None:
                raise self._error
            self._finish()
        except sqlite3.Error as error:
            why = f"cannot keep waiting rows in a temporary file: {error}; TMPDIR names another folder for it"
            raise DumpError(why) from None
        finally:
            for journal in self._journals.all:
                with contextlib.suppress(DumpError):  # the first failure is what the caller must hear of
                    journal.flush()
                journal.close()
            self._waiting.close()

    def _finish(self) -> None:
        self._note_missing_references()
        self._part.finish()
        self._update()
        if self._journals.rejects is not None:
            self._journals.rejects.finish()
        if self._log is not None:
            times = {
                "run_s": round(self._progress.seconds, 3),
                "rows_per_s": round(self._progress.rows_per_s, 1),
            }
            self._log.append(orjson.dumps({"summary": {**self._summary.to_dict(), **times}}) + b"\n")
            self._log.finish()

    def _score(self) -> None:
        place = 0 if self._engine.grouped else -1
        for graded in self._engine.stream(self._rollouts()):
            if place < 0:
                place = self._done  # the engine has seen none of the rows done before
            if place >= self._done:
                self._write(place, graded)
                # While rows come, what is held is written whenever the engine asks for more (see `_rollouts`).
                if self._part.is_full or (self._ended and (place % TICK == 0 or not self._engine.grouped)):
                    self._journals.flush()
                if place % TICK == 0:
                    self._update()
            place += 1

    def _update(self) -> None:
        """Tell how much is done: the share of the input that has been read, less the rows that wait for a verdict."""
        read = self._source.fraction()
        self._progress.update(None if read is None or not self._read else read * self._summary.rows / self._read)

    def _write(self, place: int, graded: Graded) -> None:
        number, head, group = self._waiting.pop(place)
        verdict, trace = graded.verdict, graded.trace
        try:
            whole = verdict.to_json()
        except TypeError as error:
            why = f"the verdict is no JSON, so nobody could read it: {error}"
            verdict = ungraded(Reason.SCORER_ERROR, why).stamped(verdict.id, verdict.scorer)
            whole = verdict.to_json()
        reward, outcome = verdict.reward, verdict.outcome.value
        reason = None if verdict.reason is None else verdict.reason.value
        self._summary.add(reward, outcome, reason, group)
        self._summary.add_trace(number, trace)
        stamp = verdict.scorer
        self._summary.add_source(number, None if stamp is None else stamp.name, verdict.reason, verdict.explanation)
        if self._log is not None:
            self._log.append(_log_line(number, trace))
        self._part.append(
            b'%b%b,"outcome":"%b","reason":%b,"verdict":%b}\n'
            % (with_reward(head), orjson.dumps(reward), outcome.encode(), orjson.dumps(reason), whole)
        )

    def _rollouts(self) -> Iterator[Rollout]:
        """The rollouts that the engine has to see. Rows that are none are set aside, and rows done before checked."""
        grouped = self._engine.grouped
        for row in self._rows():
            if isinstance(row, Rejected):
                self._reject(row)
                continue
            rollout = row.rollout
            if rollout.reference is not None:
                self._has_reference = True
            head = row.head
            group = rollout.group_key
            place = self._read
            self._read += 1
            if place == self._done and self._is_done(row, head, group):
                self._done += 1
                if not grouped:
                    continue
            else:
                self._waiting.put(place, (row.number, head, group))
            yield rollout
            # The engine takes rows between its steps: here all verdicts of the last one have been written.
            self._journals.flush()
        self._ended = True
        if self._done == self._read and self._error is None and self._part.peek() is not None:
            raise self._other_input("has fewer rows")

    def _rows(self) -> Iterator[Row | Rejected]:
        left = -1 if self._limit is None else self._limit
        try:
            for row in self._source:
                if left == 0:
                    return
                yield row
                left -= 1
        except DumpError as error:
            if self._engine.grouped:
                raise  # the rows that are missing might change the verdicts of the others
            self._error = error  # but first score what could be read

    def _reject(self, row: Rejected) -> None:
        self._summary.add_rejected(row.number, row.error)
        rejects = self._journals.rejects
        if rejects is not None:
            rejects.append(row.to_json())
            if rejects.is_full:
                rejects.flush()

    def _is_done(self, row: Row, head: bytes, group: str | None) -> bool:
        """Whether the next line of the part is this row with its verdict. A line torn by a crash is none."""
        line = self._part.peek()
        if line is not None:
            try:
                found = loads(line)
                verdict = found["reward"], found["outcome"], found["reason"]
                whole = found["verdict"]
                source = whole.get("scorer", {}).get("name"), found["reason"], whole.get("explanation", "")
            except (ValueError, LookupError, TypeError, AttributeError):
                line = None
        if line is None:
            self._progress.enter(Stage.SCORING)
            return False
        if not line.startswith(with_reward(head)):
            raise self._other_input(f"differs at line {row.number}")
        self._part.take()
        self._progress.enter(Stage.RESUMING)
        self._summary.add(*verdict, group)
        self._summary.add_source(row.number, *source)
        self._summary.resumed += 1
        self._recall(row.number)
        if self._done % TICK == 0:
            self._update()
        return True

    def _recall(self, number: int) -> None:
        """Count the time that an earlier run has noted for this row, if it has."""
        line = self._log.peek() if self._log is not None else None
        if line is None or self._log is None:
            return
        try:
            found = loads(line)
            if found.pop("line") != number:
                return
            trace = Trace(**found)
        except (ValueError, LookupError, TypeError, AttributeError):
            return
        self._log.take()
        self._summary.add_trace(number, trace)

    def _other_input(self, how: str) -> DumpError:
        return DumpError(f"the input {how} from when {self._part.path} was begun; --restart begins anew")

    def _note_missing_references(self) -> None:
        """Say so when a column of another name is the likely cause of what the verdicts are."""
        reading = sorted({scorer.name for scorer in self._engine.scorers if "reference" in scorer.reads})
        if reading and self._summary.rows and not self._has_reference:
            columns = self._columns.listed()
            self._summary.notes.append(
                f"no row has a reference, which {', '.join(reading)} would compare with: "
                f"--map reference=COLUMN names the column that holds it (columns: {columns})"
            )


def _log_line(number: int, trace: Trace) -> bytes:
    return b'{"line":%d,"seconds":%.6f,"cached":%b,"pooled":%b,"attempts":%d}\n' % (
        number,
        trace.seconds,
        b"true" if trace.cached else b"false",
        b"true" if trace.pooled else b"false",
        trace.attempts,
    )
