"""The one Arrow type that holds every value of a column of JSON, where there is one.

Nothing is bent to fit: true beside 1, text beside a number, an integer of more than 64 bits or an object without keys
have no type in common, and the column is written as JSON text. Integers beside fractions are fractions.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

DEPTH = 16
"""Levels of lists and objects in a type."""

LEAVES = 512
"""Scalars in a type. A column of objects with more different keys holds data in its keys, not a schema."""

_SCALARS = {bool: "bool", int: "int64", float: "float64", str: "string"}
_ARROW = {"bool": "bool_", "int64": "int64", "float64": "float64", "string": "string", None: "null"}
_INT64 = range(-(2**63), 2**63)


class Shape:
    """What has been seen in one place of the values of a column."""

    __slots__ = ("fields", "item", "scalar")

    def __init__(self) -> None:
        self.scalar: str | None = None
        self.item: Shape | None = None
        self.fields: dict[str, Shape] | None = None

    def add(self, value: Any, depth: int = 0) -> bool:
        """Take one more value in; False when it has no type in common with those before."""
        if value is None:
            return True
        kind = type(value)
        if kind is list:
            if self.scalar is not None or self.fields is not None or depth == DEPTH:
                return False
            if self.item is None:
                self.item = Shape()
            return all(self.item.add(item, depth + 1) for item in value)
        if kind is dict:
            if self.scalar is not None or self.item is not None or depth == DEPTH:
                return False
            fields = self.fields = self.fields or {}
            for key, inner in value.items():
                if key not in fields:
                    if len(fields) == LEAVES:
                        return False
                    fields[key] = Shape()
                if not fields[key].add(inner, depth + 1):
                    return False
            return True
        return self._add_scalar(_SCALARS[kind], value)

    def _add_scalar(self, scalar: str, value: Any) -> bool:
        if self.item is not None or self.fields is not None or (scalar == "int64" and value not in _INT64):
            return False
        if self.scalar is None:
            self.scalar = scalar
        elif self.scalar != scalar:
            if {self.scalar, scalar} != {"int64", "float64"}:
                return False
            self.scalar = "float64"
        return True

    def add_all(self, values: Iterable[Any]) -> bool:
        """Take all of these in; False when one of them does not fit."""
        values = list(values)
        kinds = set(map(type, values))
        if kinds <= {str, type(None)} and self.scalar == "string":
            return True
        return all(self.add(value) for value in values)

    def to_arrow(self, pa: Any) -> Any | None:
        """The type; None where Parquet has none."""
        if self.item is not None:
            item = self.item.to_arrow(pa)
            return None if item is None else pa.list_(item)
        if self.fields is not None:
            inner = {key: shape.to_arrow(pa) for key, shape in self.fields.items()}
            return pa.struct(list(inner.items())) if inner and None not in inner.values() else None
        return getattr(pa, _ARROW[self.scalar])()

    def leaves(self) -> int:
        """How many scalars its type has."""
        if self.item is not None:
            return self.item.leaves()
        return sum(shape.leaves() for shape in self.fields.values()) if self.fields else 1
