"""The process that takes batches from the queue and grades them."""

from __future__ import annotations
