"""Rows and rollouts: what is a rollout, what is not, and that nothing is changed on the way through."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rollout_files import REJECTS

from rewarden.core.errors import DumpError, RolloutError
from rewarden.core.rollout import FIELDS
from rewarden.dumps.row import DEPTH, VERDICT_COLUMNS, Columns, Rejected, Row, read_json

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NUMBERS = st.integers() | st.integers(2**62, 2**70) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
ROWS = st.builds(
    lambda own, others: own | others,
    st.fixed_dictionaries({"completion": TEXT}, optional={"id": TEXT, "prompt": TEXT, "reference": VALUES}),
    st.dictionaries(st.sampled_from(["answer", "weight", "reward", "verdict"]) | TEXT, VALUES, max_size=5).map(
        lambda found: {f"{key}_" if key in FIELDS else key: value for key, value in found.items()}
    ),
)


def parse(line: bytes | str, **mapping: str) -> Row | Rejected:
    """One line under a mapping."""
    return read_json(line if isinstance(line, bytes) else line.encode(), 1, Columns(mapping))


@given(row=ROWS, ascii_only=st.booleans(), separators=st.sampled_from([(",", ":"), (", ", ": "), (" , ", " : ")]))
def test_columns_pass_through(row: dict[str, Any], ascii_only: bool, separators: tuple[str, str]) -> None:
    """Every column comes out with the value that went in, however the line is written, but for those of a verdict."""
    found = parse(json.dumps(row, ensure_ascii=ascii_only, separators=separators))
    assert isinstance(found, Row)
    expected = {key: value for key, value in row.items() if key not in VERDICT_COLUMNS}
    assert found.columns == expected
    assert json.dumps(found.columns, sort_keys=True) == json.dumps(expected, sort_keys=True)


@given(row=ROWS)
def test_fields_are_the_columns_of_their_name(row: dict[str, Any]) -> None:
    """The rollout has the values of the row, integers of any size included, and an id in any case."""
    found = parse(json.dumps(row))
    assert isinstance(found, Row)
    rollout = found.rollout
    assert (rollout.completion, rollout.prompt) == (row["completion"], row.get("prompt"))
    assert json.dumps(rollout.reference) == json.dumps(row.get("reference"))
    assert rollout.id == (row.get("id") or "row-000001")


@given(row=ROWS)
def test_head_and_verdict_make_a_row(row: dict[str, Any]) -> None:
    """What is written before a verdict is an object that lacks its closing brace only."""
    found = parse(json.dumps(row))
    assert isinstance(found, Row)
    whole = json.loads(found.head + b',"reward":1}')
    assert whole == {**found.columns, "reward": 1}
    assert list(whole)[-1] == "reward"


@given(line=st.binary(max_size=40).map(lambda line: line.replace(b"\n", b"").strip()).filter(bool))
def test_any_bytes_are_a_row_or_rejected(line: bytes) -> None:
    """No line raises, and what is said about it is one line of JSON."""
    found = parse(line)
    if isinstance(found, Rejected):
        said = found.to_json()
        assert said.count(b"\n") == 1
        assert json.loads(said)["line"] == 1
        assert json.loads(said)["error"]


@pytest.mark.parametrize("kind", REJECTS)
def test_what_is_no_rollout_is_rejected_with_a_reason(kind: str) -> None:
    """Each kind of malformed row is described in words."""
    line, why = REJECTS[kind]
    found = parse(line)
    assert isinstance(found, Rejected)
    assert why in found.error
    assert len(found.error) < 500


@given(depth=st.integers(1, 3 * DEPTH))
def test_depth_decides(depth: int) -> None:
    """A value nested up to the limit passes, and one level more does not."""
    found = parse(b'{"completion":"x","a":' + b"[" * depth + b"]" * depth + b"}")
    assert isinstance(found, Row) is (depth <= DEPTH)


def test_chat_completions() -> None:
    """A completion may be chat messages, with keys of other conventions."""
    messages = [{"role": "assistant", "content": "4", "reasoning_content": "2+2", "refusal": None}]
    found = parse(json.dumps({"completion": messages}))
    assert isinstance(found, Row)
    assert found.rollout.completion[0].reasoning_content == "2+2"  # type: ignore[union-attr]


def test_labels_may_be_integers() -> None:
    """Integers as id, group and prompt_id become text; the columns stay what they are."""
    found = parse('{"completion": "x", "id": 0, "group": 12, "prompt_id": -3}')
    assert isinstance(found, Row)
    assert (found.rollout.id, found.rollout.group, found.rollout.prompt_id) == ("0", "12", "-3")
    assert found.columns["group"] == 12
    assert isinstance(parse('{"completion": "x", "id": true}'), Rejected)


def test_mapping_renames_and_keeps() -> None:
    """A mapped field comes from its column alone, and the column stays in the output under its own name."""
    line = '{"response": "x", "reference": "wrong", "answer": "right"}'
    found = parse(line, completion="response", reference="answer")
    assert isinstance(found, Row)
    assert (found.rollout.completion, found.rollout.reference) == ("x", "right")
    assert found.columns == json.loads(line)


def test_a_column_may_serve_two_fields() -> None:
    """Mapping another field to a column takes nothing from the field of its name."""
    found = parse('{"completion": "x"}', reference="completion")
    assert isinstance(found, Row)
    assert (found.rollout.completion, found.rollout.reference) == ("x", "x")


def test_mapping_to_nothing_ignores_a_column() -> None:
    """`--map step=` is for files in which `step` means something else."""
    found = parse('{"completion": "x", "step": "first"}', step="")
    assert isinstance(found, Row)
    assert found.rollout.step is None
    assert found.columns["step"] == "first"


def test_dots_lead_into_objects() -> None:
    """A mapped column with dots is a path into objects where no column has that very name, which goes first."""
    nested = '{"completion": "x", "reward_model": {"ground_truth": "4", "style": "rule"}}'
    found = parse(nested, reference="reward_model.ground_truth")
    assert isinstance(found, Row)
    assert found.rollout.reference == "4"
    assert found.columns == json.loads(nested)
    found = parse(nested[:-1] + ', "reward_model.ground_truth": 5}', reference="reward_model.ground_truth")
    assert isinstance(found, Row)
    assert found.rollout.reference == 5


@pytest.mark.parametrize("value", ["{}", "null", "7", '"b"', '[{"b": 1}]', '{"B": 1}'])
def test_a_path_that_ends_early_is_a_missing_column(value: str) -> None:
    """Where a path leads nowhere, the field has no value, and the column counts as unseen."""
    columns = Columns({"reference": "a.b"})
    found = read_json(b'{"completion":"x","a":%b}' % value.encode(), 1, columns)
    assert isinstance(found, Row)
    assert found.rollout.reference is None
    assert columns.unseen == {"a.b"}


def test_nested_completions() -> None:
    """The completion itself may lie inside an object, and a missing one is named by its path."""
    found = parse('{"output": {"text": "x"}}', completion="output.text")
    assert isinstance(found, Row)
    assert found.rollout.completion == "x"
    for row, why in (("{}", "no column 'output.text'"), ('{"output": {"text": null}}', "'output.text' is null")):
        rejected = parse(row, completion="output.text")
        assert isinstance(rejected, Rejected)
        assert why in rejected.error


@pytest.mark.parametrize(("value", "kind"), [("5", "number"), ("{}", "object"), ("false", "boolean")])
def test_a_completion_of_a_wrong_type_is_named(value: str, kind: str) -> None:
    """The message says what a completion is, in words of JSON."""
    rejected = parse(f'{{"completion": {value}}}')
    assert isinstance(rejected, Rejected)
    assert rejected.error == f"completion must be text or a list of chat messages, not a JSON {kind}"


def test_mapped_columns_are_watched() -> None:
    """A mapped column counts as unseen until a row has it."""
    columns = Columns({"reference": "answer"})
    columns.rollout({"completion": "x"}, 1)
    assert columns.unseen == {"answer"}
    columns.rollout({"completion": "x", "answer": None}, 2)
    assert not columns.unseen


@pytest.mark.parametrize("options", [["reference"], ["=answer"], ["solution=answer"], ["id=a", "id=b"]])
def test_bad_mappings_are_refused(options: list[str]) -> None:
    """What is no field=column, names no field, or names it twice is refused in words."""
    with pytest.raises(DumpError, match=r"--map|no field"):
        Columns.of(options)


def test_missing_completion_names_the_columns() -> None:
    """The message shows which columns there are, and how to name the right one."""
    with pytest.raises(RolloutError, match=r"columns: response, answer\); name it with --map completion=COLUMN"):
        Columns().rollout({"response": "x", "answer": "y"}, 1)
