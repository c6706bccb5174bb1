"""What a trainer needs in its own process."""

from __future__ import annotations
