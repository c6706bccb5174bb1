"""Reward functions in the shape that each trainer calls."""

from __future__ import annotations
