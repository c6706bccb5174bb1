"""Recipes: data that routes and combines, harmless whoever wrote it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewarden import Outcome, Reason, Recipe, RecipeError, Rollout, UnknownScorerError, Verdict, scored, ungraded
from rewarden.core import recipe as recipes
from rewarden.core import registry
from rewarden.core.combine import combine
from rewarden.core.recipe import Condition, Part, Route

PART = 'parts = [{scorer = "own_scorers:Length"}]'


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "name"),
        ("name = ", "not TOML"),
        ('name = "x"', "routes"),
        (f'name = "x"\ncolour = 1\n[[routes]]\n{PART}', "colour"),
        ('name = "x"\n[[routes]]\nparts = []', "parts"),
        ('name = "x"\n[[routes]]\nparts = [{scorer = "a"}, {scorer = "a"}]', "called"),
        ('name = "x"\n[[routes]]\nparts = [{scorer = "a", weight = -1}]', "weight"),
        ('name = "x"\n[[routes]]\nparts = [{scorer = "a", gate = 1.0}]', "gate"),
        (f'name = "x"\n[[routes]]\nwhen = [{{field = "colour", op = "eq", value = 1}}]\n{PART}', "colour"),
        (f'name = "x"\n[[routes]]\nwhen = [{{field = "id", op = "matches", value = "("}}]\n{PART}', "op"),
        (f'name = "x"\n[[routes]]\nwhen = [{{field = "id", op = "in", value = "abc"}}]\n{PART}', "list"),
        (f'name = "x"\n[[routes]]\n{PART}\n[limits]\ncpu_s = -1', "cpu_s"),
        ('name = "x"\n[[routes]]\nparts = [{scorer = "a"}, {scorer = "b", gate = nan}]', "gate"),
        (f'name = "x"\n[[routes]]\nwhen = [{{field = "verdict.reward", op = "eq", value = 1}}]\n{PART}', "routed"),
        (f'name = "x"\n[[routes]]\nwhen = [{{field = "id", op = "shape", value = "leter"}}]\n{PART}', "shape"),
        (
            f'name = "x"\n[[routes]]\n{PART}\n[[then]]\nwhen = [{{field = "group.mean", op = "missing"}}]\n{PART}',
            "on = 'group'",
        ),
        (
            f'name = "x"\n[[routes]]\n{PART}\n[[then]]\nwhen = [{{field = "verdict.colour", op = "exists"}}]\n{PART}',
            "colour",
        ),
    ],
)
def test_a_bad_recipe_says_what_is_wrong_where(text: str, complaint: str) -> None:
    """One line that names the source and the place."""
    with pytest.raises(RecipeError, match=complaint) as caught:
        Recipe.from_toml(text, source="mine.toml")
    assert "mine.toml" in str(caught.value)


@pytest.mark.parametrize("name", ["own_scorers:Length", "/tmp/evil.py:Scorer", "os:system"])
def test_only_a_local_user_names_code(name: str, tmp_path: Any) -> None:
    """Places of code and files are refused from elsewhere, by name lookups and by recipe loading."""
    with pytest.raises(RecipeError):
        registry.create(name)
    with pytest.raises(RecipeError):
        recipes.load(name)
    path = tmp_path / "r.toml"
    path.write_text(f'name = "x"\n[[routes]]\n{PART}')
    with pytest.raises(RecipeError):
        recipes.load(str(path))
    assert recipes.load(path, local=True).name == "x"


def test_a_scorer_in_a_file_of_ones_own(tmp_path: Any) -> None:
    """A local user may name `file.py:Class`; a missing file or class is explained."""
    (tmp_path / "my_very_own.py").write_text(
        "from own_scorers import Length\n\n\nclass Mine(Length):\n    name = 'mine'\n"
    )
    assert registry.create(f"{tmp_path}/my_very_own.py:Mine", {"factor": 2.0}, local=True).name == "mine"
    with pytest.raises(RecipeError, match="Missing"):
        registry.create(f"{tmp_path}/my_very_own.py:Missing", local=True)
    with pytest.raises(RecipeError, match="no file"):
        registry.create(f"{tmp_path}/nowhere.py:Mine", local=True)
    (tmp_path / "json.py").write_text("")
    with pytest.raises(RecipeError, match="rename"):
        registry.create(f"{tmp_path}/json.py:Mine", local=True)


def test_files_of_scorers_are_found_beside_the_recipe(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A recipe names a file by its place beside it, wherever the command is run."""
    (tmp_path / "beside_recipe.py").write_text("from own_scorers import Length as Own\n")
    (tmp_path / "r.toml").write_text('name = "x"\n[[routes]]\nparts = [{scorer = "beside_recipe.py:Own"}]')
    monkeypatch.chdir("/")
    assert recipes.check(recipes.load(tmp_path / "r.toml", local=True), local=True) == []


def test_names_that_nobody_knows_are_answered_with_those_that_are_known() -> None:
    """An error about a name lists the names."""
    with pytest.raises(UnknownScorerError, match="math"):
        registry.create("maths")
    with pytest.raises(RecipeError, match="math"):
        recipes.load("maths")


def test_a_pinned_version_must_be_installed() -> None:
    """`scorer@version` is refused when another version answers."""
    version = registry.create("exact").version
    assert registry.create(f"exact@{version}").name == "exact"
    with pytest.raises(UnknownScorerError, match="pinned"):
        registry.create("exact@0.0.0-other")


def test_configuration_that_does_not_fit_is_explained() -> None:
    """A wrong keyword names the scorer."""
    with pytest.raises(RecipeError, match="exact"):
        registry.create("exact", {"no_such_option": 1})


@pytest.mark.parametrize("name", recipes.builtin_names())
def test_builtin_recipes_are_sound(name: str) -> None:
    """Every built-in recipe loads and names scorers that exist."""
    assert recipes.check(recipes.load(name)) == []


def test_check_finds_every_fault() -> None:
    """`check` reports unknown scorers, bad configurations and unreachable routes, all at once."""
    bad = Recipe.model_validate(
        {
            "name": "bad",
            "routes": [{"parts": [{"scorer": "nobody"}]}, {"parts": [{"scorer": "exact", "config": {"zzz": 1}}]}],
            "then": [{"parts": [{"scorer": "missing.module:X"}]}],
        }
    )
    faults = recipes.check(bad, local=True)
    assert len(faults) == 4
    assert ["routes[0]" in faults[0], "routes[1]" in faults[1], "then[0]" in faults[2]] == [True] * 3


@pytest.mark.parametrize(
    ("op", "value", "holds", "fails"),
    [
        ("eq", 3, [3], [4, None, "3"]),
        ("ne", 3, [4, None], [3]),
        ("in", ["a", "b"], ["a"], ["c", None]),
        ("not_in", ["a"], ["b", None], ["a"]),
        ("lt", 3, [2], [3, None, "2"]),
        ("le", 3, [3], [4, None]),
        ("gt", 3, [4], [3, None, []]),
        ("ge", 3, [3], [2, None]),
        ("exists", None, [0, "", []], [None]),
        ("missing", None, [None], [0]),
        ("shape", "letter", ["C"], ["c", "K", "CD", None]),
        ("shape", ["number", "list"], [3, "-1,000.5", [1]], ["x", {}, True]),
        ("shape", "object", [{}], ["{}", None]),
    ],
)
def test_operators(op: Any, value: Any, holds: list[Any], fails: list[Any]) -> None:
    """Each operator holds and fails where its name says; what cannot be compared fails without raising."""
    condition = Condition(field="reference", op=op, value=value)
    assert [condition.holds(v) for v in holds] == [True] * len(holds)
    assert [condition.holds(v) for v in fails] == [False] * len(fails)


def test_lookup_goes_into_objects() -> None:
    """Dotted paths reach into fields, and end in None where nothing is."""
    rollout = Rollout(completion="x", metadata={"a": {"b": 3}}, reference={"schema": {}})
    assert recipes.lookup(rollout, "metadata.a.b") == 3
    assert recipes.lookup(rollout, "metadata.a.c.d") is None
    assert recipes.lookup(rollout, "reference.schema") == {}


def test_the_digest_is_of_all_that_it_says() -> None:
    """Equal recipes have equal digests, and any change changes it."""
    base = Recipe.of("exact")
    assert base.digest == Recipe.of("exact").digest
    assert base.digest != Recipe.of("exact", extract=False).digest
    assert base.digest != base.model_copy(update={"version": "2"}).digest


def step(*parts: Part, **rest: Any) -> Route:
    """A route of these parts."""
    return Route(parts=list(parts), **rest)


rewards = st.floats(-5, 5)


@given(st.lists(st.tuples(st.floats(0.1, 9), rewards), min_size=2, max_size=5))
def test_the_mean_is_weighted(parts: list[tuple[float, float]]) -> None:
    """Several parts give the weighted mean of their rewards, and each reward as a component."""
    route = step(*(Part(scorer=f"s{i}", weight=w) for i, (w, _) in enumerate(parts)))
    whole = combine(route, [scored(r) for _, r in parts])
    assert whole.reward == pytest.approx(sum(w * r for w, r in parts) / sum(w for w, _ in parts))
    assert whole.components == {f"s{i}": r for i, (_, r) in enumerate(parts)}


@given(rewards, rewards)
def test_an_ungraded_part_is_never_a_zero(a: float, b: float) -> None:
    """Required: the whole is ungraded. Optional: the mean is that of the others. As a gate: ungraded."""
    lost = ungraded(Reason.DEADLINE, "late")
    needed = step(Part(scorer="a"), Part(scorer="b"), Part(scorer="c"))
    assert combine(needed, [scored(a), scored(b), lost]).reward is None
    optional = step(Part(scorer="a"), Part(scorer="b"), Part(scorer="c", required=False, weight=7))
    assert combine(optional, [scored(a), scored(b), lost]).reward == pytest.approx((a + b) / 2)
    gated = step(Part(scorer="a"), Part(scorer="g", gate=0.5, required=False))
    assert combine(gated, [scored(a), lost]).reason is Reason.DEADLINE
    nothing = step(Part(scorer="a", required=False), Part(scorer="b", required=False))
    assert combine(nothing, [lost, lost]).reward is None


def test_a_gate_stops_and_has_no_weight() -> None:
    """Below its threshold the reward is 0, from it on the gate does not count."""
    route = step(Part(scorer="a"), Part(scorer="g", gate=0.5))
    assert combine(route, [scored(0.8), scored(0.4)]).reward == 0.0
    assert combine(route, [scored(0.8), scored(0.4)]).outcome is Outcome.INCORRECT
    assert combine(route, [scored(0.8), scored(0.5)]).reward == 0.8


@given(rewards, rewards, rewards)
def test_scale_and_offset_leave_ungraded_alone(reward: float, scale: float, offset: float) -> None:
    """Graded rewards are scaled, a missing one stays missing, and the rest of the verdict stays."""
    route = step(Part(scorer="a"), scale=scale, offset=offset)
    before = Verdict(Outcome.INCORRECT, reward, Reason.TOO_LARGE, evidence={"a": 1})
    after = combine(route, [before])
    assert after.reward == pytest.approx(reward * scale + offset)
    assert (after.outcome, after.reason, after.evidence) == (before.outcome, before.reason, before.evidence)
    assert combine(route, [ungraded(Reason.DEADLINE, "late")]).reward is None
