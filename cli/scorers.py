"""`rewarden scorers`: what can grade, and what it needs."""

from __future__ import annotations

from ..core.extras import missing
from .console import table


def scorers() -> None:
    """List the scorers: built in, and of other installed packages."""
    from ..core import registry
    from ..core.errors import RewardenError

    rows = []
    for name in registry.names():
        try:
            scorer = registry.create(name)
        except (RewardenError, ImportError) as error:
            rows.append((name, "", "", "", "", "", str(error)))
            continue
        summary = (scorer.__doc__ or "").strip().partition("\n")[0]
        need = missing(scorer.libraries)
        if need:
            summary = f"[needs {need}] {summary}"
        reads = ", ".join(scorer.reads)
        kind = registry.kind(name)
        rows.append((name, scorer.version, kind, scorer.unit.value, scorer.resource.value, reads, summary))
    table(rows, heads=("scorer", "version", "kind", "unit", "runs in", "reads", ""))
