r"""JSON that a model wrote: where it is in a completion, and reading it strictly.

The text is what the last `<answer>` tag holds, or else the whole visible text; where that has fenced blocks, the last
one marked `json` counts, or else the last unmarked one. JSON in the middle of a sentence is not looked for: the format
is what is graded. Read by RFC 8259, and stricter: `NaN`, `Infinity` and numbers beyond a double are refused, and so are
repeated keys, of which different readers take different ones.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from ..core.extraction import Extraction, last_tag, visible

MAX_DEPTH = 100
"""Arrays and objects within each other."""
MAX_DIGITS = 4_000
"""Of an integer."""

DuplicateKeys = Literal["reject", "last"]

_FENCE = re.compile(r"^[ \t]*+(?P<marks>`{3,}+|~{3,}+)[ \t]*+(?P<language>[^\s`]*+)[^\n`]*+$", re.MULTILINE)


class NotJsonError(ValueError):
    """The text is no JSON, or not by these rules."""


class TooDeepError(ValueError):
    """The text may be JSON, but beyond the bounds of depth or digits."""


class _Block(NamedTuple):
    language: str
    text: str
    closed: bool


def find_json(completion: Any) -> Extraction:
    """The text that should be JSON. The problem `truncated` comes with the text as `candidates`: it may be whole."""
    seen = visible(completion)
    if seen.problem is not None:
        return Extraction(None, "none", problem=seen.problem)
    text, method = seen.text, "whole_text"
    tag = last_tag(text)
    if tag is not None:
        text, method = text[tag.start : tag.end], "answer_tag"
        if not tag.closed:
            return Extraction(None, method, (text,), "truncated")
    blocks = [block for block in _blocks(text) if block.language in ("", "json")]
    marked = [block for block in blocks if block.language] or blocks
    if marked:
        block = marked[-1]
        if not block.closed:
            return Extraction(None, "fenced", (block.text,), "truncated")
        text, method = block.text, "fenced"
    if not text.strip():
        return Extraction(None, method, problem="empty")
    return Extraction(text, method)


def _blocks(text: str) -> Iterator[_Block]:
    opened: re.Match[str] | None = None
    for fence in _FENCE.finditer(text):
        if opened is None:
            opened = fence
        elif not fence["language"] and fence["marks"].startswith(opened["marks"]):
            yield _Block(opened["language"].lower(), text[opened.end() : fence.start()], closed=True)
            opened = None
    if opened is not None:
        yield _Block(opened["language"].lower(), text[opened.end() :], closed=False)


def read_json(text: str, duplicate_keys: DuplicateKeys = "reject") -> Any:
    """The value of a JSON text. Raises NotJsonError or TooDeepError, in words."""

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        read = dict(items)
        if len(read) < len(items) and duplicate_keys == "reject":
            seen: set[str] = set()
            twice = next(key for key, _ in items if key in seen or seen.add(key))  # type: ignore[func-returns-value]
            raise NotJsonError(f"the key {twice[:40]!r} occurs more than once in an object")
        return read

    try:
        value = json.loads(
            text, object_pairs_hook=pairs, parse_constant=_no_constant, parse_float=_finite, parse_int=_bounded
        )
    except json.JSONDecodeError as error:
        raise NotJsonError(f"{error.msg} at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise TooDeepError(f"it nests deeper than {MAX_DEPTH} levels") from None
    if _is_deep(value):
        raise TooDeepError(f"it nests deeper than {MAX_DEPTH} levels")
    return value


def _no_constant(name: str) -> Any:
    raise NotJsonError(f"{name} is no JSON number")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise NotJsonError(f"the number {digits[:40]} is beyond the range of a double")
    return value


def _bounded(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise TooDeepError(f"an integer has {len(digits)} digits; {MAX_DIGITS} are read")
    return int(digits)


def _is_deep(value: Any) -> bool:
    level, depth = [value], 0
    while level := [outer for outer in level if isinstance(outer, (dict, list))]:
        depth += 1
        if depth > MAX_DEPTH:
            return True
        level = [inner for outer in level for inner in (outer.values() if isinstance(outer, dict) else outer)]
    return False


def difference(got: Any, expected: Any, *, subset: bool = False, path: str = "$") -> str | None:
    """Where a JSON value first differs from the expected one, in words; None where it does not.

    `subset`: objects may have more keys than expected, at any depth; arrays may not have more items. Numbers compare by
    value (1 is 1.0), and neither is `true`. Both values are at most `MAX_DEPTH` deep.
    """
    if isinstance(expected, dict) and isinstance(got, dict):
        missing = next((key for key in expected if key not in got), None)
        if missing is not None:
            return f"{path} lacks the key {missing[:40]!r}"
        more = None if subset else next((key for key in got if key not in expected), None)
        if more is not None:
            return f"{path} has the key {more[:40]!r}, which is not expected"
        inner = (difference(got[key], expected[key], subset=subset, path=f"{path}.{key[:40]}") for key in expected)
        return next((found for found in inner if found is not None), None)
    if isinstance(expected, list) and isinstance(got, list):
        if len(expected) != len(got):
            return f"{path} has {len(got)} items, not {len(expected)}"
        pairs = enumerate(zip(got, expected, strict=True))
        inner = (difference(one, other, subset=subset, path=f"{path}[{i}]") for i, (one, other) in pairs)
        return next((found for found in inner if found is not None), None)
    same = got == expected and isinstance(got, bool) is isinstance(expected, bool)
    return None if same else f"{path} is not the expected value"
