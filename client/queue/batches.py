"""Cutting a job into batches: one recipe and one kind of work each, groups whole, as large as the work is light."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ...core.catalog import Catalog
from ...core.errors import RewardenError
from ...core.reasons import Reason
from ...core.rollout import Rollout
from ...core.scorer import Resource
from ...core.verdict import Verdict, ungraded
from ...core.wire import Item, bad_rollout, encode_rollouts

LIGHT = 256
"""Rollouts in a batch at most, where each takes micro- or milliseconds."""

HEAVY = 32
"""The same where each takes seconds: judges, models, programs."""

SHARES = 8
"""A job is cut into at least so many batches, if they hold HEAVY rollouts each, so that all workers have a part."""

CHARACTERS = 1 << 20
"""What the texts of a batch may add up to, unless one rollout or group alone is larger."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A batch to be: rows of one job."""

    kind: str
    recipe: str
    rows: list[int]
    units: list[int]
    """How many adjacent rows each unit of work has: a group, or one."""
    payload: bytes


@dataclass(frozen=True, slots=True)
class Waiting:
    """A row whose group is not whole in this job, and may become so with rows of others."""

    group: str
    id: str
    kind: str
    recipe: str
    size: int
    wait_s: float
    row: int
    payload: bytes


@dataclass(slots=True)
class Cut:
    """A job in parts. Every row is in exactly one of them."""

    batches: list[Draft] = field(default_factory=list)
    waiting: list[Waiting] = field(default_factory=list)
    settled: list[tuple[int, Verdict]] = field(default_factory=list)
    """Rows whose verdict needs no worker: what is no rollout, and what nobody here can grade."""


def cut(catalog: Catalog, recipe: str, items: Sequence[Item], *, group_wait_s: float | None = None) -> Cut:
    """The parts of a job. Raises as `Catalog.recipe` does for `recipe`; other faults are verdicts."""
    catalog.recipe(recipe)
    out = Cut()
    rows = [row for row, item in enumerate(items) if isinstance(item, Rollout)]
    out.settled += [(row, bad_rollout(item)) for row, item in enumerate(items) if isinstance(item, str)]
    rollouts = {row: item for row in rows if isinstance(item := items[row], Rollout)}
    for name, places in catalog.split_by_scorer(recipe, list(rollouts.values())).items():
        _cut_recipe(out, catalog, name, {rows[place]: rollouts[rows[place]] for place in places}, group_wait_s)
    return out


def cut_again(kind: str, recipe: str, rollouts: Sequence[Rollout]) -> Cut:
    """Rollouts that were cut before, and are known to be of this kind."""
    out = Cut()
    rows = dict(enumerate(rollouts))
    for some in _packed(_units(rows), rows, HEAVY):
        _draft(out, recipe, kind, some, rows)
    return out


def _cut_recipe(
    out: Cut, catalog: Catalog, name: str, rollouts: dict[int, Rollout], group_wait_s: float | None
) -> None:
    rows = list(rollouts)
    try:
        wait_s = group_wait_s or catalog.recipe(name).limits.group_wait_s
        kinds = catalog.split_by_kind(name, list(rollouts.values()))
    except RewardenError as error:
        out.settled += [(row, ungraded(Reason.NO_ROUTE, str(error), id=rollouts[row].id)) for row in rows]
        return
    for kind, places in kinds.items():
        mine = {rows[place]: rollouts[rows[place]] for place in places}
        if kind is None:
            why = f"no route of the recipe {name!r} takes this rollout"
            out.settled += [(row, ungraded(Reason.NO_ROUTE, why, id=rollout.id)) for row, rollout in mine.items()]
            continue
        grouped = catalog.grouped(name, kind)
        units = _units(mine) if grouped else [[row] for row in mine]
        if wait_s is not None and grouped:
            units = [unit for unit in units if not _wait(out, name, kind, unit, mine, wait_s)]
        most = LIGHT if catalog.resource(name, kind) in (Resource.INLINE, Resource.CPU) else HEAVY
        most = max(HEAVY, min(most, -(-len(mine) // SHARES)))
        for some in _packed(units, mine, most):
            _draft(out, name, kind, some, mine)


def _units(rollouts: dict[int, Rollout]) -> list[list[int]]:
    """Rows that belong together, in the order of their first."""
    units: dict[object, list[int]] = {}
    for row, rollout in rollouts.items():
        key = rollout.group_key
        units.setdefault(row if key is None else (key,), []).append(row)
    return list(units.values())


def _packed(units: list[list[int]], rollouts: dict[int, Rollout], most: int) -> Iterator[list[list[int]]]:
    """Units in batches of at most `most` rows and CHARACTERS, or one larger unit alone."""
    some: list[list[int]] = []
    count = weight = 0
    for unit in units:
        heavy = sum(rollouts[row].weight for row in unit)
        if some and (count + len(unit) > most or weight + heavy > CHARACTERS):
            yield some
            some, count, weight = [], 0, 0
        some.append(unit)
        count += len(unit)
        weight += heavy
    if some:
        yield some


def _draft(out: Cut, name: str, kind: str, units: list[list[int]], rollouts: dict[int, Rollout]) -> None:
    rows = [row for unit in units for row in unit]
    payload, faults = encode_rollouts([rollouts[row] for row in rows])
    if faults:
        bad = {rows[place] for place in faults}
        out.settled += [(rows[place], bad_rollout(fault, rollouts[rows[place]].id)) for place, fault in faults.items()]
        units = [kept for unit in units if (kept := [row for row in unit if row not in bad])]
        rows = [row for unit in units for row in unit]
    if rows:
        out.batches.append(Draft(kind, name, rows, [len(unit) for unit in units], payload))


def _wait(out: Cut, name: str, kind: str, unit: list[int], rollouts: dict[int, Rollout], wait_s: float) -> bool:
    """Whether the unit is a part of a group that waits for its other members."""
    first = rollouts[unit[0]]
    size = max((rollouts[row].group_size or 0 for row in unit), default=0)
    if first.group_key is None or size <= len(unit):
        return False
    batch, place = uuid.uuid4().hex, f"{name}:{kind}:{first.group_key}"
    for row in unit:
        payload, faults = encode_rollouts([rollouts[row]])
        if faults:
            out.settled.append((row, bad_rollout(faults[0], rollouts[row].id)))
        else:
            out.waiting.append(Waiting(place, batch, kind, name, size, wait_s, row, payload[1:-1]))
    return True
