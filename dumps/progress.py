"""How far a run over a file is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from time import monotonic

from .summary import Summary


class Stage(StrEnum):
    """What a run is doing."""

    RESUMING = "resuming"
    """Checking the rows that an earlier run has left."""
    SCORING = "scoring"
    WRITING = "writing"
    """The last pass, into a compressed or Parquet file."""


@dataclass(slots=True)
class Progress:
    """Kept up to date by the run, several times a second while rows come."""

    tick: Callable[[Progress], None] = lambda _: None
    """Called at each update. What it raises stops the run."""
    summary: Summary = field(default_factory=Summary)
    stage: Stage = Stage.SCORING
    fraction: float | None = None
    """Of the input that is done, from 0 to 1; None where its size is unknown."""
    seconds: float = 0.0
    """Since scoring began, without the check of rows done before."""
    _since: float = field(default_factory=monotonic)
    _first: tuple[float, float] | None = None
    """Seconds and share when the first verdict of this run was there: what came before it says nothing of the pace."""

    @property
    def rows_per_s(self) -> float:
        """Rows scored by this run, in a second."""
        return (self.summary.rows - self.summary.resumed) / self.seconds if self.seconds else 0.0

    @property
    def seconds_left(self) -> float | None:
        """What the rest of the input will take at the pace of this run so far; None while that cannot be known."""
        if self.stage is not Stage.SCORING or self.fraction is None or self._first is None:
            return None
        seconds, fraction = self._first
        if self.fraction <= fraction:
            return None
        return (self.seconds - seconds) * (1 - self.fraction) / (self.fraction - fraction)

    def enter(self, stage: Stage) -> None:
        """Go on to another stage."""
        if self.stage is Stage.RESUMING:
            self._since = monotonic()
        self.stage = stage

    def update(self, fraction: float | None) -> None:
        """Note the time and tell about it."""
        if self.stage is Stage.SCORING:
            self.seconds = monotonic() - self._since
            if self._first is None and fraction is not None and self.summary.rows > self.summary.resumed:
                self._first = self.seconds, fraction
        self.fraction = fraction
        self.tick(self)
