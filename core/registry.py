"""Scorers by name: built in, registered in this process, or found through the entry points `rewarden.scorers`.

Names that come over the network are looked up here and nowhere else. A *local* user may also name a place,
`package.module:Attribute` or `path/to/file.py:Attribute`; `create` accepts those only with `local=True`.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from .errors import RecipeError, UnknownScorerError
from .extras import missing
from .scorer import Resource, Scorer, Unit, check_protocol

GROUP = "rewarden.scorers"

BUILTIN: dict[str, str] = {
    "math": "rewarden.verifiers.math.scorer:MathScorer",
    "choice": "rewarden.verifiers.choice:ChoiceScorer",
    "exact": "rewarden.verifiers.text:ExactScorer",
    "text": "rewarden.verifiers.text:TextScorer",
    "number": "rewarden.verifiers.number:NumberScorer",
    "json_schema": "rewarden.verifiers.json_schema:JsonSchemaScorer",
    "majority": "rewarden.reward_models.pseudo_labels.majority:MajorityScorer",
}
"""Name to place. Text, so that nothing is imported before it is used."""

Factory = Callable[..., Scorer]
_registered: dict[str, Scorer | Factory] = {}


def register(scorer: Scorer | type[Scorer]) -> None:
    """Make a scorer (an object, or a class that takes its configuration) known under its `name` in this process.

    A later registration of the same name replaces an earlier one, so that a notebook cell can be run again; a
    built-in name is refused.
    """
    if isinstance(scorer, Scorer):
        check_protocol(scorer)
    if scorer.name in BUILTIN:
        raise RecipeError(f"{scorer.name!r} is a built-in scorer; register yours under another name")
    if not scorer.name:
        raise RecipeError(f"{scorer!r} has no `name` to register it under")
    _registered[scorer.name] = scorer


def names() -> list[str]:
    """All names that `create` knows."""
    return sorted({*BUILTIN, *_registered, *_entry_points()})


def create(name: str, config: Mapping[str, Any] | None = None, *, local: bool = False) -> Scorer:
    """The scorer `name` (or `name@version`, refused when another version is installed) with this configuration.

    Raises UnknownScorerError, or RecipeError when the configuration does not fit.
    """
    config = dict(config or {})
    base, _, pinned = name.partition("@")
    if ":" in name:
        base = name
    found = _find(name, local=local)
    if isinstance(found, Scorer):
        if config:
            raise RecipeError(f"scorer {base!r} takes no configuration, but {sorted(config)} was given")
        scorer = found
    else:
        try:
            scorer = found(**config)
        except (TypeError, ValueError) as error:
            raise RecipeError(f"scorer {base!r} cannot be configured with {config}: {error}") from error
    check_protocol(scorer)
    remedy = missing(scorer.libraries)
    if remedy:
        raise RecipeError(f"scorer {base!r} needs packages that are not installed: {remedy}")
    if pinned and ":" not in name and scorer.version != pinned:
        raise UnknownScorerError(f"{name!r} is pinned, but version {scorer.version!r} is installed")
    return scorer


def kind(name: str, *, local: bool = False) -> str:
    """The kind of work of a scorer, also where the packages that it needs are not installed.

    Raises UnknownScorerError, or RecipeError where its code cannot be imported.
    """
    found = _find(name, local=local)
    return getattr(found, "kind", "") or getattr(found, "name", "") or name.partition("@")[0]


def resource(name: str, *, local: bool = False) -> Resource:
    """What a scorer runs on; the same holds as for `kind`."""
    found = getattr(_find(name, local=local), "resource", Resource.INLINE)
    try:
        return Resource(found)
    except ValueError as error:
        raise RecipeError(f"scorer {name!r}: {error}") from None


def unit(name: str, *, local: bool = False) -> Unit:
    """How many rollouts a verdict of a scorer depends on; the same holds as for `kind`."""
    found = getattr(_find(name, local=local), "unit", Unit.ROLLOUT)
    try:
        return Unit(found)
    except ValueError as error:
        raise RecipeError(f"scorer {name!r}: {error}") from None


def version(name: str, *, local: bool = False) -> str:
    """The version of a scorer as it is installed; the same holds as for `kind`."""
    return getattr(_find(name, local=local), "version", "1")


def _find(name: str, *, local: bool) -> Scorer | Factory:
    """The scorer, or what makes it of a configuration."""
    found: Scorer | Factory
    base = name.partition("@")[0]
    if ":" in name:
        if not local:
            raise RecipeError(f"{name!r} names code, which only a local user's recipe may do; use a registered name")
        found = _load(name)
    elif base in _registered:
        found = _registered[base]
    elif base in BUILTIN:
        found = _load(BUILTIN[base])
    elif base in _entry_points():
        found = _load_entry_point(_entry_points()[base])
    else:
        raise UnknownScorerError(f"no scorer is called {base!r}; known: {', '.join(names())}")
    return found


@cache
def _entry_points() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


def _load_entry_point(point: EntryPoint) -> Any:
    try:
        return point.load()
    except (Exception, SystemExit) as error:
        raise RecipeError(f"the scorer {point.name!r} of an installed package cannot be imported: {error}") from error


def _load(place: str) -> Any:
    """What `module:attribute` or `file.py:attribute` names."""
    where, _, attribute = place.rpartition(":")
    try:
        module = _load_file(Path(where)) if where.endswith(".py") else import_module(_absolute(where))
    except RecipeError:
        raise
    except (Exception, SystemExit) as error:
        raise RecipeError(f"cannot import {where!r} for scorer {place!r}: {error}") from error
    try:
        return getattr(module, attribute)
    except AttributeError:
        raise RecipeError(f"{where!r} has no attribute {attribute!r}") from None


def _absolute(module: str) -> str:
    # The package is called `rewarden`, but a checkout may be imported under another name.
    root = __name__.rpartition(".core.")[0]
    return module.replace("rewarden.", f"{root}.", 1) if module.startswith("rewarden.") else module


def _load_file(path: Path) -> Any:
    """A file as a module, importable by its stem so that workers can unpickle what it defines."""
    path = path.resolve()
    if not path.is_file():
        raise RecipeError(f"there is no file {path}")
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    loaded = sys.modules.get(path.stem)
    if loaded is not None and getattr(loaded, "__file__", None) == str(path):
        return loaded
    if loaded is not None or _origin(path.stem) not in (None, path):
        raise RecipeError(f"{path.name} hides another module called {path.stem!r}; rename the file")
    return import_module(path.stem)


def _origin(name: str) -> Path | None:
    spec = importlib.util.find_spec(name)
    return Path(spec.origin).resolve() if spec is not None and spec.origin else None
