"""Rewards for a trainer: one client over three ways to reach the graders."""

from __future__ import annotations
