"""From rollouts to verdicts under a recipe: the one engine behind files, services, workers and trainers.

    rollouts -> chunks (whole groups where the recipe needs them) -> routes -> parts -> combined -> `then` -> verdicts

Verdicts come back in the order asked, exactly one for each rollout, whatever happens to a scorer or a worker.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import Any, Self

from . import cache as caching
from . import recipe as recipes
from .combine import combine, with_earlier
from .execution import Executor
from .groups import Assembler, Group
from .pool import PoolStats
from .reasons import Reason
from .recipe import Follow, Recipe, Route
from .registry import create
from .resources import Resources
from .rollout import Rollout
from .scorer import Prior, Scorer, Unit
from .spill import Spill
from .verdict import Graded, ScorerStamp, Trace, Verdict, ungraded

CHUNK = 1024
"""Rollouts in one step of a stream, at most: enough to fill the workers, few enough for memory."""

CHUNK_CHARACTERS = 1 << 23
"""What the texts of a step may add up to."""

CHUNK_SECONDS = 0.25
"""How long a step should take: slow scorers get smaller steps, so that progress shows and a kill costs little."""

AHEAD = 4
"""Chunks begun before the oldest one is waited for, so that the pool works while rows are read and written."""


@dataclass(frozen=True, slots=True)
class _Step:
    """A route or follow-up with its scorers, one for each part. A route of work that is not done here has none."""

    rule: Route | Follow
    scorers: Sequence[Scorer]

    @classmethod
    def of(cls, rule: Route | Follow, local: bool) -> _Step:
        return cls(rule, [create(part.scorer, part.config, local=local) for part in rule.parts])


class Engine:
    """Scores rollouts under one recipe.

    `recipe` is a name, a Recipe, or (with `local`) a TOML file or `package.module:Scorer`. `workers` is the number of
    pool processes (one for each core when None). `cache` is "memory", a path to an SQLite file, a Cache, or None for
    none. May be used from several threads at once. Close it, or use it in a `with` block, to stop its workers. Whoever
    passes on names from a network must say `local=False`, so that they cannot name code or files.

    `only`: the kinds of work that are done here (see `recipe.kinds`); routes of other kinds take their rollouts as
    before, but leave them ungraded. `resources`: workers shared with other engines, which whoever made them closes.
    """

    def __init__(
        self,
        recipe: str | Path | Recipe,
        *,
        workers: int | None = None,
        cache: caching.Cache | str | Path | None = "memory",
        local: bool = True,
        only: Collection[str] = (),
        resources: Resources | None = None,
    ) -> None:
        if workers is not None and workers < 1:
            raise ValueError(f"workers={workers}: at least one is needed, or None for one for each core")
        self.recipe = recipes.load(recipe, local=local)
        routes = self.recipe.routes
        here = [kind in only for kind in recipes.kinds(self.recipe, local=local)] if only else [True] * len(routes)
        self._routes = [
            _Step.of(route, local) if is_here else _Step(route, ()) for route, is_here in zip(routes, here, strict=True)
        ]
        self._follows = [_Step.of(follow, local) for follow in self.recipe.then] if any(here) else []
        scorers = [scorer for step in (*self._routes, *self._follows) for scorer in step.scorers]
        self._stamp = ScorerStamp(self.recipe.name, self.recipe.version, self.recipe.digest)
        preload = sorted({module for scorer in scorers for module in scorer.preload})
        self._own_cache: caching.SqliteCache | None = None
        if cache == "memory":
            cache = caching.MemoryCache()
        elif isinstance(cache, (str, Path)):
            self._own_cache = cache = caching.SqliteCache(cache)
        limits = self.recipe.limits
        self._owns_resources = resources is None
        resources = resources or Resources(workers=workers, preload=preload, memory_mb=limits.worker_memory_mb)
        self._executor = Executor(resources, cache=cache, limits=limits)
        self._scorers = scorers
        self._whole_input = any(scorer.unit is Unit.BATCH for scorer in scorers)
        self._grouped = self._whole_input or any(scorer.unit is Unit.GROUP for scorer in scorers)
        self._grouped = self._grouped or any(follow.on == "group" for follow in self.recipe.then)

    @property
    def grouped(self) -> bool:
        """Whether verdicts depend on other rollouts than their own."""
        return self._grouped

    @property
    def scorers(self) -> Sequence[Scorer]:
        """All scorers of the recipe."""
        return self._scorers

    @property
    def pool_stats(self) -> PoolStats | None:
        """Counters of the worker pool; None while nothing has needed it."""
        pool = self._executor.resources.pool
        return None if pool is None else pool.stats

    def warm(self) -> None:
        """Start what the scorers run on, so that the first rollout does not wait for it."""
        self._executor.resources.warm(self._scorers)

    def score(self, rollouts: Sequence[Rollout]) -> list[Verdict]:
        """One verdict for each rollout, in order. What is given is all there is: groups are not waited for."""
        return [graded.verdict for graded in self.stream(rollouts)]

    async def ascore(self, rollouts: Sequence[Rollout]) -> list[Verdict]:
        """`score` for a running event loop, which is never blocked."""
        return await asyncio.to_thread(self.score, rollouts)

    def stream(self, rollouts: Iterable[Rollout]) -> Iterator[Graded]:
        """Verdicts in order while rollouts still come, with bounded memory: a recipe with groups spills what waits."""
        self._executor.resources.check_open()
        if isinstance(rollouts, (Rollout, Mapping, str)):
            raise TypeError(f"give a list of rollouts, not one {type(rollouts).__name__}")
        rollouts = _checked(rollouts)
        return self._stream_groups(rollouts) if self._grouped else self._stream_rows(rollouts)

    # -- streams ------------------------------------------------------------------------------------------------------

    def _stream_rows(self, rollouts: Iterable[Rollout]) -> Iterator[Graded]:
        pace = _Pace()
        under_way: deque[Callable[[], list[Graded]]] = deque()
        for chunk in _chunks(rollouts, pace):
            under_way.append(self._begin(chunk, None))
            if len(under_way) > AHEAD:
                yield from pace.timed(under_way.popleft())
        while under_way:
            yield from pace.timed(under_way.popleft())

    def _stream_groups(self, rollouts: Iterable[Rollout]) -> Iterator[Graded]:
        """Chunks are made of whole groups; their verdicts wait in `done` until every earlier row has left."""
        pace = _Pace()
        assembler = Assembler(whole_input=self._whole_input, wait_s=self.recipe.limits.group_wait_s)
        done: Spill[Graded] = Spill()
        under_way: deque[tuple[list[int], Callable[[], list[Graded]]]] = deque()
        due = 0

        def collect() -> Iterator[Graded]:
            nonlocal due
            rows, finish = under_way.popleft()
            for row, graded in zip(rows, pace.timed(finish), strict=True):
                done.put(row, graded)
            while due in done:
                yield done.pop(due)
                due += 1

        try:
            for groups in _group_chunks(self._leaving(rollouts, assembler), pace):
                chunk = [rollout for group in groups for rollout in assembler.take(group)]
                rows = [row for group in groups for row in group.rows]
                under_way.append((rows, self._begin(chunk, groups)))
                if len(under_way) > AHEAD:
                    yield from collect()
            while under_way:
                yield from collect()
        finally:
            assembler.close()
            done.close()

    def _leaving(self, rollouts: Iterable[Rollout], assembler: Assembler) -> Iterator[Group]:
        """Groups as they are complete, or given up. A rollout whose verdict needs no others is one by itself."""
        for row, rollout in enumerate(rollouts):
            whole = assembler.add(row, rollout, alone=not self._needs_group(rollout))
            if whole is not None:
                yield whole
            yield from assembler.overdue()
        yield from assembler.rest()

    def _needs_group(self, rollout: Rollout) -> bool:
        if self._whole_input or any(isinstance(f.rule, Follow) and f.rule.on == "group" for f in self._follows):
            return True
        number = self.recipe.route_of(rollout)
        steps = self._follows if number is None else [*self._follows, self._routes[number]]
        return any(scorer.unit is not Unit.ROLLOUT for step in steps for scorer in step.scorers)

    # -- one chunk ----------------------------------------------------------------------------------------------------

    def _begin(self, chunk: Sequence[Rollout], groups: Sequence[Group] | None) -> Callable[[], list[Graded]]:
        """Start the routes of a chunk; the result finishes it.

        In a grouped recipe the chunk is made of whole groups, whose members are adjacent.
        """
        traces = [Trace() for _ in chunk]
        verdicts: list[Verdict | None] = [None] * len(chunk)
        spans = _spans(groups) if groups is not None else []
        if groups is not None and self.recipe.limits.incomplete_groups == "ungraded":
            for group, (start, stop) in zip(groups, spans, strict=True):
                if not group.complete:
                    why = f"{stop - start} of {group.size} members came; score parts of groups with `incomplete_groups`"
                    for i in range(start, stop):
                        verdicts[i] = ungraded(Reason.INCOMPLETE_GROUP, why, id=chunk[i].id)
        history: list[dict[str, Verdict]] | None = [{} for _ in chunk] if self._follows else None
        started = [
            (rows, self._begin_step(route, chunk, rows, spans, history, traces, first=True))
            for route, rows in self._routed(chunk, verdicts)
        ]

        def finish() -> list[Graded]:
            for rows, wait in started:
                for i, verdict in zip(rows, wait(), strict=True):
                    verdicts[i] = verdict
            whole = [verdict for verdict in verdicts if verdict is not None]
            assert len(whole) == len(chunk)
            for follow in self._follows:
                self._follow(follow, chunk, whole, spans, history, traces)
            return [Graded(verdict, trace) for verdict, trace in zip(whole, traces, strict=True)]

        return finish

    def _routed(self, chunk: Sequence[Rollout], verdicts: list[Verdict | None]) -> list[tuple[_Step, list[int]]]:
        """Which rows each route takes. Rows that none takes get their verdict at once."""
        routes = self._routes
        if len(routes) == 1 and not routes[0].rule.when and routes[0].scorers:
            return [(routes[0], [i for i in range(len(chunk)) if verdicts[i] is None])]
        taken: dict[int, list[int]] = {}
        for i, rollout in enumerate(chunk):
            if verdicts[i] is not None:
                continue
            number = self.recipe.route_of(rollout)
            if number is not None and not routes[number].scorers:
                parts = ", ".join(part.label for part in routes[number].rule.parts)
                why = f"the recipe {self.recipe.name!r} sends this to {parts}, which is not graded by this service"
                verdicts[i] = ungraded(Reason.NO_ROUTE, why, id=rollout.id)
            elif number is not None:
                taken.setdefault(number, []).append(i)
            else:
                why = f"no route of the recipe {self.recipe.name!r} takes this rollout; add one without `when`"
                verdicts[i] = ungraded(Reason.NO_ROUTE, why, id=rollout.id)
        return [(routes[number], rows) for number, rows in sorted(taken.items())]

    def _begin_step(
        self,
        step: _Step,
        chunk: Sequence[Rollout],
        rows: Sequence[int],
        spans: Sequence[tuple[int, int]],
        history: Sequence[dict[str, Verdict]] | None,
        traces: Sequence[Trace],
        *,
        first: bool = False,
    ) -> Callable[[], list[Verdict]]:
        """Start every part of a step on these rows of the chunk; the result gives their combined verdicts.

        `history` holds the verdicts so far on each row of the chunk by part; it is `prior` for the scorers (but in the
        `first` step, where there is none), and the verdicts of this step are added to it.
        """
        rollouts = [chunk[i] for i in rows]
        my_traces = [traces[i] for i in rows]
        priors = None if first or history is None else [dict(history[i]) for i in rows]
        waits: list[Callable[[], list[Verdict]]] = []
        for scorer in step.scorers:
            if scorer.unit is Unit.ROLLOUT:
                waits.append(self._executor.start(scorer, rollouts, priors, my_traces))
            else:
                waits.append(self._begin_groups(scorer, rollouts, rows, spans, priors, my_traces))

        def finish() -> list[Verdict]:
            by_part = [wait() for wait in waits]
            rule = step.rule
            if history is not None:
                for part, verdicts in zip(rule.parts, by_part, strict=True):
                    for i, verdict in zip(rows, verdicts, strict=True):
                        history[i][part.label] = verdict
            if len(by_part) > 1:
                whole = (combine(rule, verdicts) for verdicts in zip(*by_part, strict=True))
                return [verdict.stamped(r.id, self._stamp) for verdict, r in zip(whole, rollouts, strict=True)]
            if rule.scale != 1.0 or rule.offset != 0.0:
                return [combine(rule, [verdict]) for verdict in by_part[0]]
            return by_part[0]

        return finish

    def _begin_groups(
        self,
        scorer: Scorer,
        rollouts: Sequence[Rollout],
        rows: Sequence[int],
        spans: Sequence[tuple[int, int]],
        priors: Sequence[Prior] | None,
        traces: Sequence[Trace],
    ) -> Callable[[], list[Verdict]]:
        """A group scorer sees those members of each group that have come its way."""
        place = {row: i for i, row in enumerate(rows)}
        if scorer.unit is Unit.BATCH:
            spans = [(0, max(rows, default=-1) + 1)]
        members = [found for start, stop in spans if (found := [place[r] for r in range(start, stop) if r in place])]
        wait = self._executor.start_groups(
            scorer,
            [[rollouts[i] for i in some] for some in members],
            [[priors[i] if priors is not None else {} for i in some] for some in members],
            [[traces[i] for i in some] for some in members],
        )

        def finish() -> list[Verdict]:
            by_row: list[Verdict | None] = [None] * len(rollouts)
            for some, verdicts in zip(members, wait(), strict=True):
                for i, verdict in zip(some, verdicts, strict=True):
                    by_row[i] = verdict
            return [verdict for verdict in by_row if verdict is not None]

        return finish

    def _follow(
        self,
        follow: _Step,
        chunk: Sequence[Rollout],
        verdicts: list[Verdict],
        spans: Sequence[tuple[int, int]],
        history: Sequence[dict[str, Verdict]] | None,
        traces: Sequence[Trace],
    ) -> None:
        """Grade again, in place, the rows (or whole groups) for which the condition of a `then` holds."""
        assert isinstance(follow.rule, Follow)
        when = follow.rule.when
        rows: list[int] = []
        if follow.rule.on == "group":
            for start, stop in spans:
                group = _group_facts(verdicts[start:stop])
                if all(_holds(condition, chunk[start], verdicts[start], group) for condition in when):
                    rows += range(start, stop)
        else:
            rows = [i for i in range(len(chunk)) if all(_holds(c, chunk[i], verdicts[i], {}) for c in when)]
        rows = [i for i in rows if _may_follow(verdicts[i], follow.rule)]
        if not rows:
            return
        assert history is not None
        earlier = {i: dict(history[i]) for i in rows}
        wait = self._begin_step(follow, chunk, rows, spans, history, traces)
        for i, verdict in zip(rows, wait(), strict=True):
            verdicts[i] = with_earlier(verdict, earlier[i])

    # -- the end ------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Stop workers and threads. Work under way comes back as `ungraded: cancelled`; new work is refused."""
        if self._owns_resources:
            self._executor.resources.close()
        if self._own_cache is not None:
            self._own_cache.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _checked(rollouts: Iterable[Rollout]) -> Iterator[Rollout]:
    for rollout in rollouts:
        if not isinstance(rollout, Rollout):
            raise TypeError(f"a rollout must be a rewarden.Rollout, not {type(rollout).__name__}; see Rollout.parse")
        yield rollout


class _Pace:
    """How many rollouts the next chunk should have, by how long the last one took."""

    def __init__(self) -> None:
        self._size = CHUNK // 16
        self._last = perf_counter()

    @property
    def size(self) -> int:
        return max(1, min(self._size, CHUNK))

    def timed(self, finish: Callable[[], list[Graded]]) -> list[Graded]:
        """Wait for a chunk, and learn from the time since the one before."""
        graded = finish()
        now = perf_counter()
        self._size = int(len(graded) * CHUNK_SECONDS / max(now - self._last, 1e-6))
        self._last = now
        return graded


def _chunks(rollouts: Iterable[Rollout], pace: _Pace) -> Iterator[list[Rollout]]:
    chunk: list[Rollout] = []
    characters = 0
    for rollout in rollouts:
        chunk.append(rollout)
        characters += rollout.weight
        if len(chunk) >= pace.size or characters >= CHUNK_CHARACTERS:
            yield chunk
            chunk, characters = [], 0
    if chunk:
        yield chunk


def _group_chunks(groups: Iterable[Group], pace: _Pace) -> Iterator[list[Group]]:
    chunk: list[Group] = []
    size = 0
    for group in groups:
        chunk.append(group)
        size += len(group.rows)
        if size >= pace.size:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _spans(groups: Sequence[Group]) -> list[tuple[int, int]]:
    """Where each group lies in the chunk."""
    spans, start = [], 0
    for group in groups:
        spans.append((start, start + len(group.rows)))
        start += len(group.rows)
    return spans


def _group_facts(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    rewards = [verdict.reward for verdict in verdicts if verdict.reward is not None]
    return {
        "size": len(verdicts),
        "ungraded": len(verdicts) - len(rewards),
        "mean": sum(rewards) / len(rewards) if rewards else None,
        "no_signal": len(set(rewards)) == 1,
    }


def _may_follow(verdict: Verdict, rule: Follow) -> bool:
    """Whether a follow-up may grade this again: never members of a group that the recipe refuses to score."""
    return verdict.graded or (rule.ungraded and verdict.reason is not Reason.INCOMPLETE_GROUP)


def _holds(condition: recipes.Condition, rollout: Rollout, verdict: Verdict, group: dict[str, Any]) -> bool:
    if condition.facts is None:
        return condition.holds(recipes.lookup(rollout, condition.field))
    facts: Any = verdict if condition.facts == "verdict" else group
    return condition.holds(recipes.lookup(facts, condition.field.partition(".")[2]))
