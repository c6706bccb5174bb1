"""Files of rollouts: reading, writing, and scoring one from beginning to end."""

from __future__ import annotations

from .job import FileScoring
from .progress import Progress, Stage
from .row import Columns, Rejected, Row
from .source import Source, open_source
from .summary import Summary

__all__ = ["Columns", "FileScoring", "Progress", "Rejected", "Row", "Source", "Stage", "Summary", "open_source"]
