"""JSON in completions: where it is, reading it strictly, and comparing values."""

from __future__ import annotations

import json
from time import perf_counter
from typing import Any

import pytest
from completions import UNITS
from hypothesis import given
from hypothesis import strategies as st

from rewarden.verifiers.json_text import MAX_DEPTH, NotJsonError, TooDeepError, difference, find_json, read_json

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("completion", "text", "method"),
    [
        ('{"a": 1}', '{"a": 1}', "whole_text"),
        ("<think>{}</think>[1]", "[1]", "whole_text"),
        ("Here:\n```json\n[1]\n```\nDone.", "[1]", "fenced"),
        ("```\n[1]\n```", "[1]", "fenced"),
        ("~~~json\n[1]\n~~~", "[1]", "fenced"),
        ("```json\n[1]\n```\nNo, wait:\n```json\n[2]\n```", "[2]", "fenced"),
        ("```json\n[1]\n```\n```\nprose\n```", "[1]", "fenced"),
        ("```python\n[1]\n```", "```python\n[1]\n```", "whole_text"),
        ("````json\n```\n````", "```", "fenced"),
        ("so <answer> [1] </answer>", "[1]", "answer_tag"),
        ("<answer>```json\n[1]\n```</answer>", "<answer>", "fenced"),
        ("[1]</answer>", "[1]", "answer_tag"),
    ],
)
def test_place(completion: str, text: str, method: str) -> None:
    """The answer tag, in it or else in the whole text the last fenced block, or all of it."""
    found = find_json(completion)
    assert found.method == method
    assert found.answer is not None
    assert found.answer.strip() == text or text == "<answer>"


@pytest.mark.parametrize("completion", ["```json\n[1", "<answer>[1", "<answer>[1]</answer> <answer>[2"])
def test_open_markers_are_truncated(completion: str) -> None:
    """A marker that never closes is no answer, but its text is kept: it may be whole."""
    found = find_json(completion)
    assert (found.answer, found.problem) == (None, "truncated")
    assert found.candidates[0].lstrip().startswith("[")


@given(values)
def test_reads_what_json_writes(value: Any) -> None:
    """Any JSON value is read back, with indentation or without."""
    for text in (json.dumps(value), json.dumps(value, indent=2, ensure_ascii=False)):
        assert difference(read_json(text), value) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[1,]",
        "{'a': 1}",
        "[1] x",
        "NaN",
        "[Infinity]",
        "-Infinity",
        "1e999",
        '{"a":1,"a":1}',
        '[{"b":{"a":1,"a":2}}]',
        "01",
        "\ufeff[]",
    ],
)
def test_what_is_no_json(text: str) -> None:
    """Syntax errors, numbers that are none and repeated keys are refused with words."""
    with pytest.raises(NotJsonError, match=r"\w"):
        read_json(text)


def test_repeated_keys_as_configured() -> None:
    """With `last` the last of repeated keys counts."""
    assert read_json('{"a": 1, "a": 2}', "last") == {"a": 2}


def test_bounds() -> None:
    """Depth and digits are bounded, at exactly the documented place."""
    assert read_json("[" * MAX_DEPTH + "]" * MAX_DEPTH) is not None
    for text in (
        "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1),
        "[" * 100_000,
        '{"a":' * 100_000,
        "1" * 5000,
        "-" + "1" * 5000,
    ):
        with pytest.raises(TooDeepError):
            read_json(text)


@given(values, values)
def test_difference_is_equality(one: Any, other: Any) -> None:
    """Two values differ exactly when their canonical forms do."""

    def canonical(value: Any) -> Any:
        if isinstance(value, dict):
            return ("object", frozenset((key, canonical(inner)) for key, inner in value.items()))
        if isinstance(value, list):
            return ("array", tuple(canonical(inner) for inner in value))
        return (isinstance(value, bool), value)

    assert (difference(one, other) is None) is (canonical(one) == canonical(other))


@pytest.mark.parametrize(
    ("got", "expected", "where"),
    [
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 3]}}, "$.a.b[1]"),
        ({"a": 1}, {"a": True}, "$.a"),
        ({}, {"a": 1}, "$ lacks"),
        ({"a": 1, "b": 2}, {"a": 1}, "$ has the key 'b'"),
        ([1], [1, 2], "$ has 1 items"),
        ([], {}, "$ is not"),
    ],
)
def test_difference_names_the_place(got: Any, expected: Any, where: str) -> None:
    """The first difference is named by its path."""
    found = difference(got, expected)
    assert found is not None
    assert found.startswith(where)


@pytest.mark.parametrize(
    ("got", "expected", "meets"),
    [
        ({"a": 1, "b": 2}, {"a": 1}, True),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1}}, True),
        ([{"a": 1, "b": 2}], [{"a": 1}], True),
        ([{"a": 1}, {"b": 2}], [{"a": 1}], False),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"a": 1}, {}, True),
    ],
)
def test_subset(got: Any, expected: Any, meets: bool) -> None:
    """A subset may lack keys at any depth, and no items."""
    assert (difference(got, expected, subset=True) is None) is meets


RUNS = sorted({*UNITS, *"`~ \t{}[]()\\\"',.:*_#<>9a", "```", "~~~", "[1,", '{"a":', "```json\n", "```\n", "~~~\n"})


@pytest.mark.parametrize("run", RUNS, ids=repr)
def test_any_text_is_cheap(run: str) -> None:
    """A long run of anything, at any place of a fence or a tag, costs milliseconds; the test allows seconds."""
    long = run * (200_000 // len(run))
    forms = (
        "{}",
        "```{}x`",
        "```{}\n[1]",
        "~~~{}x\n",
        " {}```",
        "<answer>{}</answer>",
        "{}<answer>",
        "```json\n{}\n```",
    )
    start = perf_counter()
    for form in forms:
        found = find_json(form.replace("{}", long))
        try:
            read_json(found.answer or "".join(found.candidates))
        except (NotJsonError, TooDeepError):
            continue
    assert perf_counter() - start < 8
