"""Is a worker over a limit? Read from outside, through the kernel and the shared page, without its help.

Covered: CPU and wall time of the present item, resident memory, a handler that does not load, a worker that does not
start its work. Not covered: CPU burnt by processes that an item forks; they are killed with the group, and the wall
deadline bounds them.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from . import system
from .handle import Cause, Handle
from .inquest import usage
from .protocol import LOADING, TICKET

PAUSE_S: Final = 0.05
"""Between two looks at a busy worker, unless a limit is nearer."""
_SHORTEST_S: Final = 0.002
WEIGH_NS: Final = 40_000_000
"""Between two looks at a worker's memory."""
LOADING_NS: Final = 60_000_000_000
"""For loading a handler, on the clock: it may import whole libraries."""
STALLED_NS: Final = 3_000_000_000
"""A worker that has work and does nothing for so long was stopped, or something ate its work. Nobody is blamed."""


class Overdue(NamedTuple):
    """A worker to be ended."""

    cause: Cause
    ticket: int
    cpu_ns: int
    wall_ns: int


def look(handle: Handle, now: int, memory_bytes: int) -> tuple[Overdue | None, float]:
    """The limit that a worker is over, if any, and after how many seconds to look again."""
    handle.note_progress(now)
    ticket = handle.running
    resident = 0
    if now - handle.weighed > WEIGH_NS:
        handle.weighed = now
        resident = system.resident_bytes(handle.pid) or 0
        handle.grown = resident > handle.born_with + 0.75 * (memory_bytes - handle.born_with)
    if not ticket:
        loading = int(handle.words[LOADING])
        if loading:
            over = Overdue(Cause.LOADING, 0, 0, 0) if now - loading > LOADING_NS else None
        else:
            over = Overdue(Cause.STALLED, 0, 0, 0) if now - handle.active > STALLED_NS else None
        return over, PAUSE_S
    batch, index = handle.item(ticket)
    budget = batch.ledger.budget(index)
    cpu_ns, wall_ns = usage(handle, system.cpu_ns(handle.pid), now)
    cause: Cause | None = None
    if resident > memory_bytes:
        cause = Cause.MEMORY
    if cpu_ns > budget.cpu_s * 1e9:
        cause = Cause.CPU
    elif wall_ns > budget.wall_s * 1e9:
        cause = Cause.DEADLINE
    if handle.words[TICKET] != ticket:
        return None, _SHORTEST_S  # it ended while we looked: the figures are another item's
    if cause is not None:
        return Overdue(cause, ticket, cpu_ns, wall_ns), PAUSE_S
    left = min(budget.cpu_s - cpu_ns / 1e9, budget.wall_s - wall_ns / 1e9)
    return None, min(PAUSE_S, max(_SHORTEST_S, left))
