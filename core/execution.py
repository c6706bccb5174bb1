"""Scoring rollouts with one scorer: from the cache where the verdict is known, else where its resource says.

`Executor.start` begins the work and returns a function that waits for the verdicts. Between the two, the caller may
start more, so that the pool stays busy while rows are read and written.

Whoever asks for work that is under way for somebody else joins it (one flight), and may wait for it from any thread, so
that nobody depends on another thread's progress.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from time import perf_counter

from . import cache as caching
from .reasons import Reason
from .recipe import Limits
from .resources import Resources
from .rollout import Rollout, View
from .scorer import Prior, Resource, Scorer, Unit
from .verdict import Trace, Verdict
from .work import Work, raised, score_together, viewer

log = logging.getLogger(__name__)

NO_PRIOR: Prior = {}


class Call:
    """Work under way for several units. `wait` may be called by any thread, any number of times."""

    def __init__(self) -> None:
        self._begun = threading.Event()
        self._lock = threading.Lock()
        self._finish: Callable[[], list[list[Verdict]]] | None = None
        self._results: list[list[Verdict]] = []

    def begin(self, finish: Callable[[], list[list[Verdict]]]) -> None:
        """The work has been sent off; `finish` waits for it."""
        self._finish = finish
        self._begun.set()

    def wait(self) -> list[list[Verdict]]:
        """The verdicts of each unit."""
        self._begun.wait()
        with self._lock:
            if self._finish is not None:
                self._results = self._finish()
                self._finish = None
        return self._results


class Executor:
    """Scores with any scorer, through one cache, on one set of resources."""

    def __init__(
        self, limits: Limits, *, workers: int | None, cache: caching.Cache | None, preload: Sequence[str]
    ) -> None:
        self.resources = Resources(limits, workers=workers, preload=preload)
        self._cache = cache
        self._lock = threading.Lock()
        self._flights: dict[caching.Key, tuple[Call, int]] = {}

    # -- rollouts one by one ------------------------------------------------------------------------------------------

    def start(
        self, scorer: Scorer, rollouts: Sequence[Rollout], priors: Sequence[Prior] | None, traces: Sequence[Trace]
    ) -> Callable[[], list[Verdict]]:
        """Begin to score each rollout alone; call the result for the verdicts, in order and stamped."""
        views = [make(rollout) for make in (viewer(scorer),) for rollout in rollouts]
        count = len(views)
        verdicts: list[Verdict | None] = [None] * count
        keys = (
            [self._key(scorer, (view,), (priors[i],) if priors else ()) for i, view in enumerate(views)]
            if self._cache is not None
            else []
        )
        todo: list[int] = []
        same: dict[int, int] = {}
        if self._cache is not None:
            known = self._known(keys)
            first: dict[caching.Key, int] = {}
            for i, key in enumerate(keys):
                hit = known.get(key)
                if hit is not None:
                    verdicts[i] = hit
                    traces[i].cached = True
                elif key in first:
                    same[i] = first[key]
                    traces[i].cached = True
                else:
                    first[key] = i
                    todo.append(i)
        else:
            todo = list(range(count))

        def finish() -> list[Verdict]:
            for i, j in same.items():
                verdicts[i] = verdicts[j]
            stamp = scorer.stamp
            return [
                v.stamped(rollouts[i].id, stamp) if v is not None else _lost(rollouts[i].id)
                for i, v in enumerate(verdicts)
            ]

        if scorer.resource is Resource.CPU:
            todo = self._quick(scorer, views, todo, verdicts, traces, keys)
        elif scorer.resource is Resource.INLINE:
            self._inline(scorer, views, priors, todo, verdicts, traces, keys)
            return finish
        if not todo:
            return finish
        works = [Work((views[i],), (priors[i] if priors else NO_PRIOR,)) for i in todo]
        wait = self._start_works(scorer, works, [keys[i] for i in todo] if keys else [], [(traces[i],) for i in todo])

        def finish_later() -> list[Verdict]:
            for i, (verdict,) in zip(todo, wait(), strict=True):
                verdicts[i] = verdict
            return finish()

        return finish_later

    def _quick(
        self,
        scorer: Scorer,
        views: Sequence[View],
        todo: Sequence[int],
        verdicts: list[Verdict | None],
        traces: Sequence[Trace],
        keys: Sequence[caching.Key],
    ) -> list[int]:
        """Settle in the caller what takes microseconds; the numbers of the rest."""
        if type(scorer).quick is Scorer.quick:
            return list(todo)
        rest: list[int] = []
        quick = scorer.quick
        before = perf_counter()
        for i in todo:
            try:
                verdict = quick(views[i])
            except Exception:  # the worker will meet it again, and there it is kept to its row
                log.debug("quick() of %s raised", scorer.name, exc_info=True)
                verdict = None
            if verdict is None:
                rest.append(i)
            else:
                verdicts[i] = verdict
            now = perf_counter()
            traces[i].seconds += now - before
            before = now
        if keys:
            self._store({keys[i]: v for i in todo if (v := verdicts[i]) is not None})
        return rest

    def _inline(
        self,
        scorer: Scorer,
        views: Sequence[View],
        priors: Sequence[Prior] | None,
        todo: Sequence[int],
        verdicts: list[Verdict | None],
        traces: Sequence[Trace],
        keys: Sequence[caching.Key],
    ) -> None:
        before = perf_counter()
        some = [Work((views[i],), (priors[i] if priors else NO_PRIOR,)) for i in todo]
        for i, verdict in zip(todo, score_together(scorer, some), strict=True):
            verdicts[i] = verdict
        each = (perf_counter() - before) / max(1, len(todo))
        for i in todo:
            traces[i].seconds += each
        if keys:
            self._store({keys[i]: v for i in todo if (v := verdicts[i]) is not None})

    # -- groups ----------------------------------------------------------------------------------------------------

    def start_groups(
        self,
        scorer: Scorer,
        groups: Sequence[Sequence[Rollout]],
        priors: Sequence[Sequence[Prior]],
        traces: Sequence[Sequence[Trace]],
    ) -> Callable[[], list[list[Verdict]]]:
        """The same for scorers that see a whole group (or batch) at once."""
        make = viewer(scorer)
        works = [
            Work([make(rollout) for rollout in group], before) for group, before in zip(groups, priors, strict=True)
        ]
        keys = []
        if self._cache is not None and scorer.unit is not Unit.BATCH:
            # A group is cached member by member: the key of a member is that of the ordered group and its place in it.
            keys = [self._key(scorer, work.views, work.priors) for work in works]
        wait = self._start_works(scorer, works, keys, traces)

        def finish() -> list[list[Verdict]]:
            stamp = scorer.stamp
            return [
                [verdict.stamped(rollout.id, stamp) for verdict, rollout in zip(verdicts, group, strict=True)]
                for verdicts, group in zip(wait(), groups, strict=True)
            ]

        return finish

    # -- any unit -----------------------------------------------------------------------------------------------------

    def _start_works(
        self, scorer: Scorer, works: Sequence[Work], keys: Sequence[caching.Key], traces: Sequence[Sequence[Trace]]
    ) -> Callable[[], list[list[Verdict]]]:
        """Begin these units of work, joining those that are known or under way; the result waits for all."""
        results: list[list[Verdict] | None] = [None] * len(works)
        joined: list[tuple[int, Call, int]] = []
        mine: list[int] = []
        if keys and len(works) and len(works[0].views) != 1:
            for i, found in enumerate(self._known_groups(keys, works)):
                results[i] = found
        call = Call()
        with self._lock:
            for i in range(len(works)):
                if results[i] is not None:
                    _mark_cached(traces[i])
                elif keys and keys[i] in self._flights:
                    joined.append((i, *self._flights[keys[i]]))
                    _mark_cached(traces[i])
                else:
                    if keys:
                        self._flights[keys[i]] = (call, len(mine))
                    mine.append(i)
        my_works, my_keys = [works[i] for i in mine], [keys[i] for i in mine] if keys else []
        try:
            wait = self.resources.start(scorer, my_works, [traces[i] for i in mine])
        except BaseException as error:
            why = raised(error)  # those who have joined must hear of it, and then so must the caller
            call.begin(lambda: self._land([work.failed(Reason.CANCELLED, why) for work in my_works], my_keys))
            call.wait()
            raise
        call.begin(lambda: self._land(wait(), my_keys))

        def finish() -> list[list[Verdict]]:
            for i, verdicts in zip(mine, call.wait() if mine else [], strict=True):
                results[i] = verdicts
            for i, other, place in joined:
                results[i] = other.wait()[place]
            return [found for found in results if found is not None]

        return finish

    def _land(self, done: list[list[Verdict]], keys: Sequence[caching.Key]) -> list[list[Verdict]]:
        """Remember what is done, and let others start the same work anew."""
        if keys:
            store: dict[caching.Key, Verdict] = {}
            for key, verdicts in zip(keys, done, strict=True):
                if len(verdicts) == 1:
                    store[key] = verdicts[0]
                elif all(verdict.graded for verdict in verdicts):
                    store.update((_member(key, place), verdict) for place, verdict in enumerate(verdicts))
            self._store(store)
            with self._lock:
                for key in keys:
                    self._flights.pop(key, None)
        return done

    # -- cache ----------------------------------------------------------------------------------------------------

    def _key(self, scorer: Scorer, views: Sequence[View], priors: Sequence[Prior]) -> caching.Key:
        stamp = scorer.stamp.digest
        salted = type(scorer).salt is not Scorer.salt
        keys = [
            caching.digest(
                stamp,
                [getattr(view, name) for name in view.reads],
                scorer.salt(view) if salted else "",
                priors[i] if priors else None,
            )
            for i, view in enumerate(views)
        ]
        return keys[0] if len(keys) == 1 else caching.digest(stamp, [key.hex() for key in keys])

    def _known(self, keys: Sequence[caching.Key]) -> dict[caching.Key, Verdict]:
        assert self._cache is not None
        try:
            return self._cache.get_many(keys)
        except Exception:
            log.warning("the cache cannot be read; scoring without it", exc_info=True)
            return {}

    def _known_groups(self, keys: Sequence[caching.Key], works: Sequence[Work]) -> list[list[Verdict] | None]:
        members = [
            [_member(key, place) for place in range(len(work.views))] for key, work in zip(keys, works, strict=True)
        ]
        known = self._known([key for group in members for key in group])
        return [[known[key] for key in group] if all(key in known for key in group) else None for group in members]

    def _store(self, verdicts: dict[caching.Key, Verdict]) -> None:
        assert self._cache is not None
        graded = {key: verdict for key, verdict in verdicts.items() if verdict.graded}
        try:
            if graded:
                self._cache.put_many(graded)
        except Exception:  # a full disk must not cost a verdict
            log.warning("the cache cannot be written", exc_info=True)


def _mark_cached(traces: Sequence[Trace]) -> None:
    for trace in traces:
        trace.cached = True


def _member(key: caching.Key, place: int) -> caching.Key:
    return key + place.to_bytes(4, "big")


def _lost(id: str) -> Verdict:
    raise AssertionError(f"no verdict was made for rollout {id!r}: this is a fault of the engine")
