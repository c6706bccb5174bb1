"""The JSON schema scorer: format, content, and whose fault it is."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from grading import grade
from hypothesis import given
from hypothesis import strategies as st

from rewarden import Engine, Outcome, Reason, Recipe, Rollout
from rewarden.verifiers.json_schema import JsonSchemaScorer

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
TREE = {
    "$ref": "#/$defs/node",
    "$defs": {"node": {"properties": {"next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}}}},
}


@pytest.mark.parametrize(
    ("completion", "outcome", "reason"),
    [
        ('{"a": 1}', Outcome.CORRECT, None),
        ('```json\n{"a": 1}\n```', Outcome.CORRECT, None),
        ('```json\n{"a": 1}', Outcome.CORRECT, None),
        ('<think>{"a": "x"}</think>{"a": 1}', Outcome.CORRECT, None),
        ('{"a": "x"}', Outcome.INCORRECT, Reason.INVALID_FORMAT),
        ("{}", Outcome.INCORRECT, Reason.INVALID_FORMAT),
        ('Sure: {"a": 1}', Outcome.INCORRECT, Reason.INVALID_FORMAT),
        ('{"a": 1, "a": 2}', Outcome.INCORRECT, Reason.INVALID_FORMAT),
        ('{"a": NaN}', Outcome.INCORRECT, Reason.INVALID_FORMAT),
        ('{"a": 1', Outcome.INCORRECT, Reason.INVALID_FORMAT),
        ('```json\n{"a": ', Outcome.NO_ANSWER, Reason.TRUNCATED),
        ('<answer>{"a": ', Outcome.NO_ANSWER, Reason.TRUNCATED),
        ('<think>{"a": 1}', Outcome.NO_ANSWER, Reason.UNFINISHED_THINKING),
        ("", Outcome.NO_ANSWER, Reason.EMPTY),
        ("<answer></answer>", Outcome.NO_ANSWER, Reason.EMPTY),
        ("```json\n```", Outcome.NO_ANSWER, Reason.EMPTY),
        ("[" * 100_000, Outcome.INCORRECT, Reason.TOO_COMPLEX),
        ('{"a": ' + "1" * 5000 + "}", Outcome.INCORRECT, Reason.TOO_COMPLEX),
    ],
    ids=range(18),
)
def test_format(completion: str, outcome: Outcome, reason: Reason | None) -> None:
    """Valid JSON under the schema is right, and everything else is the completion's own fault."""
    verdict = grade(JsonSchemaScorer(), completion, {"schema": SCHEMA})
    assert (verdict.outcome, verdict.reason) == (outcome, reason)


@pytest.mark.parametrize(
    ("content", "completion", "right"),
    [
        ({"equals": {"a": 1}}, '{"a": 1.0}', True),
        ({"equals": {"a": 1}}, '{"a": 1, "b": 2}', False),
        ({"equals": {"a": 1}}, '{"a": 2}', False),
        ({"subset": {"a": 1}}, '{"a": 1, "b": 2}', True),
        ({"subset": {"b": 2}}, '{"a": 1}', False),
    ],
)
def test_content(content: dict[str, Any], completion: str, right: bool) -> None:
    """A valid answer must also have the content asked for; the reference may be JSON text."""
    reference = {"schema": SCHEMA, **content}
    for form in (reference, json.dumps(reference), {**reference, "schema": json.dumps(SCHEMA)}):
        assert grade(JsonSchemaScorer(), completion, form).reward == float(right)


BROKEN: list[Any] = [
    None, 5, "", "{", "[]", [], {}, {"equals": 1}, {"schema": None}, {"schema": 5}, {"schema": "{"},
    {"schema": {}, "answer": 1},
    {"schema": {"type": "objekt"}}, {"schema": {"pattern": "("}}, {"schema": {"patternProperties": {"(": {}}}},
    {"schema": {"$ref": "https://example.com/s.json"}}, {"schema": {"properties": {"q": {"$ref": "file:///etc/passwd"}}}},
    {"schema": {"$ref": "#/$defs/none"}}, {"schema": {"$ref": "#"}}, {"schema": {"allOf": [{"$ref": "#"}]}},
    {"schema": {"properties": {"q": {"$ref": "#/properties/q"}}}}, {"schema": {"$schema": "https://example.com/draft"}},
    {"schema": {"$schema": 5}}, {"schema": {}, "equals": 1, "subset": 1}, {"schema": SCHEMA, "equals": {"a": "x"}},
    {"schema": {"minimum": float("nan")}}, {"schema": {"const": 10**5000}}, {"schema": {"enum": {1, 2}}},
    {"schema": {"anyOf": [{}] * 6000}},
]  # fmt: skip


@pytest.mark.parametrize("reference", BROKEN, ids=range(len(BROKEN)))
def test_broken_references_are_never_graded(reference: Any) -> None:
    """A schema that is invalid, endless, remote or at odds with its content gives no reward, whatever is said."""
    for completion in ('{"a": 1}', "{}", "no JSON", "", "```json\n{"):
        verdict = grade(JsonSchemaScorer(), completion, reference)
        assert (verdict.reward, verdict.reason) == (None, Reason.BAD_REFERENCE)
        assert len(verdict.explanation) < 300


def deep(levels: int) -> dict[str, Any]:
    """A schema nested so deep that reading it is refused."""
    schema: dict[str, Any] = {}
    for _ in range(levels):
        schema = {"not": schema}
    return schema


def test_deep_schemas_are_refused() -> None:
    """Nesting in a schema is bounded as in an answer."""
    assert grade(JsonSchemaScorer(), "1", {"schema": deep(98)}).graded
    for levels in (200, sys.getrecursionlimit() * 2):
        assert grade(JsonSchemaScorer(), "1", {"schema": deep(levels)}).reason is Reason.BAD_REFERENCE


@pytest.mark.parametrize(
    "schema",
    [
        {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"},
        {"$schema": "http://json-schema.org/draft-04/schema#", "type": "object"},
        {"$schema": "https://json-schema.org/draft/2019-09/schema", "type": "object"},
        {"$id": "https://example.com/s", "$defs": {"q": {"$anchor": "k", "type": "object"}}, "$ref": "#k"},
        {"$defs": {"a/b~ %é": {"type": "object"}}, "$ref": "#/$defs/a~1b~0%20%25%C3%A9"},
        {"$ref": "https://json-schema.org/draft/2020-12/schema"},
        {"properties": {"$ref": {"type": "string"}}, "type": "object"},
        TREE,
        True,
        {},
    ],
)
def test_schemas_that_work(schema: Any) -> None:
    """All drafts, anchors, odd keys, recursion and references to meta-schemas work without a network."""
    assert grade(JsonSchemaScorer(), "{}", {"schema": schema}).outcome is Outcome.CORRECT


def test_recursive_schemas_take_the_deepest_answers() -> None:
    """An answer as deep as may be is validated by a recursive schema."""
    answer = '{"next":' * 99 + "null" + "}" * 99
    assert grade(JsonSchemaScorer(), answer, {"schema": TREE}).outcome is Outcome.CORRECT
    assert grade(JsonSchemaScorer(), answer.replace("null", "5"), {"schema": TREE}).graded


def test_repeated_keys_as_configured() -> None:
    """`duplicate_keys = "last"` takes the last of repeated keys."""
    assert (
        grade(JsonSchemaScorer(duplicate_keys="last"), '{"a": "x", "a": 2}', {"schema": SCHEMA}).outcome
        is Outcome.CORRECT
    )


@given(st.text(max_size=50) | st.text(alphabet='{}[]",:1a `\n', max_size=50))
def test_any_completion_is_graded(completion: str) -> None:
    """Whatever a model writes, a good schema gives a finite reward and small evidence."""
    verdict = grade(JsonSchemaScorer(), completion, {"schema": SCHEMA})
    assert verdict.reward in (0.0, 1.0)


def test_invalid_answers_say_where() -> None:
    """The explanation has the path, and stays short whatever the answer holds."""
    verdict = grade(JsonSchemaScorer(), json.dumps({"a": "x" * 100_000}), {"schema": SCHEMA})
    assert verdict.explanation.startswith("$.a: ")
    assert len(verdict.to_json()) < 1500


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    """The scorer in its pool of two workers."""
    recipe = Recipe.model_validate(
        {
            "name": "test",
            "routes": [{"parts": [{"scorer": "json_schema"}]}],
            "limits": {"cpu_s": 0.5, "worker_memory_mb": 256},
        }
    )
    with Engine(recipe, workers=2, cache=None) as made:
        yield made


def doubling(levels: int) -> dict[str, Any]:
    """A schema whose parts refer twice to the next, so that every value costs 2^levels."""
    defs: dict[str, Any] = {f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(levels)}
    return {"$defs": {**defs, f"d{levels}": False}, "properties": {"a": {"$ref": "#/$defs/d0"}}}


def test_blame(engine: Engine) -> None:
    """A pattern that the answer drives mad is the answer's fault, a schema that is dear for any value its own."""
    pattern = {"schema": {"type": "string", "pattern": "^(a+)+$"}}
    rows = [
        (json.dumps("aaa"), pattern, Outcome.CORRECT, None),
        (json.dumps("a" * 60 + "b"), pattern, Outcome.INCORRECT, Reason.TOO_COMPLEX),
        ('{"a": 1}', {"schema": doubling(40)}, Outcome.UNGRADED, Reason.BAD_REFERENCE),
        ("{}", {"schema": doubling(40)}, Outcome.UNGRADED, Reason.BAD_REFERENCE),
        ('{"a": 1}', {"schema": SCHEMA}, Outcome.CORRECT, None),
    ]
    verdicts = engine.score(
        [Rollout(completion=completion, reference=reference) for completion, reference, _, _ in rows]
    )
    assert [(verdict.outcome, verdict.reason) for verdict in verdicts] == [
        (outcome, reason) for *_, outcome, reason in rows
    ]


def test_memory_is_the_answers_fault(engine: Engine) -> None:
    """An answer that takes more memory than a worker has is too complex."""
    verdict = engine.score(
        [Rollout(completion="[" + "[]," * 4_000_000 + "[]]", reference={"schema": {"type": "object"}})]
    )[0]
    assert verdict.outcome is Outcome.INCORRECT
    assert verdict.reason in (Reason.TOO_COMPLEX, Reason.INVALID_FORMAT)


def test_misspelt_options_are_refused() -> None:
    """An unknown policy for repeated keys is an error at once."""
    with pytest.raises(ValueError, match="duplicate_keys must be one of"):
        JsonSchemaScorer(duplicate_keys="first")  # type: ignore[arg-type]
