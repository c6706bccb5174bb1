# SPDX-License-Identifier: Apache-2.0
"""Rewarden grades what a language model wrote, so that a trainer can learn from it."""

from __future__ import annotations

__version__ = "0.1.0"
