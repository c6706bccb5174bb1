"""What a trainer sends: one sampled completion with what is needed to grade it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

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

    model_config = ConfigDict(extra="forbid", frozen=True)

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
    group_size: int | None = None
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
    for fault in error.errors(include_url=False, include_input=False)[:3]:
        place = ".".join(str(part) for part in fault["loc"]) or "row"
        faults.append(f"{place}: {fault['msg'][:120]}")
    return "; ".join(faults)


class View:
    """A rollout as a scorer sees it: `id` and the fields that it `reads`, nothing else.

    Reading another field raises AttributeError, because the cache key would not know of it. Views pickle, and carry
    only these fields to a worker. Make the class for one scorer with `view_of`.
    """

    __slots__ = ("id",)
    reads: tuple[str, ...] = ()
    id: str

    def __init__(self, id: str, values: Sequence[Any]) -> None:
        self.id = id
        for name, value in zip(self.reads, values, strict=True):
            setattr(self, name, value)

    def __getattr__(self, name: str) -> Any:
        if name in FIELDS:
            raise AttributeError(f"this scorer does not declare {name!r}; add it to its `reads` = {self.reads}")
        raise AttributeError(f"a rollout has no field {name!r}")

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.reads, self.id, tuple(getattr(self, name) for name in self.reads))

    def __repr__(self) -> str:
        return f"View(id={self.id!r}, reads={self.reads})"


_views: dict[tuple[str, ...], type[View]] = {}


def view_of(reads: tuple[str, ...]) -> type[View]:
    """The class of views on `reads`, made once."""
    found = _views.get(reads)
    if found is None:
        unknown = set(reads) - FIELDS
        if unknown:
            raise RolloutError(f"a scorer reads {sorted(unknown)}, which are no fields of a rollout: {sorted(FIELDS)}")
        names = tuple(name for name in reads if name != "id")
        found = _views[reads] = type("View", (View,), {"__slots__": names, "reads": names})
    return found


def _rebuild(reads: tuple[str, ...], id: str, values: tuple[Any, ...]) -> View:
    return view_of(reads)(id, values)
