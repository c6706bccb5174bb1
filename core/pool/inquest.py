"""Who is to blame for a worker's death: pure judgement, from what the pool did, the wait status and the shared page.

An item over its CPU budget is judged at once: the kernel measured it. Any other death proves nothing about an item that
was not alone: what ran before it in the same worker may have prepared the end. So the suspect runs again, alone in a
fresh worker, and only a death there is its own; and never a death that came from outside.

The limits of it: a worker that kills itself with SIGKILL looks as if it had been killed from outside, so such an item
ends as `killed`, after `OUTSIDE_MAX` workers; and a C library that aborts when it gets no memory is a `crash`.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass, field
from typing import Final

from .batch import Batch, Outcome
from .handle import Cause, Handle
from .protocol import CPU, FINISHED, LOADING, STARTED
from .report import Fault
from .worker import EXIT_UNREACHABLE, EXIT_UNREADABLE

OUTSIDE: Final = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
"""Signals that others send: an operator, the out-of-memory killer, a shell."""
OUTSIDE_MAX: Final = 8
"""So many workers killed from outside under an item that was alone: give up on it."""
OUTSIDE_TOGETHER: Final = 2
"""So many under an item in company: from now on alone, so that OUTSIDE_MAX can count."""
LOAD_MAX: Final = 3
"""So many workers dead while loading a handler: it cannot be loaded."""


@dataclass(slots=True)
class Findings:
    """What follows from one death."""

    settled: list[tuple[Batch, int, Outcome]] = field(default_factory=list)
    suspects: list[tuple[Batch, int]] = field(default_factory=list)
    """To run again, alone."""
    innocent: list[tuple[Batch, int]] = field(default_factory=list)
    """To run again, as if nothing had been."""
    outside: bool = False
    """The death came from outside."""
    unloadable: Batch | None = None
    """The batch whose handler cannot be loaded; `detail` says how its workers died."""
    detail: str = ""


def inquire(worker: Handle, status: int | None, cpu_ns: int, wall_ns: int) -> Findings:
    """Judge a dead worker's unanswered items.

    `status` is the exit code or the negative signal, None when unknown (the zygote died too). `cpu_ns` and `wall_ns`
    are what the running item had used when the pool decided to end the worker, 0 when it did not.
    """
    found = Findings(detail=_how_it_died(worker, status))
    running = worker.running
    cause = worker.cause
    accused: list[int] = []
    if cause is None or cause is Cause.BROKEN:
        ours = cause is Cause.BROKEN and status == -signal.SIGKILL
        found.outside = not ours and (status is None or -status in OUTSIDE)
        finished = min(int(worker.words[FINISHED]), worker.given)
        # Between items it may have been any that ran since the worker last answered.
        accused = [running] if running else list(range(worker.answered + 1, finished + 1))
    elif cause in (Cause.CPU, Cause.DEADLINE, Cause.MEMORY) and worker.condemned == running:
        accused = [running]
    if worker.words[LOADING] and (cause is None or cause is Cause.LOADING) and not found.outside and worker.assigned:
        _charge_load(found, worker, running)
    for ticket in range(worker.answered + 1, worker.given + 1):
        batch, index = worker.item(ticket)
        if batch.outcomes[index] is not None or batch is found.unloadable:
            continue
        if ticket == running or ticket in accused:
            batch.ledger.trouble(index).attempts += 1
        if ticket in accused:
            used = (cpu_ns, wall_ns) if ticket == running else (0, 0)
            _judge(found, worker, batch, index, used)
        elif ticket not in worker.revoked or ticket == running:
            found.innocent.append((batch, index))
    return found


def _charge_load(found: Findings, worker: Handle, running: int) -> None:
    unstarted = max(running, min(int(worker.words[FINISHED]), worker.given), worker.answered) + 1
    if unstarted <= worker.given:
        batch, _ = worker.item(unstarted)
        batch.ledger.load_deaths += 1
        if batch.ledger.load_deaths >= LOAD_MAX:
            found.unloadable = batch


def _judge(found: Findings, worker: Handle, batch: Batch, index: int, used: tuple[int, int]) -> None:
    """Settle one accused item, or have it run again."""
    trouble = batch.ledger.trouble(index)
    budget = batch.ledger.budget(index)
    cpu_ns, wall_ns = used
    fault: Fault | None = None
    detail = found.detail
    match worker.cause:
        case Cause.CPU:
            fault = Fault.CPU
            detail = over_cpu(budget.cpu_s)
        case Cause.DEADLINE if worker.alone:
            fault = Fault.DEADLINE
            detail = f"not done after {budget.wall_s:g} s, with CPU to spare, twice"
        case Cause.MEMORY if worker.alone:
            fault = Fault.MEMORY
            detail = "over the memory limit of a worker"
        case Cause.DEADLINE | Cause.MEMORY:
            pass
        case _ if found.outside:
            trouble.outside += 1
            if not worker.alone and trouble.outside < OUTSIDE_TOGETHER:
                found.innocent.append((batch, index))
                return
            if worker.alone and trouble.outside >= OUTSIDE_MAX:
                fault = Fault.KILLED
                detail = f"{trouble.outside} workers were killed from outside while it ran; the last was {detail}"
        case _ if worker.alone:
            fault = Fault.CRASH
    if fault is None:
        found.suspects.append((batch, index))
        return
    outcome = Outcome(fault, b"", detail, worker.page.stage, cpu_ns, wall_ns, trouble.attempts)
    found.settled.append((batch, index, outcome))


def over_cpu(budget_s: float) -> str:
    """The detail of a CPU fault: the same text in every run."""
    return f"over its budget of {budget_s:g} s of CPU"


def _how_it_died(worker: Handle, status: int | None) -> str:
    if worker.cause is Cause.BROKEN and status == -signal.SIGKILL:
        return "its worker's socket was closed or written to by something else"
    if status in (EXIT_UNREACHABLE, EXIT_UNREADABLE):
        return "its worker's socket was closed or spoiled"
    if status is None:
        return "lost together with the zygote"
    if status >= 0:
        return f"its worker exited with code {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    where = worker.last_words()
    return f"its worker was killed by {name}" + (f" at {where}" if where else "")


def usage(worker: Handle, cpu_now: int | None, now: int) -> tuple[int, int]:
    """CPU and wall time, in ns, that the present item has used."""
    cpu = 0 if cpu_now is None else max(0, cpu_now - int(worker.words[CPU]))
    return cpu, max(0, now - int(worker.words[STARTED]))
