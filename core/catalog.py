"""The recipes that a process offers by name, and what kind of work each rollout is under them.

This is all that a network may ask for: a name that is not here is refused, whatever it looks like.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache

from . import recipe as recipes
from . import registry
from .errors import PinError, RecipeError, RewardenError, UnknownScorerError
from .recipe import Follow, Part, Recipe, Route
from .rollout import Rollout
from .scorer import Resource, Unit


class Catalog:
    """Recipes by name: those built in, the scorers that are installed, and a local user's own under their aliases.

    `recipes`: alias to recipe. Whoever makes the catalog is local, so these may name code; a request may only name
    the alias. `only`: the kinds of work that are done here; none means all. A recipe that does none of them is not
    offered.
    """

    def __init__(self, recipes: Mapping[str, Recipe] | None = None, *, only: Collection[str] = ()) -> None:
        self._own = dict(recipes or {})
        self.only = frozenset(only)
        for alias in self._own:
            if not alias.replace("_", "").replace("-", "").isalnum():
                raise RecipeError(f"a recipe cannot be offered as {alias!r}; use letters, digits, '-' and '_'")
        if self.only:
            known = frozenset().union(*map(self._kinds_or_none, self._all()))
            if unknown := self.only - known:
                raise RecipeError(
                    f"no scorer does work of the kind {', '.join(sorted(unknown))}; known: {', '.join(sorted(known))}"
                )

    def names(self) -> list[str]:
        """The recipes on offer."""
        return [name for name in self._all() if not self.only or self.only & self._kinds_or_none(name)]

    def recipe(self, name: str) -> Recipe:
        """The recipe of that name, or of `name@version`.

        Raises UnknownScorerError for a name that is not on offer, and PinError when another version is here.
        """
        base, _, pinned = name.partition("@")
        if base not in self._all():
            raise UnknownScorerError(f"no recipe is called {base[:100]!r} here; on offer: {', '.join(self.names())}")
        found = self._recipe(base)
        if self.only and not self.only & self.kinds(base):
            raise UnknownScorerError(f"{base!r} is not on offer here; on offer: {', '.join(self.names())}")
        if pinned and pinned != (here := self.version(base)):
            raise PinError(f"{base!r} is pinned to version {pinned[:100]!r}, but version {here!r} is here")
        return found

    def version(self, name: str) -> str:
        """What `name@version` pins: the version of the scorer where the recipe is one scorer, else of the recipe."""
        recipe = self._recipe(name)
        if name not in self._own and len(recipe.routes) == 1 and recipe.routes[0].parts[0].scorer == name:
            return registry.version(name)
        return recipe.version

    def is_local(self, name: str) -> bool:
        """Whether the recipe is a local user's own, which may name code."""
        return name.partition("@")[0] in self._own

    def kinds(self, name: str) -> frozenset[str]:
        """All kinds of work under a recipe."""
        return frozenset(self._route_kinds(name))

    def parts(self, name: str) -> list[Part]:
        """The parts of a recipe that are done here."""
        recipe = self.recipe(name)
        steps: list[Route | Follow] = [*recipe.routes, *recipe.then]
        if self.only:
            steps = [step for kind in self.kinds(name) & self.only for step in self._steps(name, kind)]
        return [part for step in steps for part in step.parts]

    def grouped(self, name: str, kind: str) -> bool:
        """Whether verdicts on work of this kind may depend on other rollouts than their own."""
        local = self.is_local(name)
        return any(
            (isinstance(step, Follow) and step.on == "group")
            or any(registry.unit(part.scorer, local=local) is not Unit.ROLLOUT for part in step.parts)
            for step in self._steps(name, kind)
        )

    def resource(self, name: str, kind: str) -> Resource:
        """The scarcest resource that work of this kind needs."""
        local = self.is_local(name)
        return registry.resource(recipes.most_demanding(self._steps(name, kind), local=local), local=local)

    def split_by_scorer(self, name: str, rollouts: Sequence[Rollout]) -> dict[str, list[int]]:
        """The rows under each recipe: `name`, or what a rollout's own `scorer` says, unless the recipe routes by that.

        Names are as they were asked for, and may be unknown.
        """
        if all(rollout.scorer is None for rollout in rollouts):
            return {name: list(range(len(rollouts)))}
        recipe = self.recipe(name)
        routed = any(condition.field == "scorer" for route in recipe.routes for condition in route.when)
        rows: dict[str, list[int]] = {}
        for i, rollout in enumerate(rollouts):
            rows.setdefault(name if routed or rollout.scorer is None else rollout.scorer, []).append(i)
        return rows

    def split_by_kind(self, name: str, rollouts: Sequence[Rollout]) -> dict[str | None, list[int]]:
        """The rows of each kind of work; None for those that no route takes."""
        recipe = self.recipe(name)
        kinds = self._route_kinds(name)
        if recipe.joint or not recipe.routes[0].when:
            return {kinds[0]: list(range(len(rollouts)))}
        rows: dict[str | None, list[int]] = {}
        for i, rollout in enumerate(rollouts):
            number = recipe.route_of(rollout)
            rows.setdefault(None if number is None else kinds[number], []).append(i)
        return rows

    def _recipe(self, name: str) -> Recipe:
        base = name.partition("@")[0]
        return self._own.get(base) or _builtin(base)

    def _steps(self, name: str, kind: str) -> list[Route | Follow]:
        """The routes of this kind, and what follows them."""
        recipe = self._recipe(name)
        routes = zip(recipe.routes, self._route_kinds(name), strict=True)
        return [*(route for route, its in routes if its == kind), *recipe.then]

    def _route_kinds(self, name: str) -> list[str]:
        return recipes.kinds(self._recipe(name), local=self.is_local(name))

    def _all(self) -> list[str]:
        return sorted({*self._own, *recipes.builtin_names()})

    def _kinds_or_none(self, name: str) -> frozenset[str]:
        try:
            return self.kinds(name)
        except RewardenError:  # somebody's scorer that cannot be imported must not hide the others
            return frozenset()


@lru_cache(maxsize=1024)
def _builtin(name: str) -> Recipe:
    return recipes.load(name)
