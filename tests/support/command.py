"""The `rewarden` command, as a process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

COMMAND = [sys.executable, "-P", "-m", "rewarden.cli"]

Run = Callable[..., subprocess.CompletedProcess[str]]
