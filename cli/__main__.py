"""`python -m rewarden.cli`, for where the command is not on the path."""

from __future__ import annotations

from .main import main

main()
