"""`rewarden score`: a file of rollouts in, the same rows with their verdicts out."""

from __future__ import annotations

import gc
import signal
import sys
from enum import StrEnum
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer

from .console import complain, count, duration, say, table
from .stop import Stopped, stoppable

if TYPE_CHECKING:
    from rich.progress import TaskID

    from ..dumps import Progress, Summary

EXPLANATION = 300
"""Characters shown of one."""

EVERY_S = 5.0
"""Seconds between lines of progress where there is no terminal."""


class FailOn(StrEnum):
    """What makes the exit status 1 besides rows without a verdict."""

    UNGRADED = "ungraded"


def score(
    source: Annotated[
        str, typer.Argument(metavar="IN", help="Rollouts: .jsonl (.gz, .zst), .parquet, or - for JSON lines.")
    ],
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="OUT", help="The scored rows: the same suffixes, or -.")
    ],
    recipe: Annotated[
        str, typer.Option(metavar="RECIPE", help="A recipe or scorer by name, a .toml file, or module:Scorer.")
    ] = "auto",
    map: Annotated[
        list[str] | None,
        typer.Option(metavar="FIELD=COLUMN", help="Take a field from another column: --map reference=answer."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Worker processes; one for each CPU when not given.", show_default=False)
    ] = None,
    cache: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Keep verdicts in this file, for this run and later ones.")
    ] = None,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Grade equal rollouts again.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUT if it exists.")] = False,
    restart: Annotated[
        bool, typer.Option("--restart", help="Drop what an interrupted run has left, and begin anew.")
    ] = False,
    fail_on: Annotated[
        FailOn | None, typer.Option(help="Exit with 1, too, if any row could not be graded.", show_default=False)
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")] = False,
    limit: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Read the first N rows only.", show_default=False)
    ] = None,
) -> int:
    """Score a file of rollouts.

    Every row of IN is in OUT, in order, with all its columns and `reward`, `outcome`, `reason` and `verdict`. After a
    kill, the same command goes on where it stopped. Rows that are no rollouts go to OUT.rejected.jsonl.

    Exit status: 0 every row has a verdict, 1 some rows were rejected, 2 the file could not be scored.
    """
    from ..core.engine import Engine
    from ..core.errors import RecipeError
    from ..dumps import Columns, FileScoring

    if cache is not None and no_cache:
        raise RecipeError("--cache and --no-cache contradict each other; give one")
    # Rows come and go by the thousand, and none is part of a cycle: looking for cycles costs more than their memory.
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    columns = Columns.of(map or [])
    display = Display.make(quiet=quiet)
    with (
        stoppable(),
        Engine(recipe, workers=workers, cache=None if no_cache else cache or "memory", local=True) as engine,
    ):
        job = FileScoring(
            engine, source, output,
            columns=columns, overwrite=overwrite, restart=restart, limit=limit, tick=display.show,
        )  # fmt: skip
        try:
            with display:
                summary = job.run()
        except Stopped as stop:
            _report_stop(stop, job.progress, to_stream=job.to_stream)
            raise
        except BrokenPipeError:  # whoever reads the output has had enough
            raise typer.Exit(128 + signal.SIGPIPE) from None
        finally:
            for line in job.progress.summary.rejections:
                say(line)
    if not quiet:
        report(summary, job.progress)
        if not job.to_stream:
            say(f"{count(summary.rows, 'row')} in {output}")
    if summary.rejected:
        unsaid = summary.rejected - len(summary.rejections)
        more = f" ({unsaid:,} more than shown)" if unsaid else ""
        where = "" if job.to_stream else f"; they are in {output}.rejected.jsonl"
        complain(f"{count(summary.rejected, 'row')} rejected, as they are no rollouts{more}{where}")
    return int(bool(summary.rejected or (fail_on is FailOn.UNGRADED and summary.ungraded)))


def _report_stop(stop: Stopped, progress: Progress, *, to_stream: bool) -> None:
    done = count(progress.summary.rows, "row")
    complain(f"stopped by {stop} after {done}{'' if to_stream else '; give the same command again to go on'}")


class Display:
    """Where progress is shown: nowhere. The subclasses show it."""

    @staticmethod
    def make(*, quiet: bool) -> Display:
        """What suits standard error."""
        if quiet:
            return Display()
        return BarDisplay() if sys.stderr.isatty() else LineDisplay()

    def show(self, progress: Progress) -> None:
        """Called several times a second while rows come."""

    def __enter__(self) -> None:
        """Begin to show."""

    def __exit__(self, *_: object) -> None:
        """Leave the screen as it was."""


class LineDisplay(Display):
    """A line every few seconds, for logs."""

    def __init__(self) -> None:
        self._next = monotonic() + EVERY_S

    def show(self, progress: Progress) -> None:
        now = monotonic()
        if now >= self._next:
            self._next = now + EVERY_S
            say(", ".join(part for part in (_what(progress), *_rate(progress)) if part))


class BarDisplay(Display):
    """A bar on a terminal."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[rate]}"))
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task: TaskID | None = None
        self._next = 0.0

    def __enter__(self) -> None:
        self._task = self._bar.add_task("starting", total=None, rate="")
        self._bar.start()

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def show(self, progress: Progress) -> None:
        now = monotonic()
        if now < self._next or self._task is None:
            return
        self._next = now + 0.1
        rate = ", ".join(_rate(progress))
        total = 1.0 if progress.fraction is not None else None
        done = progress.fraction or 0.0
        self._bar.update(self._task, description=_what(progress), total=total, completed=done, rate=rate)


def _what(progress: Progress) -> str:
    return f"{progress.stage}: {count(progress.summary.rows, 'row')}"


def _rate(progress: Progress) -> list[str]:
    """Rows a second, the share read, and the time that the rest of the input will take at this pace."""
    out = []
    if progress.rows_per_s:
        out.append(f"{progress.rows_per_s:,.0f} rows/s")
    if progress.fraction is not None:
        out.append(f"{progress.fraction:.0%}")
    if progress.seconds_left is not None:
        out.append(f"{duration(progress.seconds_left)} left")
    return out


def report(summary: Summary, progress: Progress) -> None:
    """The summary of a run, as a table on standard error."""
    rows = [("rows", f"{summary.rows:,}", "")]
    rows += [(name, f"{n:,}", _share(n, summary.rows)) for name, n in sorted(summary.outcomes.items(), key=_by_count)]
    rows += [(f"  because {name}", f"{n:,}", _share(n, summary.rows)) for name, n in
             sorted(summary.reasons.items(), key=_by_count)]  # fmt: skip
    rows += [(f"by {name}", f"{n:,}", _share(n, summary.rows)) for name, n in
             sorted(summary.scorers.items(), key=_by_count)]  # fmt: skip
    if summary.rejected:
        rows.append(("rejected", f"{summary.rejected:,}", "no rollouts"))
    if summary.mean_reward is not None:
        rows.append(("mean reward", f"{summary.mean_reward:.4f}", "of the graded rows"))
    if summary.no_signal is not None:
        rows.append(("groups", f"{summary.groups:,}", f"{summary.no_signal:.1%} with equal rewards, so no signal"))
    if progress.rows_per_s:
        resumed = f"; {summary.resumed:,} were there before" if summary.resumed else ""
        rows.append(("rows/s", f"{progress.rows_per_s:,.0f}", f"in {duration(progress.seconds)}{resumed}"))
    p50, p99 = summary.times.percentile(0.5), summary.times.percentile(0.99)
    if p50 and p99:
        rows.append(("time of a row", duration(p50), f"median; p99 {duration(p99)}"))
    if summary.cached:
        rows.append(("from the cache", f"{summary.cached:,}", _share(summary.cached, summary.rows)))
    if summary.pooled:
        rows.append(("in workers", f"{summary.pooled:,}", _share(summary.pooled, summary.rows)))
    slow = [(number, duration(seconds)) for number, seconds in summary.slowest if seconds >= 0.001]
    if slow:
        (number, longest), *others = slow
        then = "".join(f", line {number} {seconds}" for number, seconds in others)
        rows.append(("slowest", longest, f"line {number}{then}"))
    table(rows, heads=("", "", ""), stderr=True)
    for reason, (number, why) in summary.causes.items():
        say(f"first {reason}: line {number}: {why[:EXPLANATION]}" if why else f"first {reason}: line {number}")
    for note in summary.notes:
        say(note)


def _by_count(item: tuple[str, int]) -> tuple[int, str]:
    return -item[1], item[0]


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else ""
