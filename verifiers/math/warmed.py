"""Importing this pays for the imports and tables of the last layer, once, before workers are forked."""

from __future__ import annotations

from .symbolic import warm

warm()
