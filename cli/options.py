"""What several commands read from their options in the same way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..core.recipe import Recipe


def pairs(given: Sequence[str], option: str, form: str) -> dict[str, str]:
    """`NAME=VALUE` of an option that may be given several times. `form` is how it is written."""
    from ..core.errors import ServiceError

    found: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not name or not equals or not value:
            raise ServiceError(f"{option} {text}: give {form}")
        if name in found:
            raise ServiceError(f"{option} {name} is given twice")
        found[name] = value
    return found


def recipes_of(given: Sequence[str]) -> dict[str, Recipe]:
    """A local user's own recipes by the alias that others name.

    Raises RecipeError for one that cannot be used here, before anybody is told that it is on offer.
    """
    from ..core.errors import RecipeError
    from ..core.recipe import builtin_names, check, load

    recipes = {alias: load(place, local=True) for alias, place in pairs(given, "--recipe", "ALIAS=FILE").items()}
    for alias, recipe in recipes.items():
        if alias in builtin_names():
            raise RecipeError(f"--recipe {alias}: that is a built-in recipe or scorer; offer yours under another name")
        faults = check(recipe, local=True)
        if faults:
            raise RecipeError(f"--recipe {alias}: {faults[0]} (`rewarden recipe check` lists all faults)")
    return recipes
