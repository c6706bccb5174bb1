"""One row of a rollout file: which of its columns make the rollout, and what is wrong with a row that has none.

Covered: choosing and renaming columns, also inside objects, made-up ids, and rejecting what is no rollout with a reason
in words. Not covered: other tools' formats (paths into lists, several rollouts in a row).
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import orjson

from ..core.errors import DumpError, RolloutError
from ..core.rollout import FIELDS, Rollout

VERDICT_COLUMNS = ("reward", "outcome", "reason", "verdict")
"""The columns that scoring adds. Where the input has them, from an earlier run, they are replaced."""

DEPTH = 200
"""Objects and lists may be nested this deep. Readers of JSON give up somewhere, and ours must not be the first."""

_LABELS = ("id", "group", "prompt_id")
_BIG = 2.0**63


class Row(NamedTuple):
    """A row that is a rollout."""

    number: int
    """The line of the file, from 1 and counting empty lines; in Parquet, the row from 1."""
    rollout: Rollout
    head: bytes
    """All columns of the input as a JSON object without its closing brace, so that the verdict can follow.

    For JSON lines these are the bytes of the file, so that nothing is changed by passing through: not the digits of a
    number, not the order of the columns.
    """

    @property
    def columns(self) -> dict[str, Any]:
        """All columns of the input but those that the verdict replaces."""
        found: dict[str, Any] = loads(self.head + b"}")
        return found


class Rejected(NamedTuple):
    """A row that is no rollout."""

    number: int
    error: str
    """Why, in one line, and without the value (which may be a megabyte)."""
    raw: bytes
    """What the file has there."""
    is_json: bool
    """Whether `raw` can be embedded in JSON as it is."""

    def to_json(self) -> bytes:
        """Its line in `OUT.rejected.jsonl`: `line`, `error`, and `row` (JSON) or `raw` (text, bad bytes escaped)."""
        start = b'{"line":%d,"error":%b,' % (self.number, orjson.dumps(self.error))
        if self.is_json:
            return start + b'"row":' + self.raw + b"}\n"
        return start + b'"raw":' + orjson.dumps(self.raw.decode("utf-8", "backslashreplace")) + b"}\n"


class Columns:
    """Which column of a file each field of a rollout comes from: its namesake, unless `mapping` says otherwise.

    `mapping` goes from field to column. An empty column takes the field from nowhere, for a file in which its name
    means something else. Where a row has no column of that name, dots lead into objects: `reward_model.ground_truth`.
    Raises DumpError for a field that does not exist.
    """

    def __init__(self, mapping: Mapping[str, str] | None = None) -> None:
        self.mapping = dict(mapping or {})
        unknown = sorted(set(self.mapping) - FIELDS)
        if unknown:
            raise DumpError(f"a rollout has no field {unknown[0]!r} to map to; its fields: {', '.join(sorted(FIELDS))}")
        self._fields: dict[str, str] = {}
        self._again: list[tuple[str, str]] = []  # fields from a column that another field comes from, too
        for name in Rollout.model_fields:
            column = self.mapping.get(name, name)
            if column and self._fields.setdefault(column, name) != name:
                self._again.append((name, column))
        self._paths = [(name, column, column.split(".")) for name, column in self.mapping.items() if "." in column]
        self._completion = self.mapping.get("completion", "completion")
        self.unseen = {column for column in self.mapping.values() if column}
        """Mapped columns that no row has had so far."""
        self.seen: dict[str, None] = {}
        """The columns of the rows so far, in the order in which they came, until `settle`."""
        self._settled = False

    @classmethod
    def of(cls, options: Iterable[str]) -> Columns:
        """From `field=column` texts, as on the command line."""
        mapping: dict[str, str] = {}
        for option in options:
            field, equals, column = option.partition("=")
            if not equals or not field:
                raise DumpError(f"--map takes field=column, such as reference=answer, not {option!r}")
            if mapping.setdefault(field, column) != column:
                raise DumpError(f"--map names the field {field!r} twice")
        return cls(mapping)

    def reads(self, column: str) -> bool:
        """Whether a field may come from this column, or from inside it."""
        return column in self._fields or any(column == path[0] for _, _, path in self._paths)

    def note(self, columns: Iterable[str]) -> None:
        """Count these columns as seen, where `rollout` gets only those that it reads."""
        if not self._settled:
            self.seen.update(dict.fromkeys(columns))

    def settle(self) -> None:
        """Stop to watch which columns rows have."""
        self._settled = True

    def listed(self) -> str:
        """The columns seen, for a person."""
        return _listed(self.seen)

    def rollout(self, row: Mapping[str, Any], number: int) -> Rollout:
        """The rollout in `row`. Raises RolloutError in one line.

        `id`, `group` and `prompt_id` may be integers, as they are in many files; a missing or empty `id` becomes
        `row-000001` after the row's number.
        """
        if not self._settled:
            self.seen.update(dict.fromkeys(row))
            self.unseen -= row.keys()
        names = self._fields
        fields = {names[column]: value for column, value in row.items() if column in names}
        for name, column in self._again:
            if column in row:
                fields[name] = row[column]
        for name, column, path in self._paths:
            if column not in row:
                with contextlib.suppress(KeyError):
                    fields[name] = _inside(row, path)
                    self.unseen.discard(column)
        get = fields.get
        for name in _LABELS:
            if type(get(name)) is int:
                fields[name] = str(fields[name])
        if not get("id"):
            fields["id"] = f"row-{number:06d}"
        completion = get("completion")
        if completion is None:
            raise RolloutError(self._no_completion(row, known="completion" in fields))
        if not isinstance(completion, (str, list)):
            kind = _KINDS[type(completion)]
            raise RolloutError(f"completion must be text or a list of chat messages, not a JSON {kind}")
        return Rollout.parse(fields)

    def _no_completion(self, row: Mapping[str, Any], *, known: bool) -> str:
        if known:
            return f"no completion: the column {self._completion!r} is null"
        hint = "" if "completion" in self.mapping else "; name it with --map completion=COLUMN"
        return f"no completion: there is no column {self._completion!r} (columns: {_listed(row)}){hint}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(name[:40] for name in islice(names, 12)) or "none"


def _inside(row: Mapping[str, Any], path: Sequence[str]) -> Any:
    """The value at a path into objects; KeyError where there is none."""
    value: Any = row
    for name in path:
        if not isinstance(value, Mapping):
            raise KeyError(name)
        value = value[name]
    return value


def read_json(line: bytes, number: int, columns: Columns) -> Row | Rejected:
    """The row in one line of JSON, which is not empty."""
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        return Rejected(number, _not_json(line, error), line, is_json=False)
    if type(row) is not dict:
        return Rejected(number, f"not an object, but a JSON {_KINDS[type(row)]}", line, is_json=True)
    for value in row.values():
        kind = type(value)
        if kind is not str and kind is not int and value is not None:
            deep, big = _look(value)
            if deep:
                return Rejected(number, f"nested deeper than {DEPTH} levels", line, is_json=False)
            if big:
                try:
                    row = json.loads(line)
                except ValueError as error:  # more digits than Python converts
                    return Rejected(number, f"a number cannot be read: {error}", line, is_json=False)
                break
    try:
        rollout = columns.rollout(row, number)
    except RolloutError as error:
        return Rejected(number, str(error), line, is_json=True)
    return Row(number, rollout, _head(line, row))


def with_reward(head: bytes) -> bytes:
    """The head of a row with the key `reward` behind it. A row has no other columns where all are of a verdict."""
    return head + (b'"reward":' if head.endswith(b"{") else b',"reward":')


def _head(line: bytes, row: dict[str, Any]) -> bytes:
    for name in VERDICT_COLUMNS:
        if name in row:
            return dumps({name: value for name, value in row.items() if name not in VERDICT_COLUMNS})[:-1]
    return line[:-1].rstrip()


def _look(value: Any) -> tuple[bool, bool]:
    """Whether a value is nested too deep, and whether it may hold an integer that orjson has made a float."""
    level, depth, big = [value], 1, False
    while level:
        if depth > DEPTH:
            return True, big
        below: list[Any] = []
        for some in level:
            kind = type(some)
            if kind is dict:
                below += some.values()
            elif kind is list:
                below += some
            elif kind is float and not -_BIG < some < _BIG:
                big = True
        level, depth = below, depth + 1
    return False, big


def loads(text: bytes) -> Any:
    """JSON with integers of any size. `text` is known to be JSON."""
    value = orjson.loads(text)
    return json.loads(text) if _look(value)[1] else value


def dumps(value: Any) -> bytes:
    """Compact JSON with integers of any size."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


_KINDS = {
    dict: "object",
    list: "list",
    str: "string",
    int: "number",
    float: "number",
    bool: "boolean",
    type(None): "null",
}


def _not_json(line: bytes, error: orjson.JSONDecodeError) -> str:
    try:
        line.decode()
    except UnicodeDecodeError as bad:
        return f"not UTF-8: byte 0x{line[bad.start]:02x} at position {bad.start + 1}"
    what = str(error.msg)
    if "depth" in what or "recursion" in what.lower():
        return f"nested deeper than {DEPTH} levels"
    rest = error.doc[error.pos : error.pos + 9].lstrip("-")
    if rest.startswith(("NaN", "Infinity")):
        return f"not JSON: {'NaN' if rest[0] == 'N' else 'Infinity'} at position {error.pos + 1}; write null instead"
    return f"not JSON: {what} at position {error.pos + 1}"
