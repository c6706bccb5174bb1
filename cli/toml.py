"""Recipes as TOML text, which the standard library reads but does not write.

Covered: what a recipe holds: text, numbers, booleans, lists, and tables inside them. Not covered: dates.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def dumps(data: Mapping[str, Any]) -> str:
    """`data` as TOML. Lists of objects become `[[tables]]` at the top, and inline tables below. None is left out."""
    plain, tables = [], []
    for key, value in data.items():
        if isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
            tables += [f"\n[[{_key(key)}]]\n" + "".join(_lines(item)) for item in value]
        elif isinstance(value, Mapping):
            tables.append(f"\n[{_key(key)}]\n" + "".join(_lines(value)))
        elif value is not None:
            plain.append(f"{_key(key)} = {_value(value)}\n")
    return "".join([*plain, *tables])


def _lines(data: Mapping[str, Any]) -> list[str]:
    return [f"{_key(key)} = {_value(value)}\n" for key, value in data.items() if value is not None]


def _key(key: str) -> str:
    bare = key.isascii() and key.replace("_", "").replace("-", "").isalnum()
    return key if bare else _value(key)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items() if v is not None) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    if isinstance(value, str):
        # A JSON string is a TOML basic string, except that TOML wants DEL escaped.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)
