"""Rollouts and verdicts as bytes: what services, queues and clients send each other.

Requests are strict: unknown fields, numbers that are not finite, text where a number belongs and deep nesting are
refused. A fault in one rollout is that rollout's own; the others go on. Messages of the queue are lenient where two
versions may overlap: fields that they do not know are dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar, cast

import orjson
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, from_json, to_json

from .errors import RolloutError
from .reasons import Reason
from .rollout import FIELDS, Rollout, Tokens, describe
from .verdict import Verdict, ungraded

SCHEMA = 1
"""Of the messages of the queue."""

Priority = Literal["interactive", "training", "bulk"]
"""Who waits: a person or a live step, a training run, or nobody."""


class ScoreOptions(BaseModel):
    """What a request for scores says besides its rollouts."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    recipe: str = Field(default="auto", min_length=1, max_length=200)
    """A recipe or scorer on offer, or `name@version` to be refused when another version is here."""
    timeout_s: float | None = Field(default=None, gt=0, le=86_400, allow_inf_nan=False)
    """Seconds from now after which what is not graded comes back as `ungraded: deadline`."""


class JobOptions(ScoreOptions):
    """What a request for a job says besides its rollouts."""

    priority: Priority = "training"
    group_wait_s: float | None = Field(default=None, gt=0, le=86_400, allow_inf_nan=False)
    """How long a group that is not whole in this job waits for members from other jobs."""


class ScoreRequest(ScoreOptions):
    """Rollouts to grade, and how."""

    rollouts: list[Rollout] = Field(min_length=1)


class JobRequest(JobOptions):
    """Rollouts to grade while nobody holds a connection, and how."""

    rollouts: list[Rollout] = Field(min_length=1)


Options = TypeVar("Options", bound=ScoreOptions)

Item = Rollout | str
"""A rollout, or why what is at its place is none."""


class RequestError(RolloutError):
    """A request that cannot be read as a whole. `faults` has a JSON pointer and a message for each."""

    def __init__(self, message: str, faults: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(message)
        self.faults = list(faults)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.faults)


_ROLLOUT = TypeAdapter(Rollout)
_ROLLOUTS: TypeAdapter[list[Rollout]] = TypeAdapter(list[Rollout], config=ConfigDict(ser_json_inf_nan="constants"))


def encode_rollouts(rollouts: Iterable[Rollout]) -> tuple[bytes, dict[int, str]]:
    """A JSON list of rollouts; and the rows that no request can hold, with why, which are left out.

    Those are lone surrogates, numbers that are not finite or beyond a double, and deep nesting.
    """
    rollouts = list(rollouts)
    try:
        return _encode(rollouts), {}
    except (PydanticSerializationError, ValueError):
        pieces, faults = [], {}
        for row, rollout in enumerate(rollouts):
            try:
                pieces.append(_encode([rollout])[1:-1])
            except (PydanticSerializationError, ValueError) as error:
                faults[row] = f"cannot be sent as JSON ({_LIMITS}): {str(error)[:200]}"
        return b"[" + b",".join(pieces) + b"]", faults


_LIMITS = "numbers must be finite, texts without lone surrogates, and values not deeply nested"


def _encode(rollouts: list[Rollout]) -> bytes:
    data = _ROLLOUTS.dump_json(rollouts, exclude_defaults=True)
    # What no reader takes would else cost the other rows of its request: see `decode_request` for why two parsers.
    orjson.loads(data)
    from_json(b'{"rollouts":%b}' % data, allow_inf_nan=False)
    return data


def encode_items(items: Sequence[Item]) -> bytes:
    """A JSON list in which a text stands for what is no rollout, and says why, so that every row keeps its place."""
    rollouts = [item for item in items if isinstance(item, Rollout)]
    encoded, faults = encode_rollouts(rollouts)
    if len(rollouts) == len(items) and not faults:
        return encoded
    pieces = []
    for item in items:
        piece, fault = encode_rollouts([item]) if isinstance(item, Rollout) else (b"", {0: item})
        pieces.append(orjson.dumps(fault[0]) if fault else piece[1:-1])
    return b"[" + b",".join(pieces) + b"]"


def with_faults(rollouts: Sequence[Rollout], faults: Mapping[int, str] | None) -> list[Item]:
    """Rollouts in their rows, between the rows that are none."""
    if not faults:
        return list(rollouts)
    rest = iter(rollouts)
    return [faults[row] if row in faults else next(rest) for row in range(len(rollouts) + len(faults))]


def encode_request(options: ScoreOptions, rollouts: bytes) -> bytes:
    """The body of a request from its options and its encoded rollouts."""
    head = options.model_dump_json(exclude_defaults=True).encode()
    return b"%b%b%b}" % (head[:-1], b',"rollouts":' if len(head) > 2 else b'"rollouts":', rollouts)


def decode_request(body: bytes, options: type[Options]) -> tuple[Options, list[Item]]:
    """The options and the rollouts of a request; a RequestError when it is not one as a whole."""
    model = JobRequest if issubclass(options, JobOptions) else ScoreRequest
    try:
        # This parser alone refuses NaN, infinities and 1e999, and the next one alone refuses deep nesting.
        orjson.loads(body)
        values = model.model_validate_json(body, strict=True).__dict__
    except orjson.JSONDecodeError as error:
        raise RequestError(f"the body is not JSON: {error}") from None
    except ValidationError:
        return _decode_slowly(body, options)
    found = options.model_construct(**{name: values[name] for name in options.model_fields})
    return cast("Options", found), values["rollouts"]


def _decode_slowly(body: bytes, options: type[Options]) -> tuple[Options, list[Item]]:
    """As `decode_request`, row by row, for a body that has a fault somewhere."""
    try:
        data = from_json(body)
    except ValueError as error:
        raise RequestError(f"the body is not JSON that can be read: {error}") from None
    if not isinstance(data, dict):
        raise RequestError("the body must be a JSON object", [("", "not an object")])
    rows = data.pop("rollouts", None)
    if not isinstance(rows, list) or not rows:
        raise RequestError(
            "rollouts: must be a list with at least one rollout", [("/rollouts", "not a list, or empty")]
        )
    try:
        found = options.model_validate_json(to_json(data), strict=True)
    except ValidationError as error:
        faults = [
            ("/" + "/".join(map(str, fault["loc"])), fault["msg"])
            for fault in error.errors(include_url=False, include_input=False, include_context=False)
        ]
        raise RequestError(describe(error), faults) from None
    return found, [_decode_row(row) for row in rows]


def _decode_row(row: Any) -> Item:
    if isinstance(row, str):
        return row or "empty text instead of a rollout"
    try:
        return _ROLLOUT.validate_json(to_json(row), strict=True)
    except ValidationError as error:
        return describe(error)


def decode_rollouts(data: bytes) -> list[Rollout]:
    """The inverse of `encode_rollouts` for messages of the queue: fields that are not known here are dropped.

    Raises RolloutError: what wrote it had checked it, so a fault is not a rollout's own.
    """
    try:
        return _ROLLOUTS.validate_json(data)
    except ValidationError:
        try:
            rows = from_json(data)
        except ValueError as error:
            raise RolloutError(f"a message of the queue is not JSON: {error}") from None
        if not isinstance(rows, list):
            raise RolloutError("a message of the queue must be a list of rollouts") from None
        return [Rollout.parse(_known(row)) for row in rows]


def _known(row: Any) -> Any:
    """A row without the fields that are not known here."""
    if not isinstance(row, dict):
        return row
    row = {name: value for name, value in row.items() if name in FIELDS}
    if isinstance(tokens := row.get("tokens"), dict):
        row["tokens"] = {name: value for name, value in tokens.items() if name in Tokens.model_fields}
    return row


def encode_verdicts(verdicts: Iterable[Verdict]) -> bytes:
    """A JSON list of verdicts."""
    return b"[" + b",".join(verdict.to_json() for verdict in verdicts) + b"]"


class _Written(BaseModel):
    """The types of a verdict's fields; that they agree with each other is the Verdict's own affair."""

    model_config = ConfigDict(extra="ignore", strict=True, allow_inf_nan=False)

    reward: float | None
    outcome: str
    reason: str | None = None
    explanation: str = ""
    advantage: float | list[float] | None = None
    components: dict[str, float | None] | None = None
    spans: list[dict[str, float]] | None = None
    step_rewards: list[float | None] | None = None
    evidence: dict[str, Any] | None = None
    id: str = ""
    scorer: dict[str, str] | None = None


def decode_verdict(data: Any) -> Verdict:
    """A verdict as another process wrote it. Raises ValueError for what is none, or would lie."""
    try:
        _Written.model_validate(data)
        return Verdict.from_dict(data)
    except ValidationError as error:
        raise ValueError(f"not a verdict: {describe(error)}") from None
    except (TypeError, KeyError, AttributeError, OverflowError) as error:
        raise ValueError(f"not a verdict: {error}") from error


def bad_rollout(fault: str, id: str = "") -> Verdict:
    """The verdict on what is no rollout."""
    return ungraded(Reason.BAD_ROLLOUT, fault[:500], id=id)
