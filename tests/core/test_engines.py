"""Engines: any recipe of a catalog on one set of workers."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import own_scorers
import pytest

from rewarden import Engine, PoolError, Reason, Recipe, Rollout, UnknownScorerError
from rewarden.core import registry
from rewarden.core.catalog import Catalog
from rewarden.core.engines import Engines
from rewarden.core.errors import PinError


def recipe(scorer: str, **rest: Any) -> Recipe:
    """A recipe that sends everything to one scorer of ours."""
    part = {"scorer": f"own_scorers:{scorer}"}
    return Recipe.model_validate({"name": scorer, "routes": [{"parts": [part]}], **rest})


def rollouts(*completions: str, **fields: Any) -> list[Rollout]:
    """Rollouts with these completions, numbered."""
    return [Rollout(id=str(i), completion=text, **fields) for i, text in enumerate(completions)]


def test_the_same_verdicts_as_engines_of_ones_own() -> None:
    """Sharing workers and a cache changes no verdict, stamp or order."""
    own = {
        "worker": recipe("Worker"),
        "rank": recipe("PooledRank"),
        "remote": recipe("Remote"),
        "gpu": recipe("Resident"),
    }
    texts = rollouts("aaa", "b", "cc", "raise", reference="cc", group="g")
    with Engines(Catalog(own), workers=2) as engines:
        for name in (*own, "exact", "math"):
            for _ in range(2):
                shared = [graded.verdict for graded in engines.score(name, texts)]
            with Engine(own.get(name, name), workers=1, cache=None) as alone:
                assert shared == alone.score(texts)


def test_one_pool_for_all_recipes() -> None:
    """Recipes share workers, but those that ask for more memory."""
    own = {"one": recipe("Worker"), "two": recipe("Blaming"), "big": recipe("Worker", limits={"worker_memory_mb": 600})}
    with Engines(Catalog(own), workers=2, cache=None) as engines:
        assert engines.pool_stats == []
        pids = {name: {graded.verdict.reward for graded in engines.score(name, rollouts(*["pid"] * 8))} for name in own}
        assert len(pids["one"] | pids["two"]) <= 2
        assert not pids["one"] & pids["big"]
        assert [stats.spawned for stats in engines.pool_stats] == [2, 2]


def test_an_engine_is_made_once_also_for_pins_and_threads() -> None:
    """Whoever asks, under whichever pin, gets the same engine."""
    version = registry.create("exact").version
    with Engines(Catalog({"mine": recipe("Worker")}), workers=1) as engines:
        found: list[Engine] = []
        names = ["exact", f"exact@{version}"] * 4
        threads = [
            threading.Thread(target=lambda name: found.append(engines.get(name)), args=(name,)) for name in names
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert len(found) == len(names)
        assert len(set(map(id, found))) == 1
        with pytest.raises(PinError):
            engines.get("exact@0")


def test_threads_get_their_own_verdicts() -> None:
    """Requests under several recipes at once do not mix."""
    own = {"worker": recipe("Worker"), "remote": recipe("Remote"), "length": recipe("Length")}
    results: dict[tuple[str, int], list[float | None]] = {}
    with Engines(Catalog(own), workers=2) as engines:

        def ask(name: str, first: int) -> None:
            some = rollouts(*("x" * n for n in range(first, first + 20)))
            results[name, first] = [graded.verdict.reward for graded in engines.score(name, some)]

        threads = [threading.Thread(target=ask, args=(name, first)) for name in own for first in (1, 11, 21)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert len(results) == 9
    for (_, first), rewards in results.items():
        assert rewards == list(range(first, first + 20))


def test_a_rollout_chooses_its_recipe() -> None:
    """Its own `scorer` counts, by name only; what is unknown or cannot be made is `no_route` of that row alone."""
    broken = Recipe.model_validate({"name": "b", "routes": [{"parts": [{"scorer": "exact", "config": {"colour": 1}}]}]})
    catalog = Catalog({"length": recipe("Length"), "worker": recipe("Worker"), "broken": broken})
    asked = [
        None,
        "worker",
        "nobody",
        "own_scorers:Length",
        "broken",
        "length@1",
        "length@2",
        "/etc/passwd",
        None,
        "a\0",
    ]
    some = [Rollout(id=str(i), completion="x" * (i + 1), scorer=scorer) for i, scorer in enumerate(asked)]
    with Engines(catalog, workers=1) as engines:
        verdicts = [graded.verdict for graded in engines.score("length", some)]
        assert [verdict.id for verdict in verdicts] == [rollout.id for rollout in some]
        assert [verdict.reward for verdict in verdicts] == [1, 2, None, None, None, 6, None, None, 9, None]
        assert {verdict.reason for verdict in verdicts if verdict.reward is None} == {Reason.NO_ROUTE}
        assert verdicts[1].scorer is not None
        assert verdicts[1].scorer.name == "worker"


def test_a_request_for_what_is_not_here_is_an_error() -> None:
    """The recipe that a request names is its own affair: nothing is graded under another."""
    with Engines(Catalog(), cache=None) as engines:
        for name in ("nobody", "own_scorers:Length", "exact.toml", ""):
            with pytest.raises(UnknownScorerError):
                engines.score(name, rollouts("a", scorer="exact"))


def test_only_some_kinds_are_done() -> None:
    """Engines of some kinds leave the rows of others ungraded."""
    with Engines(Catalog(only=["text"]), workers=1) as engines:
        some = [Rollout(completion="B", reference="B"), Rollout(completion="4", reference="4")]
        verdicts = [graded.verdict for graded in engines.score("auto", some)]
        assert [verdict.reward for verdict in verdicts] == [1.0, None]
        assert verdicts[1].reason is Reason.NO_ROUTE
        with pytest.raises(UnknownScorerError):
            engines.get("math")


def test_warming_leaves_what_cannot_be_made() -> None:
    """All recipes are made ready, and one that cannot be does not stop the others."""
    broken = Recipe.model_validate({"name": "b", "routes": [{"parts": [{"scorer": "exact", "config": {"colour": 1}}]}]})
    with Engines(Catalog({"broken": broken, "worker": recipe("Worker")}), workers=1) as engines:
        engines.warm(["broken", "worker", "nobody"])
        assert len(engines.pool_stats) == 1


def test_the_cache_is_shared(tmp_path: Path) -> None:
    """What was graded under one recipe is known under another, and in a file also to the next process."""
    own = {"one": recipe("Remote"), "two": recipe("Remote")}
    for expected in (1, 0):
        before = own_scorers.Remote.calls
        with Engines(Catalog(own), cache=tmp_path / "cache.sqlite") as engines:
            for name in own:
                (graded,) = engines.score(name, rollouts("abc"))
                assert graded.verdict.reward == 3
        assert own_scorers.Remote.calls - before == expected


def test_closed_engines_refuse_work() -> None:
    """Before the first work as after it, and no worker is started that nobody would stop."""
    for used in (True, False):
        engines = Engines(Catalog({"worker": recipe("Worker"), "length": recipe("Length")}), workers=1)
        if used:
            engines.score("worker", rollouts("a"))
        engines.close()
        engines.close()
        for name in ("worker", "length", "exact"):
            with pytest.raises(PoolError, match="closed"):
                engines.score(name, rollouts("a"))


def test_work_under_way_is_cancelled_by_the_end() -> None:
    """Closing answers whoever waits: no verdict, and no hang."""
    engines = Engines(Catalog({"remote": recipe("Remote", limits={"wall_s": 60})}), cache=None)
    results: list[Any] = []
    before = own_scorers.Remote.calls
    thread = threading.Thread(target=lambda: results.extend(engines.score("remote", rollouts("sleep"))))
    thread.start()
    for _ in range(1000):
        if own_scorers.Remote.calls > before:
            break
        thread.join(0.01)
    engines.close()
    thread.join(30)
    assert not thread.is_alive()
    assert [graded.verdict.reason for graded in results] == [Reason.CANCELLED]


def test_shared_resources_outlive_an_engine() -> None:
    """An engine that was given its workers leaves them to whoever made them."""
    with Engines(Catalog({"worker": recipe("Worker"), "blaming": recipe("Blaming")}), workers=1, cache=None) as engines:
        engines.get("worker").close()
        (graded,) = engines.score("blaming", rollouts("abc"))
        assert graded.verdict.reward == 3
