"""Engines for all recipes of a catalog, made when first asked for, on one set of workers and one cache."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from . import cache as caching
from . import registry
from .catalog import Catalog
from .engine import Engine
from .errors import PoolError, RewardenError
from .pool import PoolStats
from .reasons import Reason
from .recipe import Recipe
from .resources import Resources
from .rollout import Rollout
from .verdict import Graded, Trace, ungraded

log = logging.getLogger(__name__)


class Engines:
    """Scores under any recipe of `catalog`, from any thread. `workers` and `cache` are those of an Engine."""

    def __init__(
        self,
        catalog: Catalog,
        *,
        workers: int | None = None,
        cache: caching.Cache | str | Path | None = "memory",
    ) -> None:
        self.catalog = catalog
        self._workers = workers
        self._own_cache: caching.SqliteCache | None = None
        if cache == "memory":
            cache = caching.MemoryCache()
        elif isinstance(cache, (str, Path)):
            self._own_cache = cache = caching.SqliteCache(cache)
        self._cache = cache
        self._lock = threading.Lock()
        self._engines: dict[str, Engine] = {}
        self._resources: dict[int, Resources] = {}
        """By memory of a worker, since recipes may ask for more than is usual."""
        self._closed = False

    def get(self, name: str) -> Engine:
        """The engine for a recipe. Raises as `Catalog.recipe` does, and RecipeError where a scorer cannot be made."""
        recipe = self.catalog.recipe(name)
        base = name.partition("@")[0]
        with self._lock:
            if self._closed:
                raise PoolError("these engines are closed; make new ones, or close them later")
            engine = self._engines.get(base)
            if engine is None:
                engine = self._engines[base] = Engine(
                    recipe,
                    cache=self._cache,
                    local=self.catalog.is_local(base),
                    only=self.catalog.only,
                    resources=self._resources_for(recipe),
                )
        return engine

    def score(self, name: str, rollouts: Sequence[Rollout]) -> list[Graded]:
        """One verdict for each rollout, in order. A rollout's own `scorer` chooses its recipe.

        Raises as `get` does for `name`; a fault in the recipe that a rollout chose is that rollout's verdict.
        """
        self.get(name)
        parts = self.catalog.split_by_scorer(name, rollouts)
        if len(parts) == 1 and name in parts:
            return list(self.get(name).stream(rollouts))
        graded: list[Graded | None] = [None] * len(rollouts)
        for recipe, rows in parts.items():
            some = [rollouts[i] for i in rows]
            for i, one in zip(rows, self._score_part(recipe, some), strict=True):
                graded[i] = one
        return [one for one in graded if one is not None]

    def _score_part(self, name: str, rollouts: Sequence[Rollout]) -> list[Graded]:
        try:
            engine = self.get(name)
        except PoolError:
            raise
        except RewardenError as error:
            return [Graded(ungraded(Reason.NO_ROUTE, str(error), id=r.id), Trace()) for r in rollouts]
        return list(engine.stream(rollouts))

    @property
    def pool_stats(self) -> list[PoolStats]:
        """Counters of the worker pools that have been needed."""
        with self._lock:
            return [resources.pool.stats for resources in self._resources.values() if resources.pool is not None]

    def warm(self, names: Sequence[str] = ()) -> None:
        """Make the engines for these recipes, or for all, and start what they run on.

        A recipe that cannot be made here is left for the request that asks for it.
        """
        for name in names or self.catalog.names():
            try:
                self.get(name).warm()
            except RewardenError as error:
                log.info("the recipe %s cannot be served: %s", name, error)

    def close(self) -> None:
        """Stop all workers. Work under way comes back as `ungraded: cancelled`."""
        with self._lock:
            self._closed = True
            for resources in self._resources.values():
                resources.close()
            if self._own_cache is not None:
                self._own_cache.close()

    def _resources_for(self, recipe: Recipe) -> Resources:
        memory_mb = recipe.limits.worker_memory_mb
        if memory_mb not in self._resources:
            self._resources[memory_mb] = Resources(workers=self._workers, preload=self._preload(), memory_mb=memory_mb)
        return self._resources[memory_mb]

    def _preload(self) -> list[str]:
        """What workers import once, for all work that is done here."""
        modules: set[str] = set()
        for name in self.catalog.names():
            for part in self.catalog.parts(name):
                with suppress(RewardenError):
                    scorer = registry.create(part.scorer, part.config, local=self.catalog.is_local(name))
                    modules.update(scorer.preload)
        return sorted(modules)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
