"""Jobs on Redis: the ledger of what each still lacks, and how workers are woken."""

from __future__ import annotations
