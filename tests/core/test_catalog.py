"""The catalog: what is on offer by name, and what kind of work each rollout is."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from typing import Any

import own_scorers
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewarden import Engine, Reason, Recipe, RecipeError, Rollout, Scorer, ScorerError, UnknownScorerError, Verdict
from rewarden.core import recipe as recipes
from rewarden.core import registry
from rewarden.core.catalog import Catalog
from rewarden.core.errors import PinError
from rewarden.core.recipe import Follow, Part, Route
from rewarden.core.scorer import Resource, Unit, check_protocol

HOSTILE = [
    "",
    "@",
    "@1",
    "nobody",
    "os:system",
    "own_scorers:Length",
    "math:",
    ":",
    "/etc/passwd",
    "../core/recipes/auto",
    "auto.toml",
    "./auto",
    "file.py:Scorer",
    "http://127.0.0.1:1/x",
    "rewarden.verifiers.math",
    "math\0",
    "math\n",
    " math",
    "MATH",
    "mаth",
    "\ud800",
    "a" * 300,
    "x" * 1_000_000,
    "{0.__class__}",
    "%s%n",
]


def route(scorer: str, *more: str, when: str | None = None) -> Route:
    """A route to these scorers, for rollouts of one data source."""
    conditions = [] if when is None else [{"field": "data_source", "op": "eq", "value": when}]
    return Route.model_validate({"when": conditions, "parts": [{"scorer": name} for name in (scorer, *more)]})


def own(*routes: Route, **rest: Any) -> Recipe:
    """A recipe of these routes."""
    return Recipe(name="mine", routes=list(routes), **rest)


SEVERAL = own(
    route("exact", when="exact"),
    route("own_scorers:Length", when="length"),
    route("exact", "own_scorers:Resident", when="both"),
    route("own_scorers:Rank", when="rank"),
)
SOURCES = st.sampled_from(["exact", "length", "both", "rank", "none", None])
ROLLOUTS = st.lists(
    st.builds(Rollout, completion=st.text(max_size=3), reference=st.just("a"), data_source=SOURCES), max_size=12
)


# -- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_that_is_not_on_offer_is_refused(name: str) -> None:
    """Paths, places of code, addresses and rubbish are unknown, in one short line, and nothing is imported or read."""
    catalog = Catalog({"mine": SEVERAL})
    before = set(sys.modules)
    for ask in (catalog.recipe, lambda name: catalog.split_by_kind(name, [Rollout(completion="")])):
        with pytest.raises(UnknownScorerError) as caught:
            ask(name)
        assert len(str(caught.value)) < 1000
    with pytest.raises(RecipeError) as refused:
        recipes.load(name)
    assert len(str(refused.value)) < 1000
    assert set(sys.modules) == before


@given(st.text())
def test_no_text_but_a_name_on_offer_is_a_recipe(text: str) -> None:
    """Whatever is asked for is on offer, or unknown."""
    catalog = Catalog()
    try:
        catalog.recipe(text)
    except (UnknownScorerError, PinError):
        return
    assert text.partition("@")[0] in catalog.names()


def test_a_local_recipe_is_offered_under_its_alias_only() -> None:
    """The alias is a name; the code that the recipe names is not."""
    catalog = Catalog({"mine": SEVERAL, "math": own(route("exact"))})
    assert catalog.recipe("mine") is SEVERAL
    assert catalog.is_local("mine")
    assert not catalog.is_local("auto")
    assert catalog.recipe("math").routes[0].parts[0].scorer == "exact"
    assert {"mine", "math", "auto"} <= set(catalog.names())


@pytest.mark.parametrize("alias", ["", "a b", "a:b", "a@1", "a/b", "a.toml", "..", "a\0", "-", "_"])
def test_an_alias_is_a_plain_name(alias: str) -> None:
    """Nothing that looks like a pin, a place or a path."""
    with pytest.raises(RecipeError, match="letters"):
        Catalog({alias: SEVERAL})


def test_pins() -> None:
    """`name@version` is refused when another version is here; a recipe's version is pinned like a scorer's."""
    catalog = Catalog({"mine": own(route("exact"), version="7")})
    version = registry.create("exact").version
    assert catalog.version("exact") == version
    assert catalog.recipe(f"exact@{version}") == catalog.recipe("exact")
    assert catalog.recipe("mine@7").version == "7"
    for name in ("exact@0", "mine@8", "auto@999", "mine@7@8"):
        with pytest.raises(PinError, match="pinned"):
            catalog.recipe(name)


def test_somebodys_broken_scorer_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package whose scorer cannot be imported, or makes no sense, is an error of that name alone."""
    points = {
        "gone": EntryPoint("gone", "no_such_module_anywhere:Scorer", registry.GROUP),
        "bare": EntryPoint("bare", "own_scorers:Nobody", registry.GROUP),
        "odd": EntryPoint("odd", "own_scorers:Odd", registry.GROUP),
    }
    monkeypatch.setattr(registry, "_entry_points", lambda: points)
    monkeypatch.setattr(own_scorers, "Odd", type("Odd", (own_scorers.Length,), {"resource": "fpga"}), raising=False)
    catalog = Catalog(only=["math"])
    assert "math" in catalog.names()
    assert not set(points) & set(catalog.names())
    for name in points:
        with pytest.raises(RecipeError, match=name):
            Catalog().split_by_kind(name, [Rollout(completion="")])


# -- kinds ------------------------------------------------------------------------------------------------------------


def test_the_kind_of_a_scorer() -> None:
    """Its `kind`, or its own name; known without making it, and with a pin; the same from a class and an object."""
    assert registry.kind("exact") == (registry.create("exact").kind or "exact")
    assert registry.kind("exact@1") == registry.kind("exact")
    assert registry.kind("own_scorers:Length", local=True) == "length"
    with pytest.raises(RecipeError):
        registry.kind("own_scorers:Length")
    with pytest.raises(UnknownScorerError):
        registry.kind("nobody")
    assert registry.resource("own_scorers:Resident", local=True) is Resource.GPU
    assert registry.unit("own_scorers:Rank", local=True) is Unit.GROUP
    assert registry.version("own_scorers:Rank", local=True) == "1"


def test_a_registered_scorer_may_change_its_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """A later registration of the same name is the one that counts."""
    monkeypatch.setattr(registry, "_registered", {})
    for kind in ("first", "second"):
        made: Scorer = type("Mine", (own_scorers.Length,), {"name": "mine", "kind": kind})()
        registry.register(made)
        assert Catalog().kinds("mine") == {kind}


@pytest.mark.parametrize("kind", ["two words", "a:b", "a/b", "{x}", "*"])
def test_a_kind_is_a_plain_name(kind: str) -> None:
    """It becomes the name of a queue and of a label."""
    made: Scorer = type("Made", (own_scorers.Length,), {"kind": kind})()
    with pytest.raises(ScorerError, match="kind"):
        check_protocol(made)


def test_the_most_demanding_part_is_the_kind() -> None:
    """Work is done where its scarcest machine is; the first of several that need the same."""
    catalog = Catalog(
        {
            "gpu": own(route("own_scorers:Worker", "own_scorers:Resident", "own_scorers:Remote")),
            "first": own(route("own_scorers:Length", "own_scorers:Picky")),
            "boxed": own(route("own_scorers:Worker", "own_scorers:Boxed")),
        }
    )
    assert catalog.kinds("gpu") == {"resident"}
    assert catalog.resource("gpu", "resident") is Resource.GPU
    assert catalog.kinds("first") == {"length"}
    assert catalog.kinds("boxed") == {"boxed_program"}
    assert catalog.resource("boxed", "boxed_program") is Resource.SANDBOX


@pytest.mark.parametrize(
    "rest",
    [{"then": [Follow(parts=[Part(scorer="own_scorers:Bonus")])]}, {"limits": {"incomplete_groups": "ungraded"}}],
)
@given(rollouts=ROLLOUTS)
def test_a_recipe_that_looks_across_routes_is_one_kind(rest: dict[str, Any], rollouts: list[Rollout]) -> None:
    """Its rows stay together, those that no route takes too, because `then` may still grade them."""
    catalog = Catalog({"mine": own(*SEVERAL.routes, **rest)})
    assert catalog.kinds("mine") == {"resident"}
    assert catalog.split_by_kind("mine", rollouts) == {"resident": list(range(len(rollouts)))}
    assert catalog.grouped("mine", "resident")


def test_grouped_is_of_a_kind() -> None:
    """Only the work whose verdicts depend on others is kept together."""
    catalog = Catalog({"mine": SEVERAL})
    assert catalog.grouped("mine", "rank")
    assert not catalog.grouped("mine", "length")


@given(ROLLOUTS)
def test_every_row_is_of_one_kind(rollouts: list[Rollout]) -> None:
    """The kind of a row is that of the route that takes it, and None where there is none."""
    catalog = Catalog({"mine": SEVERAL})
    rows = catalog.split_by_kind("mine", rollouts)
    assert sorted(row for some in rows.values() for row in some) == list(range(len(rollouts)))
    kinds = {"exact": registry.kind("exact"), "length": "length", "both": "resident", "rank": "rank"}
    for kind, some in rows.items():
        assert some == sorted(some)
        assert all(kinds.get(rollouts[row].data_source or "") == kind for row in some)


@given(st.lists(st.builds(Rollout, completion=st.just(""), scorer=st.sampled_from([None, "exact", "os:system", ""]))))
def test_every_row_is_under_one_recipe(rollouts: list[Rollout]) -> None:
    """A rollout's own `scorer` chooses, known or not, unless the recipe itself routes by it."""
    routed = own(Route.model_validate({"when": [{"field": "scorer", "op": "exists"}], "parts": [{"scorer": "exact"}]}))
    catalog = Catalog({"mine": SEVERAL, "routed": routed})
    rows = catalog.split_by_scorer("mine", rollouts)
    assert sorted(row for some in rows.values() for row in some) == list(range(len(rollouts)))
    for name, some in rows.items():
        assert all(rollouts[row].scorer == (None if name == "mine" else name) for row in some)
    assert catalog.split_by_scorer("routed", rollouts) == {"routed": list(range(len(rollouts)))} or not rollouts


# -- only some kinds --------------------------------------------------------------------------------------------------


def test_only_some_kinds_are_offered() -> None:
    """A recipe that does none of them is unknown, and an unknown kind is a mistake of whoever starts the service."""
    catalog = Catalog({"mine": SEVERAL}, only=["length"])
    assert catalog.names() == ["mine"]
    assert [part.scorer for part in catalog.parts("mine")] == ["own_scorers:Length"]
    with pytest.raises(UnknownScorerError, match="not on offer"):
        catalog.recipe("math")
    with pytest.raises(RecipeError, match=r"kind maths; known: .*math"):
        Catalog(only=["maths"])


FOLLOWS = [
    {},
    {"then": [Follow(parts=[Part(scorer="own_scorers:Bonus", config={"on": "Length"})], ungraded=True)]},
    {"limits": {"incomplete_groups": "ungraded"}},
]


@pytest.mark.parametrize("rest", FOLLOWS)
@pytest.mark.parametrize("only", [["length"], ["rank"], ["resident"], ["length", "resident"], ["nothing"]])
def test_with_only_a_row_gets_its_own_verdict_or_none(rest: dict[str, Any], only: list[str]) -> None:
    """The same verdict as without, exactly where its kind is done here, else `no_route`: never another route's."""
    recipe = own(*SEVERAL.routes, **rest)
    rollouts = [
        Rollout(id=f"{i}", completion="a" * i, reference="aa", data_source=source, group="g", group_size=99)
        for i, source in enumerate(["exact", "length", "both", "rank", "none", None, "rank", "length", "both"])
    ]
    kinds = Catalog({"mine": recipe}).split_by_kind("mine", rollouts)
    with Engine(recipe, cache=None) as engine:
        whole = engine.score(rollouts)
    with Engine(recipe, cache=None, only=only) as engine:
        some: list[Verdict] = engine.score(rollouts)
    for kind, rows in kinds.items():
        for row in rows:
            if kind in only:
                assert some[row] == whole[row]
            else:
                assert (some[row].reward, some[row].reason) == (None, Reason.NO_ROUTE)


def test_the_parts_of_a_batch_of_one_kind_are_all_done_by_who_does_that_kind() -> None:
    """A route of several kinds is wholly the work of its most demanding one."""
    with Engine(SEVERAL, only=["resident"]) as engine:
        (verdict,) = engine.score([Rollout(completion="aa", reference="aa", data_source="both")])
    assert verdict.components == {"exact": 1.0, "Resident": 2.0}
