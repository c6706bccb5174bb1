"""The endpoints that trainers already call, in their exact shape."""

from __future__ import annotations
