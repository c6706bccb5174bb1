"""The service's own endpoints, one file for each subject."""

from __future__ import annotations
