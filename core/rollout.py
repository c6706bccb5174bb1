"""What a trainer sends: one sampled completion with what is needed to grade it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from operator import attrgetter, itemgetter
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from .errors import RolloutError


class Message(BaseModel):
    """One chat message. Keys of other conventions are kept, because trainers add their own."""

    model_config = ConfigDict(extra="allow", frozen=True)

    role: str
    content: str | list[dict[str, Any]] | None = None
    """Text, or content parts such as `{"type": "text", "text": ...}`."""
    reasoning_content: str | None = None
    """Thinking that the server has already taken out of `content`."""
    tool_calls: list[dict[str, Any]] | None = None
    tool_call_id: str | None = None
    name: str | None = None


class Tokens(BaseModel):
    """Token-level data of the completion, for the methods that need it. All lists have one entry for each token."""

    # A number that JSON has no form for must not become `null` on its way.
    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_inf_nan="constants")

    ids: list[int] | None = None
    offsets: list[tuple[int, int, int]] | None = None
    """(message index, start, end) in characters, end exclusive."""
    logprobs: list[float] | None = None
    """Natural logarithms."""
    top_logprobs: list[dict[str, float]] | None = None
    loss_mask: list[int] | None = None
    """1 where the token is trained on."""


class Rollout(BaseModel):
    """One completion to grade. Every field but `completion` is optional; a scorer says which ones it `reads`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=False, protected_namespaces=())

    id: str = ""
    """Made from the row number when missing. Duplicates are allowed."""
    completion: str | list[Message]
    """What the model wrote: text, or the chat messages of its turn(s)."""
    prompt: str | list[Message] | None = None
    reference: Any = None
    """Gold answer(s), tests, gold SQL, a rubric: what the scorer needs. JSON values."""
    group: str | None = None
    """One sampling of one prompt; rollouts with the same value are compared with each other."""
    group_size: int | None = Field(default=None, ge=1)
    """How many members the group has, so that it can be scored as soon as the last one arrives."""
    prompt_id: str | None = None
    """Stable over training. Stands in for `group` where that is missing."""
    model: str | None = None
    scorer: str | None = None
    """Asks for a scorer or a route by name."""
    data_source: str | None = None
    finish_reason: str | None = None
    """`length` says that the completion was cut off."""
    tokens: Tokens | None = None
    agent: str | None = None
    step: int | None = None
    """Training step."""
    metadata: dict[str, Any] | None = None

    @property
    def group_key(self) -> str | None:
        """What groups this rollout with others; None when it stands alone."""
        return self.group if self.group is not None else self.prompt_id

    @property
    def weight(self) -> int:
        """About how many characters it holds in memory: enough to bound what waits."""
        completion = self.completion
        if isinstance(completion, str):
            return len(completion) + 500
        return 500 + sum(len(m.content) if isinstance(m.content, str) else 2000 for m in completion)

    @classmethod
    def parse(cls, row: Any) -> Rollout:
        """`row` as a rollout; a RolloutError in one readable line when it is none."""
        try:
            return cls.model_validate(row)
        except ValidationError as error:
            raise RolloutError(describe(error)) from None


FIELDS: frozenset[str] = frozenset(Rollout.model_fields)


def describe(error: ValidationError) -> str:
    """The first faults of a pydantic error in one line, without the value (which may be a megabyte)."""
    faults = []
    found = error.errors(include_url=False, include_input=False)
    # A union reports what each of its kinds says. Where the value is a list, that it is no text is not the fault.
    inner = [fault for fault in found if "list[Message]" in fault["loc"] and len(fault["loc"]) > 2]
    for fault in (inner or found)[:3]:
        place = ".".join(str(part) for part in fault["loc"] if not str(part).startswith(("list[", "str"))) or "row"
        faults.append(f"{place[:100]}: {fault['msg'][:120]}")
    return "; ".join(faults)


class View(tuple[Any, ...]):
    """A rollout as a scorer sees it: `id` and the fields that it `reads`, as attributes, and nothing else.

    Reading another field raises AttributeError, because the cache key would not know of it. Views pickle, and carry
    only these fields to a worker. `view_of` makes the class for one scorer; it takes the values, `id` first.
    """

    __slots__ = ()
    reads: ClassVar[tuple[str, ...]] = ()
    take: ClassVar[Callable[[Rollout], tuple[Any, ...]]]
    """The values of a view of this rollout."""
    id = property(itemgetter(0))

    def __getattr__(self, name: str) -> Any:
        if name in FIELDS:
            raise AttributeError(f"this scorer does not declare {name!r}; add it to its `reads` = {self.reads}")
        raise AttributeError(f"a rollout has no field {name!r}")

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.reads, tuple(self))

    def __repr__(self) -> str:
        return f"View(id={self.id!r}, reads={self.reads})"

    @property
    def values(self) -> tuple[Any, ...]:
        """What decides the verdict: the values of `reads`, in order."""
        return self[1:]


@cache
def view_of(reads: tuple[str, ...]) -> type[View]:
    """The class of views on `reads`."""
    unknown = set(reads) - FIELDS
    if unknown:
        raise RolloutError(f"a scorer reads {sorted(unknown)}, which are no fields of a rollout: {sorted(FIELDS)}")
    take = attrgetter("id", *reads) if reads else lambda rollout: (rollout.id,)
    members = {name: property(itemgetter(place)) for place, name in enumerate(reads, 1)}
    return type("View", (View,), {"__slots__": (), "reads": reads, "take": staticmethod(take), **members})


def _rebuild(reads: tuple[str, ...], values: tuple[Any, ...]) -> View:
    return view_of(reads)(values)
