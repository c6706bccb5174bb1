"""The killable process pool (see `pool.py`; the why is in docs/design/002-killable-pool.md)."""

from __future__ import annotations

from ..budget import Budget
from .batch import Batch
from .pool import Pool
from .report import Fault, Report
from .stats import PoolStats
from .worker import stage

__all__ = ["Batch", "Budget", "Fault", "Pool", "PoolStats", "Report", "stage"]
