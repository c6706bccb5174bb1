"""The engine: one verdict for each rollout, in order, whatever a scorer or a worker does."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from typing import Any

import own_scorers
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewarden import Engine, Outcome, PoolError, Reason, Recipe, Rollout, Verdict
from rewarden.core import engine as engine_module
from rewarden.core.cache import MemoryCache, SqliteCache, digest
from rewarden.core.recipe import Part, Route


def rollouts(*completions: str, **fields: Any) -> list[Rollout]:
    """Rollouts with these completions, numbered."""
    return [Rollout(id=str(i), completion=completion, **fields) for i, completion in enumerate(completions)]


def rewards(verdicts: list[Verdict]) -> list[float | None]:
    """The rewards alone."""
    return [verdict.reward for verdict in verdicts]


def recipe(scorer: type | str, **rest: Any) -> Recipe:
    """A recipe for one scorer, with more settings."""
    name = scorer if isinstance(scorer, str) else f"own_scorers:{scorer.__name__}"
    return Recipe.model_validate({"name": "test", "routes": [{"parts": [{"scorer": name}]}], **rest})


@pytest.mark.parametrize("scorer", ["Length", "Worker", "Remote", "Resident", "Boxed"])
def test_every_resource_gives_the_same_verdicts_in_order(scorer: str) -> None:
    """A verdict does not depend on where it is made, and verdicts come back in the order asked."""
    texts = ["x" * n for n in (3, 1, 4, 1, 5, 9, 2, 6)]
    with Engine(f"own_scorers:{scorer}", workers=2, cache=None) as engine:
        verdicts = engine.score(rollouts(*texts))
    assert rewards(verdicts) == [3, 1, 4, 1, 5, 9, 2, 6]
    assert [verdict.id for verdict in verdicts] == [str(i) for i in range(8)]
    assert {verdict.scorer.name for verdict in verdicts if verdict.scorer} == {getattr(own_scorers, scorer).name}


def test_no_rollouts_no_verdicts() -> None:
    """An empty request is answered, emptily."""
    with Engine("own_scorers:Worker") as engine:
        assert engine.score([]) == []


@pytest.mark.parametrize("cache", [None, "memory"])
def test_a_failing_row_is_ungraded_and_spares_the_others(cache: str | None) -> None:
    """What a scorer raises, or returns in place of a verdict, is the verdict of its row alone."""
    with Engine("own_scorers:Picky", cache=cache) as engine:
        verdicts = engine.score(rollouts("a", "raise", "bb", "rubbish", "none", "nan", "peek", "ccc", "object"))
    assert rewards(verdicts) == [1, None, 2, None, None, None, None, 3, None]
    assert {verdict.reason for verdict in verdicts if verdict.reward is None} == {Reason.SCORER_ERROR}
    assert "boom" in verdicts[1].explanation
    assert "reads" in verdicts[6].explanation


def test_pool_faults_stay_with_their_row() -> None:
    """Rows that spin, sleep, crash, exit or raise are ungraded with the true reason; the others are graded."""
    texts = ["ok" * i for i in range(1, 20)]
    bad = {2: "spin", 5: "sleep", 9: "segv", 13: "exit", 17: "raise"}
    for place, text in bad.items():
        texts[place] = text
    with Engine("own_scorers:Worker", workers=2, cache=None) as engine:
        verdicts = engine.score(rollouts(*texts))
    for i, verdict in enumerate(verdicts):
        if i not in bad:
            assert verdict.reward == len(texts[i])
    assert [verdicts[i].reason for i in bad] == [
        Reason.OVER_BUDGET,
        Reason.DEADLINE,
        Reason.WORKER_LOST,
        Reason.WORKER_LOST,
        Reason.SCORER_ERROR,
    ]


def test_a_scorer_may_blame_the_completion() -> None:
    """`on_fault` turns a fault of the pool into a graded verdict where the completion is to blame."""
    with Engine("own_scorers:Blaming", workers=1) as engine:
        verdict = engine.score(rollouts("spin"))[0]
    assert (verdict.outcome, verdict.reason, verdict.reward) == (Outcome.INCORRECT, Reason.TOO_COMPLEX, 0.0)


def test_quick_spares_the_pool() -> None:
    """What `quick` settles never reaches a worker, so no pool is started for it."""
    with Engine("own_scorers:Worker", cache=None) as engine:
        assert rewards(engine.score(rollouts("quick", "quick!"))) == [5, 6]
        assert engine.pool_stats is None


def test_async_scorers_are_bounded_and_cut_off() -> None:
    """At most `concurrency` calls are under way, and one that fails or never answers is ungraded alone."""
    own_scorers.Remote.most = 0
    texts = ["x" * n for n in range(1, 60)]
    texts[3], texts[7] = "sleep", "raise"
    with Engine("own_scorers:Remote", cache=None) as engine:
        verdicts = engine.score(rollouts(*texts))
    assert own_scorers.Remote.most <= own_scorers.Remote.concurrency
    assert verdicts[3].reason is Reason.DEADLINE
    assert verdicts[7].reason is Reason.SCORER_ERROR
    assert all(v.reward == len(t) for v, t in zip(verdicts, texts, strict=True) if t not in ("sleep", "raise"))


def test_a_running_event_loop_is_not_blocked() -> None:
    """`ascore` leaves the loop free while workers work."""

    async def main() -> int:
        ticks = 0
        with Engine("own_scorers:Worker", workers=1, cache=None) as engine:
            task = asyncio.create_task(engine.ascore(rollouts("sleep")))
            while not task.done():
                await asyncio.sleep(0.02)
                ticks += 1
            assert (await task)[0].reason is Reason.DEADLINE
        return ticks

    assert asyncio.run(main()) > 10


def test_one_engine_serves_many_threads() -> None:
    """Threads that share an engine get their own verdicts."""
    results: dict[int, list[float | None]] = {}
    with Engine("own_scorers:Worker", workers=2) as engine:

        def work(number: int) -> None:
            results[number] = rewards(engine.score(rollouts(*["y" * (number + 1)] * 50, "z" * number)))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert results == {number: [number + 1] * 50 + [number] for number in range(6)}


def test_threads_take_turns_in_what_is_scored_in_the_caller() -> None:
    """However many threads ask, one at a time keeps the interpreter busy: an event loop beside them has its turn."""
    own_scorers.Crowd.most = 0
    with Engine("own_scorers:Crowd") as engine:
        threads = [threading.Thread(target=engine.score, args=(rollouts(f"text {n}"),)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert own_scorers.Crowd.most == 1


@pytest.mark.parametrize("scorer", ["Remote", "Resident"])
def test_identical_work_is_done_once(scorer: str) -> None:
    """Duplicates in one request share one call, and later requests are answered by the cache."""
    own_scorers.Remote.calls = 0
    own_scorers.Resident.batches.clear()
    with Engine(f"own_scorers:{scorer}") as engine:
        graded = list(engine.stream(rollouts(*["same"] * 20, "other")))
        engine.score(rollouts("same", "other"))
    done = own_scorers.Remote.calls if scorer == "Remote" else sum(own_scorers.Resident.batches)
    assert done == 2
    assert [g.trace.cached for g in graded] == [False] + [True] * 19 + [False]
    assert [g.verdict.id for g in graded] == [str(i) for i in range(21)]


def test_one_flight_across_threads() -> None:
    """Two threads that ask for the same slow work at the same time cause one call."""
    own_scorers.Remote.calls = 0
    with Engine("own_scorers:Remote") as engine:
        threads = [threading.Thread(target=engine.score, args=(rollouts("together"),)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert own_scorers.Remote.calls == 1


def test_ungraded_verdicts_are_not_remembered() -> None:
    """What failed is tried again the next time."""
    own_scorers.Remote.calls = 0
    with Engine("own_scorers:Remote") as engine:
        for _ in range(3):
            assert engine.score(rollouts("raise"))[0].reward is None
    assert own_scorers.Remote.calls == 3


def test_a_configuration_is_part_of_the_key(tmp_path: Any) -> None:
    """Scorers that differ in configuration do not share cache entries, not even in one file."""
    for factor in (1.0, 2.0):
        made = recipe(own_scorers.Length)
        made = made.model_copy(
            update={"routes": [Route(parts=[Part(scorer="own_scorers:Length", config={"factor": factor})])]}
        )
        with Engine(made, cache=tmp_path / "cache.db") as engine:
            assert rewards(engine.score(rollouts("abc"))) == [3 * factor]


def test_a_broken_cache_costs_no_verdict() -> None:
    """Reading and writing the cache may fail (a full disk); grading goes on."""

    class Broken(MemoryCache):
        def get_many(self, keys: Any) -> Any:
            raise OSError("no space left")

        def put_many(self, verdicts: Any) -> None:
            raise OSError("no space left")

    with Engine("own_scorers:Length", cache=Broken()) as engine:
        assert rewards(engine.score(rollouts("a", "a", "bb"))) == [1, 1, 2]


def test_sqlite_cache_outlives_the_process(tmp_path: Any) -> None:
    """A second engine on the same file does no work again, and gives equal verdicts."""
    own_scorers.Remote.calls = 0
    seen = []
    for _ in range(2):
        with Engine("own_scorers:Remote", cache=SqliteCache(tmp_path / "c.db")) as engine:
            seen.append(engine.score(rollouts("a", "bb")))
    assert own_scorers.Remote.calls == 2
    assert seen[0] == seen[1]


def grouped(*members: tuple[str, str], size: int | None = None) -> list[Rollout]:
    """Rollouts from (group, completion)."""
    return [Rollout(id=str(i), group=g, completion=c, group_size=size) for i, (g, c) in enumerate(members)]


@pytest.mark.parametrize("scorer", ["Rank", "PooledRank"])
def test_groups_are_whole_however_interleaved(scorer: str) -> None:
    """A group scorer sees each group once, whole and in order, and verdicts still come back in input order."""
    own_scorers.Rank.sizes.clear()
    mixed = grouped(("a", "x"), ("b", "xx"), ("a", "xxx"), ("c", "x"), ("b", "x"), ("a", "xx"), ("c", "xx"))
    with Engine(f"own_scorers:{scorer}", workers=1, cache=None) as engine:
        verdicts = engine.score(mixed)
    assert rewards(verdicts) == [0, 1, 1, 0, 0, 0.5, 1]
    if scorer == "Rank":
        assert sorted(own_scorers.Rank.sizes) == [2, 2, 3]


def test_groups_are_cached_whole() -> None:
    """A repeated group is not scored again; the same members in another order are another group."""
    own_scorers.Rank.sizes.clear()
    with Engine("own_scorers:Rank") as engine:
        for members in ([("a", "x"), ("a", "xx")], [("b", "x"), ("b", "xx")], [("a", "xx"), ("a", "x")]):
            engine.score(grouped(*members))
    assert own_scorers.Rank.sizes == [2, 2]


def test_a_complete_group_does_not_wait_for_the_end() -> None:
    """A stream yields the verdicts of a group whose `group_size` members have come, before the input ends."""
    fed: list[int] = []

    def feed() -> Iterator[Rollout]:
        for number in range(20_000):
            fed.append(number)
            yield Rollout(completion="x" * (number % 4 + 1), group=str(number // 4), group_size=4)

    with Engine("own_scorers:Rank", cache=None) as engine:
        first = next(iter(engine.stream(feed())))
    assert first.verdict.reward == 0
    assert len(fed) < 10_000


def test_incomplete_groups_follow_the_policy() -> None:
    """Members that never come: scored as far as they came, or ungraded with the reason; by the recipe."""
    half = grouped(("a", "x"), ("a", "xx"), size=3)
    with Engine(recipe(own_scorers.Rank)) as engine:
        assert rewards(engine.score(half)) == [0, 1]
    with Engine(recipe(own_scorers.Rank, limits={"incomplete_groups": "ungraded"})) as engine:
        verdicts = engine.score([*half, *grouped(("b", "x"), ("b", "x"), ("b", "xx"), size=3)])
    assert [verdict.reason for verdict in verdicts] == [Reason.INCOMPLETE_GROUP] * 2 + [None] * 3


def test_a_batch_scorer_sees_everything_at_once() -> None:
    """Unit `batch`: shares over the whole input add up to one."""
    many = rollouts(*["x" * (i % 7 + 1) for i in range(3000)])
    with Engine("own_scorers:Share") as engine:
        assert sum(v.reward or 0 for v in engine.score(many)) == pytest.approx(1)


def test_a_chain_hands_on_what_was_said_before() -> None:
    """`then` scorers get earlier verdicts as `prior`, replace the verdict, and only where the condition holds."""
    chained = recipe(
        own_scorers.Length,
        then=[
            {
                "when": [{"field": "verdict.reward", "op": "ge", "value": 2}],
                "parts": [{"scorer": "own_scorers:Bonus", "config": {"on": "Length"}}],
            },
            {
                "when": [{"field": "verdict.reward", "op": "eq", "value": 4}],
                "parts": [{"scorer": "own_scorers:Bonus", "name": "again", "config": {"on": "Bonus"}}],
            },
        ],
    )
    with Engine(chained) as engine:
        assert rewards(engine.score(rollouts("a", "bb", "ccc"))) == [1, 3, 5]


def test_groups_without_signal_go_on() -> None:
    """`on = "group"` follow-ups take whole groups, chosen by facts about the group."""
    tied = recipe(
        own_scorers.Length,
        then=[
            {
                "on": "group",
                "when": [{"field": "group.no_signal", "op": "eq", "value": True}],
                "parts": [{"scorer": "own_scorers:Rank"}],
            }
        ],
    )
    with Engine(tied) as engine:
        verdicts = engine.score(grouped(("a", "xx"), ("b", "x"), ("a", "xx"), ("b", "xxx")))
    assert rewards(verdicts) == [0, 1, 0, 3]
    assert [verdict.scorer.name for verdict in verdicts if verdict.scorer] == ["rank", "length", "rank", "length"]


def test_routes_send_each_rollout_to_its_scorer() -> None:
    """The first route whose conditions all hold takes a rollout; one that none takes is ungraded, not 0."""
    routed = Recipe.model_validate(
        {
            "name": "routed",
            "routes": [
                {
                    "when": [{"field": "data_source", "op": "eq", "value": "a"}],
                    "parts": [{"scorer": "own_scorers:Length"}],
                },
                {
                    "when": [{"field": "metadata.level", "op": "gt", "value": 3}],
                    "parts": [{"scorer": "own_scorers:Rank"}],
                },
            ],
        }
    )
    asked = [
        Rollout(completion="xx", data_source="a"),
        Rollout(completion="x", metadata={"level": 5}),
        Rollout(completion="x", metadata={"level": "high"}),
        Rollout(completion="xxx", data_source="a", metadata={"level": 9}),
    ]
    with Engine(routed) as engine:
        verdicts = engine.score(asked)
    assert rewards(verdicts) == [2, 0, None, 3]
    assert verdicts[2].reason is Reason.NO_ROUTE


@settings(max_examples=25)
@given(
    groups=st.lists(st.integers(0, 6), max_size=60),
    chunk=st.integers(1, 20),
    ahead=st.integers(0, 3),
    in_order=st.booleans(),
)
def test_chunking_never_shows(groups: list[int], chunk: int, ahead: int, in_order: bool) -> None:
    """Sizes of chunks and pipelines change no verdict and no order, for rows and for groups."""
    members = [(str(g), "x" * (i % 5 + 1)) for i, g in enumerate(sorted(groups) if in_order else groups)]
    asked = grouped(*members)
    expected = {}
    for scorer in ("Length", "Rank"):
        with Engine(f"own_scorers:{scorer}", cache=None) as engine:
            expected[scorer] = engine.score(asked)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(engine_module, "CHUNK", chunk)
                patch.setattr(engine_module, "AHEAD", ahead)
                assert [graded.verdict for graded in engine.stream(iter(asked))] == expected[scorer]
    assert len(expected["Rank"]) == len(asked)


def test_rows_that_need_no_group_do_not_wait_for_one() -> None:
    """In a recipe with a group route, rollouts of the other routes leave at once."""
    mixed = Recipe.model_validate(
        {
            "name": "mixed",
            "routes": [
                {"when": [{"field": "reference", "op": "missing"}], "parts": [{"scorer": "own_scorers:Rank"}]},
                {"parts": [{"scorer": "own_scorers:Length"}]},
            ],
        }
    )
    fed: list[int] = []

    def feed() -> Iterator[Rollout]:
        for number in range(20_000):
            fed.append(number)
            yield Rollout(completion="xx", reference="r", group="one")

    with Engine(mixed, cache=None) as engine:
        assert next(iter(engine.stream(feed()))).verdict.reward == 2
    assert len(fed) < 10_000


def test_slow_scorers_get_small_steps() -> None:
    """A stream over a slow scorer yields its first verdict long before a thousand rollouts are read."""
    fed: list[int] = []

    def feed() -> Iterator[Rollout]:
        for number in range(2_000):
            fed.append(number)
            yield Rollout(completion=f"{number}")

    with Engine("own_scorers:Slow", cache=None) as engine:
        stream = engine.stream(feed())
        for _ in range(400):
            next(stream)
    assert len(fed) < 1_600


@pytest.mark.parametrize("scorer", ["Remote", "Boxed", "Worker"])
def test_closing_cancels_what_is_under_way(scorer: str) -> None:
    """`close` from another thread ends a call at once, with verdicts that say so; afterwards work is refused."""
    engine = Engine(f"own_scorers:{scorer}", workers=1, cache=None)
    asked = rollouts(*["sleep"] * 200)
    results: list[Verdict] = []
    thread = threading.Thread(target=lambda: results.extend(engine.score(asked)))
    thread.start()
    threading.Event().wait(0.3)
    engine.close()
    thread.join(20)
    assert not thread.is_alive()
    assert len(results) == 200
    assert {v.reason for v in results if v.reward is None} <= {Reason.CANCELLED, Reason.DEADLINE}
    assert any(v.reason is Reason.CANCELLED for v in results)
    with pytest.raises(PoolError, match="closed"):
        engine.score(rollouts("a"))


def test_rows_that_can_have_no_key_are_scored_all_the_same() -> None:
    """A field that no cache key can be made of costs its row the cache, nothing else."""
    deep: Any = 1
    for _ in range(3000):
        deep = [deep]
    odd = [Rollout(completion="x", reference=r) for r in (10**5000, 10**5000 + 1, deep, {1: "a"}, {"1": "a"}, "plain")]
    with Engine("own_scorers:ReferenceKind") as engine:
        for _ in range(2):
            assert [v.explanation for v in engine.score(odd)] == ["int", "int", "list", "dict", "dict", "str"]
    assert digest("s", [10**5000]) != digest("s", [10**5000 + 1])
    assert digest("s", [{1: "a"}]) != digest("s", [{"1": "a"}])


@pytest.mark.parametrize("completion", ["exit", "text", "generator"])
def test_what_is_raised_may_be_anything(completion: str) -> None:
    """SystemExit, a broken `__str__` and their like are their row's fault and nobody else's."""
    with Engine("own_scorers:Wild", cache=None) as engine:
        verdicts = engine.score(rollouts("a", completion, "b"))
    assert [v.reason for v in verdicts] == [None, Reason.SCORER_ERROR, None]


def test_what_is_ungraded_is_not_graded_by_the_back_door() -> None:
    """A follow-up leaves ungraded rows alone unless it says otherwise, and never fills refused groups."""
    then = {"on": "group", "parts": [{"scorer": "own_scorers:Rank"}]}
    members = grouped(("a", "x"), ("a", "raise"), ("a", "xxx"), ("b", "raise"), ("b", "raise"))
    with Engine(recipe("own_scorers:Picky", then=[then])) as engine:
        assert rewards(engine.score(members)) == [0, None, 1, None, None]
    no_signal = {**then, "when": [{"field": "group.no_signal", "op": "eq", "value": True}]}
    with Engine(recipe("own_scorers:Picky", then=[no_signal])) as engine:
        assert rewards(engine.score(members)) == [1, None, 3, None, None]
    with Engine(recipe("own_scorers:Picky", then=[{**then, "ungraded": True}])) as engine:
        assert None not in rewards(engine.score(members))
    refused = recipe("own_scorers:Picky", then=[{**then, "ungraded": True}], limits={"incomplete_groups": "ungraded"})
    with Engine(refused) as engine:
        verdicts = engine.score(grouped(("a", "x"), ("a", "xx"), size=3))
    assert [v.reason for v in verdicts] == [Reason.INCOMPLETE_GROUP] * 2


def test_a_follow_up_keeps_what_was_said_before() -> None:
    """Earlier rewards are components of the final verdict, and earlier evidence is in it."""
    then = [{"parts": [{"scorer": "own_scorers:Bonus", "config": {"on": "Length"}}]}]
    with Engine(recipe(own_scorers.Length, then=then)) as engine:
        verdict = engine.score(rollouts("abc"))[0]
    assert verdict.reward == 4
    assert verdict.components == {"Length": 3.0}
    assert verdict.evidence == {"earlier": {"Length": {"outcome": "scored", "reason": None, "evidence": None}}}


@pytest.mark.parametrize("given", [Rollout(completion="x"), {"completion": "x"}, "x", [{"completion": "x"}], [None]])
def test_what_is_no_list_of_rollouts_is_refused_in_words(given: Any) -> None:
    """A mistake in Python is answered with what to give instead."""
    with Engine("own_scorers:Length") as engine, pytest.raises(TypeError, match="rollout"):
        engine.score(given)
    with pytest.raises(ValueError, match="workers"):
        Engine("own_scorers:Length", workers=0)


def test_a_subclass_does_not_get_its_parents_verdicts() -> None:
    """Two classes that share name and version share no cache entry."""
    both = Recipe.model_validate(
        {
            "name": "both",
            "routes": [{"parts": [{"scorer": "own_scorers:Length"}, {"scorer": "own_scorers:Half", "name": "half"}]}],
        }
    )
    with Engine(both) as engine:
        assert engine.score(rollouts("abc"))[0].components == {"Length": 3.0, "half": 0.5}


@pytest.mark.parametrize("completion", ["exit", "interrupt", "cancelled", "stubborn"])
def test_nothing_that_an_async_scorer_does_ends_the_loop(completion: str) -> None:
    """Exits, interrupts and refused cancellations are that row's, and others are graded."""
    with Engine("own_scorers:WildRemote", cache=None) as engine:
        verdicts = engine.score(rollouts("a", completion, "b"))
        assert [v.graded for v in verdicts] == [True, False, True]
        assert engine.score(rollouts("c"))[0].reward == 1


def test_a_careless_scorer_is_called_all_the_same() -> None:
    """What `quick` and `budget` return wrongly is ignored; `score` decides."""
    with Engine("own_scorers:Careless", workers=1, cache=None) as engine:
        assert rewards(engine.score(rollouts("a", "bb"))) == [1, 2]


def test_warming_is_not_charged_to_an_item() -> None:
    """`warm` may take longer than the budget of one item."""
    with Engine("own_scorers:SlowToWarm", workers=1, cache=None) as engine:
        assert rewards(engine.score(rollouts("a", "bb"))) == [1, 2]


@pytest.mark.parametrize("scorer", ["Length", "Worker", "Remote", "Resident"])
def test_a_forked_child_is_told_to_make_an_engine_of_its_own(scorer: str) -> None:
    """After a fork, the parent's engine refuses in the child, at once, and goes on in the parent."""
    with Engine(f"own_scorers:{scorer}", workers=1, cache=None) as engine:
        engine.score(rollouts("a"))
        child = os.fork()
        if child == 0:
            code = 1
            try:
                engine.score(rollouts("a"))
            except PoolError as error:
                code = 0 if "make one in each process" in str(error) else 2
            engine.close()
            os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert rewards(engine.score(rollouts("bb"))) == [2]


def test_a_huge_payload_is_its_own_rows_fault() -> None:
    """A rollout that no worker could take is ungraded, and its neighbours are graded."""
    small = recipe(own_scorers.Worker, limits={"worker_memory_mb": 128})
    with Engine(small, workers=1, cache=None) as engine:
        verdicts = engine.score(rollouts("a", "x" * (40 << 20), "b"))
    assert [v.reason for v in verdicts] == [None, Reason.SCORER_ERROR, None]


def test_large_rows_make_small_steps() -> None:
    """What is begun ahead is bounded by characters, not only by rows."""
    fed: list[int] = []

    def feed() -> Iterator[Rollout]:
        for number in range(200):
            fed.append(number)
            yield Rollout(completion="x" * (1 << 20))

    with Engine("own_scorers:Length", cache=None) as engine:
        next(engine.stream(feed()))
    assert len(fed) < 100


def test_rewards_that_overflow_are_not_written() -> None:
    """A scale or weights that leave the finite numbers leave the row ungraded."""
    huge = Recipe.model_validate(
        {"name": "huge", "routes": [{"parts": [{"scorer": "own_scorers:Length"}], "scale": 1e308}]}
    )
    with Engine(huge) as engine:
        assert rewards(engine.score(rollouts("a", "x" * 100))) == [1e308, None]
