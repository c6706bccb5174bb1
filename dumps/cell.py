"""The values of Arrow columns as values for JSON.

What Python cannot hold becomes text without loss: nanoseconds, dates beyond its calendar, time zones it does not know.
A struct with two fields of one name becomes a list of pairs. Only what is no text (bad UTF-8) cannot be read.
"""

from __future__ import annotations

from typing import Any, NamedTuple

_FAULTS = (ValueError, OverflowError, TypeError, LookupError, NotImplementedError)
"""What Arrow raises for a value that Python cannot hold."""


class Unreadable(NamedTuple):
    """Stands for a value that cannot be read."""

    why: str


def objects(batch: Any) -> list[dict[str, Any] | Unreadable]:
    """The rows of a batch; `Unreadable` for one with such a value."""
    names = batch.schema.names
    if not names:
        return [{} for _ in range(len(batch))]
    columns = [values(column) for column in batch.columns]
    rows: list[dict[str, Any] | Unreadable] = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    for name, column in zip(names, columns, strict=True):
        for place, value in enumerate(column):
            if type(value) is Unreadable:
                rows[place] = Unreadable(f"the column {name[:40]!r}: {value.why}")
    return rows


def values(column: Any) -> list[Any]:
    """The values of one column."""
    # With pandas at hand, nanoseconds would become its types, and another text than without.
    if "[ns" not in str(column.type):
        try:
            whole: list[Any] = column.to_pylist()
        except _FAULTS:
            pass
        else:
            return whole
    return [_readable(scalar) for scalar in column]


def _readable(scalar: Any) -> Any:
    try:
        return _value(scalar)
    except _FAULTS as error:
        return Unreadable(" ".join(str(error).split())[:300])


def _value(scalar: Any) -> Any:
    import pyarrow as pa

    kind, types = scalar.type, pa.types
    if not scalar.is_valid:
        return None
    if types.is_dictionary(kind) or isinstance(kind, pa.BaseExtensionType):
        return _value(scalar.value)
    if types.is_map(kind):
        return [[_value(pair[0]), _value(pair[1])] for pair in scalar.values]
    if types.is_nested(kind) and hasattr(scalar, "values") and not types.is_struct(kind):
        return [_value(item) for item in scalar.values]
    if types.is_struct(kind):
        pairs = [(kind.field(i).name, _value(scalar[i])) for i in range(kind.num_fields)]
        found = dict(pairs)
        return found if len(found) == len(pairs) else [list(pair) for pair in pairs]
    if types.is_temporal(kind) and not types.is_interval(kind):
        return _time(pa, scalar)
    return scalar.as_py()


def _time(pa: Any, scalar: Any) -> Any:
    kind = scalar.type
    if getattr(kind, "unit", "") != "ns":
        utc = pa.timestamp(kind.unit, "UTC") if getattr(kind, "tz", None) else kind
        for known in (kind, utc):
            try:
                return scalar.cast(known).as_py()
            except _FAULTS:
                continue
    elif not pa.types.is_duration(kind):
        utc = pa.timestamp("ns", "UTC") if getattr(kind, "tz", None) else kind
        for known in (kind, utc):
            try:
                return scalar.cast(known).cast(pa.string()).as_py()
            except _FAULTS:
                continue
    return f"{scalar.value} {kind}"
