"""The recipes that a process offers by name, and what kind of work each rollout is under them.

This is all that a network may ask for: a name that is not here is refused, whatever it looks like.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache

from . import recipe as recipes
from . import registry
from .errors import PinError, RecipeError, RewardenError, UnknownScorerError
from .recipe import Follow, Recipe, Route
from .rollout import Rollout
from .scorer import Resource, Unit

_DEMAND = {Resource.INLINE: 0, Resource.CPU: 1, Resource.SANDBOX: 2, Resource.IO: 3, Resource.GPU: 4}
"""Of several parts, the one that needs the scarcest machine says where the work is done."""


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
        unknown = self.only - {kind for name in self._all() for kind in self._kinds_or_none(name)}
        if unknown:
            known = sorted({kind for name in self._all() for kind in self._kinds_or_none(name)})
            raise RecipeError(
                f"no scorer does work of the kind {', '.join(sorted(unknown))}; known: {', '.join(known)}"
            )

    def names(self) -> list[str]:
        """The recipes on offer."""
        return [name for name in self._all() if not self.only or self.only & self._kinds_or_none(name)]

    def recipe(self, name: str) -> Recipe:
        """The recipe of that name, or of `name@version`.

        Raises UnknownScorerError for a name that is not on offer, and PinError when another version is here.
        """
        base, _, pinned = name.partition("@")
        if base not in self._own and (base not in self._all() or ":" in base):
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
        recipe = self._recipe(name)
        return frozenset(self._kind(name, [route]) for route in recipe.routes)

    def kind_of(self, name: str, rollout: Rollout) -> str | None:
        """The kind of work that a rollout is under a recipe; None when no route takes it."""
        recipe = self._recipe(name)
        if recipe.then:
            # What follows looks at the verdicts of several routes, so the whole recipe is done in one place.
            return self._kind(name, recipe.routes)
        for route in recipe.routes:
            if all(condition.holds(recipes.lookup(rollout, condition.field)) for condition in route.when):
                return self._kind(name, [route])
        return None

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
        parts = (part for step in self._steps(name, kind) for part in step.parts)
        found = (registry.resource(part.scorer, local=local) for part in parts)
        return max(found, key=_DEMAND.__getitem__, default=Resource.INLINE)

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
        base = name.partition("@")[0]
        recipe = self.recipe(name)
        if recipe.then or all(not route.when for route in recipe.routes):
            return {self.kind_of(base, Rollout(completion="")): list(range(len(rollouts)))}
        rows: dict[str | None, list[int]] = {}
        for i, rollout in enumerate(rollouts):
            rows.setdefault(self.kind_of(base, rollout), []).append(i)
        return rows

    def _recipe(self, name: str) -> Recipe:
        base = name.partition("@")[0]
        return self._own.get(base) or _builtin(base)

    def _steps(self, name: str, kind: str) -> list[Route | Follow]:
        """The routes of this kind, and what follows them."""
        recipe = self._recipe(name)
        if recipe.then:
            return [*recipe.routes, *recipe.then]
        return [route for route in recipe.routes if self._kind(name, [route]) == kind]

    def _all(self) -> list[str]:
        return sorted({*self._own, *recipes.builtin_names()})

    def _kinds_or_none(self, name: str) -> frozenset[str]:
        try:
            return self.kinds(name)
        except (RewardenError, ImportError):  # somebody's scorer that cannot be imported must not hide the others
            return frozenset()

    def _kind(self, name: str, routes: Iterable[Route]) -> str:
        steps: list[Route | Follow] = [*routes, *self._recipe(name).then]
        return _most_demanding(tuple(part.scorer for step in steps for part in step.parts), self.is_local(name))


@lru_cache(maxsize=1024)
def _most_demanding(scorers: tuple[str, ...], local: bool) -> str:
    """The kind of the part that needs the scarcest machine; the first of several."""
    chosen = max(scorers, key=lambda scorer: _DEMAND[registry.resource(scorer, local=local)])
    return registry.kind(chosen, local=local)


@lru_cache(maxsize=1024)
def _builtin(name: str) -> Recipe:
    return recipes.load(name)
