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
from .work import FAULTS, Work, raised, score_together, views_of

log = logging.getLogger(__name__)

NO_PRIOR: Prior = {}


class Call:
    """Work under way for several units. `wait` may be called by any thread, any number of times."""

    def __init__(self) -> None:
        self._begun = threading.Event()
        self._lock = threading.Lock()
        self._finish: Callable[[], list[list[Verdict]]] | None = None
        self._results: list[list[Verdict]] = []
        self._error: BaseException | None = None

    def begin(self, finish: Callable[[], list[list[Verdict]]]) -> None:
        """The work has been sent off; `finish` waits for it."""
        self._finish = finish
        self._begun.set()

    def wait(self) -> list[list[Verdict]]:
        """The verdicts of each unit."""
        self._begun.wait()
        with self._lock:
            if self._finish is not None:
                try:
                    self._results = self._finish()
                except BaseException as error:  # noqa: BLE001 - raised below, to everybody who waits
                    self._error = error
                self._finish = None
        if self._error is not None:
            raise self._error
        return self._results


class _Rows:
    """Rollouts that are scored one by one, on their way: what is known, and what is still to do."""

    def __init__(
        self, scorer: Scorer, rollouts: Sequence[Rollout], priors: Sequence[Prior] | None, traces: Sequence[Trace]
    ) -> None:
        self.scorer = scorer
        self.rollouts = rollouts
        self.priors = priors
        self.traces = traces
        self.views = views_of(scorer, rollouts)
        self.keys: list[caching.Key | None] = []
        self.todo = list(range(len(rollouts)))
        self.verdicts: dict[int, Verdict] = {}
        self.settled: dict[caching.Key, Verdict] = {}
        """What was graded here in the caller, for the cache."""
        self._same: list[tuple[int, int]] = []
        """(row, earlier row with the same key)"""

    def look_up(self, known: dict[caching.Key, Verdict]) -> None:
        """Take what the cache knows, and leave one of those that are alike to do."""
        first: dict[caching.Key, int] = {}
        todo = []
        for i, key in enumerate(self.keys):
            hit = known.get(key) if key is not None else None
            if key is None:
                todo.append(i)
            elif hit is not None:
                self.verdicts[i] = hit
                self.traces[i].cached = True
            elif key in first:
                self._same.append((i, first[key]))
                self.traces[i].cached = True
            else:
                first[key] = i
                todo.append(i)
        self.todo = todo

    def works(self) -> list[Work]:
        """What is to do, one unit for each row."""
        priors = self.priors
        return [Work((self.views[i],), (priors[i] if priors else NO_PRIOR,)) for i in self.todo]

    def score_inline(self) -> None:
        """Score all that is to do, here."""
        before = perf_counter()
        verdicts = score_together(self.scorer, self.works())
        each = (perf_counter() - before) / max(1, len(verdicts))
        for i, verdict in zip(self.todo, verdicts, strict=True):
            self.traces[i].seconds += each
            self._settle(i, verdict)
        self.todo = []

    def score_quickly(self) -> None:
        """Settle here what takes microseconds."""
        if type(self.scorer).quick is Scorer.quick:
            return
        rest = []
        quick = self.scorer.quick
        before = perf_counter()
        for i in self.todo:
            try:
                verdict = quick(self.views[i])
                if verdict is not None and not isinstance(verdict, Verdict):
                    raise TypeError(f"quick() returned a {type(verdict).__name__}")
            except FAULTS:  # the worker will meet it again, and there it is kept to its row
                log.debug("quick() of %s raised", self.scorer.name, exc_info=True)
                verdict = None
            if verdict is None:
                rest.append(i)
            else:
                self._settle(i, verdict)
            now = perf_counter()
            self.traces[i].seconds += now - before
            before = now
        self.todo = rest

    def _settle(self, i: int, verdict: Verdict) -> None:
        self.verdicts[i] = verdict
        key = self.keys[i] if self.keys else None
        if key is not None:
            self.settled[key] = verdict

    def finish(self) -> list[Verdict]:
        """A verdict for each rollout, in order and stamped."""
        verdicts = self.verdicts
        for i, j in self._same:
            verdicts[i] = verdicts[j]
        stamp = self.scorer.stamp
        return [verdicts[i].stamped(rollout.id, stamp) for i, rollout in enumerate(self.rollouts)]


class Executor:
    """Scores with any scorer under a recipe's limits, through one cache, on one set of resources."""

    def __init__(self, resources: Resources, *, cache: caching.Cache | None, limits: Limits) -> None:
        self.resources = resources
        self._limits = limits
        self._cache = cache
        self._lock = threading.Lock()
        self._flights: dict[caching.Key | None, tuple[Call, int]] = {}

    # -- rollouts one by one ------------------------------------------------------------------------------------------

    def start(
        self, scorer: Scorer, rollouts: Sequence[Rollout], priors: Sequence[Prior] | None, traces: Sequence[Trace]
    ) -> Callable[[], list[Verdict]]:
        """Begin to score each rollout alone; call the result for the verdicts, in order and stamped."""
        rows = _Rows(scorer, rollouts, priors, traces)
        if self._cache is not None:
            with self.resources.turn:
                rows.keys = [
                    self._key(scorer, rows.views[i : i + 1], priors[i : i + 1] if priors else ()) for i in rows.todo
                ]
            rows.look_up(self._known([key for key in rows.keys if key is not None]))
        with self.resources.turn:
            if scorer.resource is Resource.INLINE:
                rows.score_inline()
            elif scorer.resource is Resource.CPU:
                rows.score_quickly()
        if self._cache is not None:
            self._store(rows.settled)
        if not rows.todo:
            return rows.finish
        keys = [rows.keys[i] for i in rows.todo] if rows.keys else []
        wait = self._start_works(scorer, rows.works(), keys, [(traces[i],) for i in rows.todo])

        def finish() -> list[Verdict]:
            rows.verdicts.update((i, verdict) for i, (verdict,) in zip(rows.todo, wait(), strict=True))
            return rows.finish()

        return finish

    # -- groups ----------------------------------------------------------------------------------------------------

    def start_groups(
        self,
        scorer: Scorer,
        groups: Sequence[Sequence[Rollout]],
        priors: Sequence[Sequence[Prior]],
        traces: Sequence[Sequence[Trace]],
    ) -> Callable[[], list[list[Verdict]]]:
        """The same for scorers that see a whole group (or batch) at once."""
        works = [Work(views_of(scorer, group), before) for group, before in zip(groups, priors, strict=True)]
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
        self,
        scorer: Scorer,
        works: Sequence[Work],
        keys: Sequence[caching.Key | None],
        traces: Sequence[Sequence[Trace]],
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
                elif (key := keys[i] if keys else None) in self._flights:
                    joined.append((i, *self._flights[key]))
                    _mark_cached(traces[i])
                else:
                    if key is not None:
                        self._flights[key] = (call, len(mine))
                    mine.append(i)
        my_works, my_keys = [works[i] for i in mine], [keys[i] for i in mine] if keys else []
        try:
            wait = self.resources.start(scorer, my_works, [traces[i] for i in mine], self._limits)
        except BaseException as error:
            why = raised(error)  # those who have joined must hear of it, and then so must the caller
            call.begin(lambda: self._land([work.failed(Reason.CANCELLED, why) for work in my_works], my_keys))
            call.wait()
            self._forget(my_keys)
            raise

        def land() -> list[list[Verdict]]:
            try:
                return self._land(wait(), my_keys)
            finally:
                self._forget(my_keys)

        call.begin(land)

        def finish() -> list[list[Verdict]]:
            for i, verdicts in zip(mine, call.wait() if mine else [], strict=True):
                results[i] = verdicts
            for i, other, place in joined:
                results[i] = other.wait()[place]
            return [found for found in results if found is not None]

        return finish

    def _land(self, done: list[list[Verdict]], keys: Sequence[caching.Key | None]) -> list[list[Verdict]]:
        """Remember what is done."""
        if keys:
            store: dict[caching.Key, Verdict] = {}
            for key, verdicts in zip(keys, done, strict=True):
                if key is None:
                    continue
                if len(verdicts) == 1:
                    store[key] = verdicts[0]
                elif all(verdict.graded for verdict in verdicts):
                    store.update((_member(key, place), verdict) for place, verdict in enumerate(verdicts))
            self._store(store)
        return done

    def _forget(self, keys: Sequence[caching.Key | None]) -> None:
        """Work that has ended, or failed to, is under way no longer."""
        with self._lock:
            for key in keys:
                self._flights.pop(key, None)

    # -- cache ----------------------------------------------------------------------------------------------------

    def _key(self, scorer: Scorer, views: Sequence[View], priors: Sequence[Prior]) -> caching.Key | None:
        """The key of one unit of work; None when it cannot have one, and so is neither looked up nor remembered."""
        try:
            return self._digest(scorer, views, priors)
        except Exception:
            log.warning("no cache key can be made for some input of %s", scorer.name, exc_info=True)
            return None

    def _digest(self, scorer: Scorer, views: Sequence[View], priors: Sequence[Prior]) -> caching.Key:
        stamp = scorer.stamp.digest
        salted = type(scorer).salt is not Scorer.salt
        keys = [
            caching.digest(stamp, view.values, scorer.salt(view) if salted else "", priors[i] if priors else None)
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

    def _known_groups(self, keys: Sequence[caching.Key | None], works: Sequence[Work]) -> list[list[Verdict] | None]:
        members = [
            [] if key is None else [_member(key, place) for place in range(len(work.views))]
            for key, work in zip(keys, works, strict=True)
        ]
        known = self._known([key for group in members for key in group])
        return [[known[k] for k in group] if group and all(k in known for k in group) else None for group in members]

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
