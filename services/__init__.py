"""The HTTP service, its workers, and what keeps them within bounds."""

from __future__ import annotations
