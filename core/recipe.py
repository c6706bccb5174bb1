"""Which scorer a rollout goes to, how several are combined, and what follows.

A recipe is data: TOML or these objects. Predicates are field, operator and value, never evaluated text, so that a
recipe from a stranger can do no harm; only a local user's recipe may name files and dotted paths as scorers.

    name = "math-then-majority"

    [[routes]]                       # the first route whose `when` all hold takes the rollout
    when  = [{field = "reference", op = "exists"}]
    parts = [{scorer = "math"}]

    [[routes]]
    parts = [{scorer = "majority"}]

    [[then]]                         # applied to the verdicts, in order
    on    = "group"
    when  = [{field = "group.no_signal", op = "eq", value = true}]
    parts = [{scorer = "my_tie_break"}]
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from . import registry
from .errors import RecipeError, UnknownScorerError
from .extraction import reference_letter
from .rollout import FIELDS, Rollout, describe
from .scorer import Resource
from .verdict import Verdict


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


Operator = Literal["eq", "ne", "in", "not_in", "lt", "le", "gt", "ge", "exists", "missing", "shape"]


_SHAPES = frozenset({"letter", "number", "text", "object", "list", "missing"})
_FACTS = {"verdict": ("outcome", "reward", "reason"), "group": ("no_signal", "size", "mean", "ungraded")}


class Condition(_Strict):
    """`field op value`.

    An order (`lt`, `le`, `gt`, `ge`) does not hold for a missing field, or between types that have none; `ne` and
    `not_in` do hold for a missing field.
    """

    field: str
    """A rollout's field, with dots into objects (`metadata.level`); in `then` also `verdict.outcome`, `verdict.reward`,
    `verdict.reason`, and on groups `group.no_signal`, `group.size`, `group.mean`, `group.ungraded`."""
    op: Operator
    value: Any = None
    """A list for `in` and `not_in`; for `shape` one (or a list) of `letter`, `number`, `text`, `object`, `list`."""

    @model_validator(mode="after")
    def _check(self) -> Condition:
        if self.op in ("in", "not_in") and not isinstance(self.value, list):
            raise ValueError(f"operator {self.op!r} needs a list as its value")
        if self.op in ("exists", "missing") and self.value is not None:
            raise ValueError(f"operator {self.op!r} takes no value")
        if self.op == "shape" and not set(self._values()) <= _SHAPES:
            raise ValueError(f"a shape is one of {sorted(_SHAPES)}, not {self.value!r}")
        if self.facts is not None:
            known = _FACTS[self.facts]
            if self.field.partition(".")[2] not in known:
                raise ValueError(f"{self.field!r} is unknown; there are {[f'{self.facts}.{name}' for name in known]}")
        elif self.field.partition(".")[0] not in FIELDS:
            raise ValueError(f"unknown field {self.field!r}")
        return self

    def _values(self) -> list[Any]:
        return self.value if isinstance(self.value, list) else [self.value]

    @property
    def facts(self) -> str | None:
        """`verdict` or `group` when the condition is about what was graded, not about a field of the rollout."""
        root, dot, _ = self.field.partition(".")
        return root if root in _FACTS and (dot or root not in FIELDS) else None

    def holds(self, value: Any) -> bool:
        """Whether the condition holds for this value of the field (None when missing)."""
        match self.op:
            case "exists":
                return value is not None
            case "missing":
                return value is None
            case "eq":
                return bool(value == self.value)
            case "ne":
                return bool(value != self.value)
            case "in":
                return value in self.value
            case "not_in":
                return value not in self.value
            case "shape":
                return shape(value) in self._values()
        try:
            match self.op:
                case "lt":
                    return bool(value < self.value)
                case "le":
                    return bool(value <= self.value)
                case "gt":
                    return bool(value > self.value)
                case _:
                    return bool(value >= self.value)
        except TypeError:
            return False


def shape(reference: Any) -> str:
    """What a reference looks like: `letter` (`C`, `(C)`), `number`, `text`, `object`, `list` or `missing`."""
    if reference is None:
        return "missing"
    if isinstance(reference, Mapping):
        return "object"
    if isinstance(reference, (list, tuple)):
        return "list"
    if isinstance(reference, (int, float)) and not isinstance(reference, bool):
        return "number"
    text = str(reference).strip()
    if reference_letter(text) is not None:
        return "letter"
    return "number" if text.replace(",", "").lstrip("+-").replace(".", "", 1).isdecimal() else "text"


def lookup(source: Any, path: str) -> Any:
    """The value at a dotted path into a rollout, or None."""
    for name in path.split("."):
        if isinstance(source, Mapping):
            source = source.get(name)
        else:
            source = getattr(source, name, None) if isinstance(source, (BaseModel, Verdict)) else None
        if source is None:
            return None
    return source


class Part(_Strict):
    """One scorer with its weight."""

    scorer: str
    """A registered name, `name@version` to pin it, or (local recipes) `package.module:Attribute`."""
    name: str = ""
    """The name of its component; the scorer's when empty."""
    weight: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    required: bool = True
    """When it is ungraded, the whole is. An optional part that is ungraded leaves the mean, with its weight."""
    gate: float | None = Field(default=None, allow_inf_nan=False)
    """A reward below this makes the whole reward 0 (the gate itself has no weight). Gates are always required."""
    config: dict[str, Any] = Field(default_factory=dict)

    @property
    def label(self) -> str:
        return self.name or self.scorer.rpartition(":")[2].partition("@")[0]


class _Step(_Strict):
    parts: list[Part] = Field(min_length=1)
    scale: float = Field(default=1.0, allow_inf_nan=False)
    """The combined reward is multiplied by `scale`, then `offset` is added."""
    offset: float = Field(default=0.0, allow_inf_nan=False)

    @model_validator(mode="after")
    def _labels(self) -> _Step:
        labels = [part.label for part in self.parts]
        double = sorted({label for label in labels if labels.count(label) > 1})
        if double:
            raise ValueError(f"two parts are called {double}; give them a `name`")
        if all(part.gate is not None for part in self.parts):
            raise ValueError("a step of gates alone has no reward; add a part without `gate`")
        return self


class Route(_Step):
    """Takes the rollouts for which all of `when` holds; the reward is the weighted mean of its parts."""

    when: list[Condition] = Field(default_factory=list)

    @model_validator(mode="after")
    def _before_grading(self) -> Route:
        for condition in self.when:
            if condition.facts is not None:
                raise ValueError(f"{condition.field!r} is not known yet when rollouts are routed; use it in `then`")
        return self


class Follow(_Step):
    """Grades again what earlier steps have graded.

    Its scorers see the earlier verdicts as `prior`; its own replaces them, keeping their rewards as `components` and
    what they said as evidence `earlier`.
    """

    on: Literal["rollout", "group"] = "rollout"
    when: list[Condition] = Field(default_factory=list)
    ungraded: bool = False
    """Whether rows that are ungraded so far are graded again too. Otherwise they stay as they are, and a scorer of
    groups sees the graded members alone: else a broken reference would get a reward by the back door."""

    @model_validator(mode="after")
    def _about_groups(self) -> Follow:
        for condition in self.when:
            if self.on != "group" and condition.facts == "group":
                raise ValueError(f"{condition.field!r} is a fact about a group; set on = 'group'")
        return self


class Limits(_Strict):
    """What a run may use."""

    cpu_s: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """CPU seconds for each piece of pooled work; the scorer's own budget when absent."""
    wall_s: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Wall-clock deadline for each, from the start of its work."""
    worker_memory_mb: int = Field(default=512, ge=128)
    incomplete_groups: Literal["score", "ungraded"] = "score"
    """What to do when the input ends, or `group_wait_s` passes, with members of a group still missing."""
    group_wait_s: float | None = Field(default=None, gt=0)
    """Live streams: how long a group waits for its members. None waits until the end of the input."""


class Recipe(_Strict):
    """Routes, follow-ups and limits. The same recipe serves the file command, services, workers and the client."""

    name: str
    version: str = "1"
    description: str = ""
    routes: list[Route] = Field(min_length=1)
    then: list[Follow] = Field(default_factory=list)
    limits: Limits = Limits()

    @property
    def joint(self) -> bool:
        """Whether verdicts on one route depend on what came another's way, so that all is done in one place."""
        return bool(self.then) or self.limits.incomplete_groups == "ungraded"

    def route_of(self, rollout: Rollout) -> int | None:
        """The number of the first route whose conditions all hold."""
        for number, route in enumerate(self.routes):
            if all(condition.holds(lookup(rollout, condition.field)) for condition in route.when):
                return number
        return None

    @property
    def digest(self) -> str:
        """16 hex digits of all that it says."""
        text = orjson.dumps(self.model_dump(mode="json"), option=orjson.OPT_SORT_KEYS)
        return hashlib.blake2b(text, digest_size=8).hexdigest()

    @classmethod
    def from_toml(cls, text: str, source: str = "recipe", folder: Path | None = None) -> Recipe:
        """A recipe from TOML text; RecipeError names `source` and what is wrong where.

        Scorers in files (`file.py:Class`) are looked for in `folder`.
        """
        try:
            recipe = cls.model_validate(tomllib.loads(text))
            return recipe if folder is None else recipe.beside(folder)
        except tomllib.TOMLDecodeError as error:
            raise RecipeError(f"{source}: not TOML: {error}") from None
        except ValidationError as error:
            raise RecipeError(f"{source}: {describe(error)}") from None

    def beside(self, folder: Path) -> Recipe:
        """The same with the files of scorers found from `folder`."""

        def moved(step: Any) -> Any:
            parts = [
                part.model_copy(update={"scorer": str(folder / part.scorer)}) if ".py:" in part.scorer else part
                for part in step.parts
            ]
            return step.model_copy(update={"parts": parts})

        return self.model_copy(update={"routes": list(map(moved, self.routes)), "then": list(map(moved, self.then))})

    @classmethod
    def of(cls, scorer: str, **config: Any) -> Recipe:
        """The recipe that sends every rollout to one scorer."""
        return cls(name=scorer, routes=[Route(parts=[Part(scorer=scorer, config=config)])])


_HERE = Path(__file__).parent / "recipes"


def builtin_names() -> list[str]:
    """The recipes that `load` knows by name: one for each scorer, and the files in `core/recipes/`."""
    return sorted({*registry.names(), *_files()})


@cache
def _files() -> frozenset[str]:
    return frozenset(path.stem for path in _HERE.glob("*.toml"))


def load(recipe: str | Path | Recipe, *, local: bool = False) -> Recipe:
    """A recipe object, a built-in recipe or scorer by name, or (local users) a TOML file.

    Raises RecipeError, naming what is known, when nothing of that name exists.
    """
    if isinstance(recipe, Recipe):
        return recipe
    text = str(recipe)
    if local and (isinstance(recipe, Path) or text.endswith(".toml")):
        try:
            return Recipe.from_toml(Path(text).read_text(encoding="utf-8"), text, Path(text).resolve().parent)
        except OSError as error:
            raise RecipeError(f"cannot read the recipe {text}: {error.strerror}") from None
        except UnicodeDecodeError as error:
            raise RecipeError(f"the recipe {text} is not UTF-8: {error.reason}") from None
    if text in _files():
        return Recipe.from_toml((_HERE / f"{text}.toml").read_text(encoding="utf-8"), source=text)
    if text.partition("@")[0] in registry.names() or (local and ":" in text):
        return Recipe.of(text)
    raise RecipeError(
        f"no recipe or scorer is called {text[:100]!r}; built in: {', '.join(builtin_names())}"
        + ("" if local else " (files can be named only by a local user)")
    )


_DEMAND = {Resource.INLINE: 0, Resource.CPU: 1, Resource.SANDBOX: 2, Resource.IO: 3, Resource.GPU: 4}


def most_demanding(steps: Iterable[_Step], *, local: bool = False) -> str:
    """The scorer of the part that needs the scarcest machine (the first of several), which says where work is done."""
    scorers = (part.scorer for step in steps for part in step.parts)
    return max(scorers, key=lambda scorer: _DEMAND[registry.resource(scorer, local=local)])


def kinds(recipe: Recipe, *, local: bool = False) -> list[str]:
    """The kind of work of each route: that of its most demanding part, or of the whole recipe where it is joint.

    Raises as `registry.kind` does.
    """
    steps = [*recipe.routes, *recipe.then]
    if recipe.joint:
        return [registry.kind(most_demanding(steps, local=local), local=local)] * len(recipe.routes)
    return [registry.kind(most_demanding([route], local=local), local=local) for route in recipe.routes]


def check(recipe: Recipe, *, local: bool = False) -> list[str]:
    """Everything wrong with the scorers that a recipe names, as lines for a person; empty when all is well."""
    faults = []
    steps: Sequence[_Step] = [*recipe.routes, *recipe.then]
    for number, step in enumerate(steps):
        where = f"routes[{number}]" if number < len(recipe.routes) else f"then[{number - len(recipe.routes)}]"
        for part in step.parts:
            try:
                registry.create(part.scorer, part.config, local=local)
            except (RecipeError, UnknownScorerError, TypeError, ImportError) as error:
                faults.append(f"{where}, part {part.label!r}: {error}")
    for number, route in enumerate(recipe.routes[:-1]):
        if not route.when:
            faults.append(f"routes[{number}] takes every rollout, so that the routes after it are never reached")
    return faults
