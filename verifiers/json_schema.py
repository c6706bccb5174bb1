r"""Answers that are JSON of a given schema, and optionally of a given content.

Covered: JSON Schema in the drafts that `jsonschema` knows (2020-12 unless `$schema` says otherwise), `$ref` within the
schema and to the meta-schemas. Not covered: references to other places (nothing is fetched: `bad_reference`); `format`,
which the standard leaves an annotation; `pattern` in ECMAScript's dialect (Python's is used).

Who is to blame when it takes too long: before the answer is looked at, every part of the schema is tried on the five
simplest values. What is dear or endless then is the schema's own doing; what is dear later is the answer's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, cast, get_args

from ..core.pool import Fault, stage
from ..core.reasons import Reason
from ..core.scorer import Resource, fault_verdict
from ..core.verdict import Verdict, correct, incorrect, ungraded
from .answer import AnswerScorer, BadReferenceError, check_choice, refusal, shown, shown_extraction
from .json_text import DuplicateKeys, NotJsonError, TooDeepError, difference, find_json, read_json

if TYPE_CHECKING:
    from ..core.pool import Report

_KEYS = ("schema", "equals", "subset")
_OF_SCHEMAS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies")
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
_SINGLE = (
    "items", "additionalItems", "additionalProperties", "unevaluatedItems", "unevaluatedProperties", "contains",
    "propertyNames", "not", "if", "then", "else",
)  # fmt: skip
_PROBES: tuple[Any, ...] = (None, 0, "", [], {})
_MAX_PARTS = 5_000
_ROOT = "urn:rewarden:schema"


class Task(NamedTuple):
    """What an answer is compared with."""

    validator: Any
    """A jsonschema validator that fetches nothing."""
    expected: Any
    relation: str
    """`equals`, `subset` or empty."""


class JsonSchemaScorer(AnswerScorer):
    """Right when the answer is JSON, valid under the reference's schema, and has the content asked for.

    `reference`: `{"schema": ..., "equals": value}` or `{"schema": ..., "subset": value}`, both contents optional, or
    the same as JSON text. `subset` allows objects to have more keys than the value. `duplicate_keys`: what to do about
    repeated keys; `last` takes the last one, as most readers do.
    """

    name = "json_schema"
    resource = Resource.CPU
    libraries = ("jsonschema", "jsonschema-specifications", "referencing")
    preload = ("jsonschema",)

    def __init__(self, *, duplicate_keys: DuplicateKeys = "reject") -> None:
        check_choice("duplicate_keys", duplicate_keys, get_args(DuplicateKeys))
        self.duplicate_keys: DuplicateKeys = duplicate_keys

    def config(self) -> Mapping[str, Any]:
        """The options."""
        return {"duplicate_keys": self.duplicate_keys}

    def warm(self) -> None:
        """Import the validator and its meta-schemas."""
        _prepare(json.dumps({"schema": True}))

    def on_fault(self, rollout: Any, report: Report) -> Verdict:
        """Too much CPU or memory is the fault of the schema or of the answer, whichever was being worked on."""
        if report.fault in (Fault.CPU, Fault.MEMORY):
            if report.stage == "reference":
                return ungraded(Reason.BAD_REFERENCE, "the schema alone, on the simplest values, is beyond the budget")
            if report.stage == "answer":
                return incorrect(Reason.TOO_COMPLEX, "the answer cannot be validated within the budget")
        return fault_verdict(report)

    def read_reference(self, reference: Any) -> Task:
        """The prepared schema and the expected content."""
        stage("reference")
        if isinstance(reference, str):
            text = reference
        elif isinstance(reference, Mapping):
            try:
                text = json.dumps(dict(reference), sort_keys=True, allow_nan=False)
            except (TypeError, ValueError, RecursionError) as error:
                raise BadReferenceError(f"the reference is no JSON value: {shown(str(error), 80)}") from None
        else:
            raise BadReferenceError("the reference must be an object with the key 'schema'")
        task = _prepare(text)
        if isinstance(task, str):
            raise BadReferenceError(task)
        return task

    def grade(self, completion: Any, reference: Task) -> Verdict:
        """Read the JSON, validate it, compare it."""
        stage("answer")
        found = find_json(completion)
        text = found.answer if found.answer is not None else "".join(found.candidates)
        if not text.strip():
            return refusal(found)
        evidence = shown_extraction(found)
        try:
            value = read_json(text, self.duplicate_keys)
        except TooDeepError as error:
            return incorrect(Reason.TOO_COMPLEX, f"not read: {error}", evidence=evidence)
        except NotJsonError as error:
            if found.problem is not None:
                return refusal(found)
            return incorrect(Reason.INVALID_FORMAT, f"no JSON: {shown(str(error))}", evidence=evidence)
        try:
            flaw = next(reference.validator.iter_errors(value), None)
        except RecursionError:
            return incorrect(Reason.TOO_COMPLEX, "the answer is nested too deeply for the schema", evidence=evidence)
        if flaw is not None:
            why = f"{flaw.json_path}: {flaw.message}"
            return incorrect(Reason.INVALID_FORMAT, shown(why), evidence={**evidence, "keyword": str(flaw.validator)})
        if reference.relation:
            where = difference(value, reference.expected, subset=reference.relation == "subset")
            if where is not None:
                return incorrect(explanation=shown(where), evidence=evidence)
        return correct(evidence=evidence)


@lru_cache(maxsize=64)
def _prepare(text: str) -> Task | str:
    """The task of a reference, or what is wrong with it. All members of a group have the same one."""
    try:
        reference = read_json(text)
    except (NotJsonError, TooDeepError) as error:
        return f"the reference cannot be read: {shown(str(error))}"
    if not isinstance(reference, dict) or "schema" not in reference:
        return "the reference must be an object with the key 'schema'"
    unknown = sorted(key[:40] for key in reference if key not in _KEYS)
    if unknown:
        return f"the reference has unknown keys {unknown[:5]}; it may have {list(_KEYS)}"
    relation = [key for key in ("equals", "subset") if key in reference]
    if len(relation) == 2:
        return "the reference has both 'equals' and 'subset'; keep one"
    schema = reference["schema"]
    if isinstance(schema, str):
        try:
            schema = read_json(schema)
        except (NotJsonError, TooDeepError) as error:
            return f"the schema cannot be read: {shown(str(error))}"
    validator = _checked(schema)
    if isinstance(validator, str):
        return validator
    expected = reference[relation[0]] if relation else None
    if relation == ["equals"] and not validator.is_valid(expected):
        return "the expected value is not valid under the schema, so that no answer could be right"
    return Task(validator, expected, relation[0] if relation else "")


def _checked(schema: Any) -> Any:
    """A validator for the schema, or what is wrong with it."""
    from jsonschema import SchemaError
    from jsonschema.validators import Draft202012Validator, validator_for
    from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import specification_with

    if not isinstance(schema, (dict, bool)):
        return "the schema must be an object, true or false"
    dialect = schema.get("$schema") if isinstance(schema, dict) else None
    kind = validator_for(schema, default=Draft202012Validator) if isinstance(dialect, str) else Draft202012Validator
    name = kind.META_SCHEMA.get("$id") or kind.META_SCHEMA["id"]
    if dialect is not None and (not isinstance(dialect, str) or name.rstrip("#") != dialect.rstrip("#")):
        return f"the schema's dialect {shown(str(dialect), 60)!r} is not known"
    pointers = list(islice(_parts(schema), _MAX_PARTS + 1))
    if len(pointers) > _MAX_PARTS:
        return f"the schema has more than {_MAX_PARTS} parts"
    try:
        kind.check_schema(cast("Any", schema))
        registry = REGISTRY.with_resource(_ROOT, specification_with(name).create_resource(schema))
        for pointer in pointers:
            part = kind({"$ref": f"{_ROOT}#{pointer}"}, registry=registry)
            for probe in _PROBES:
                part.is_valid(probe)
    except SchemaError as error:
        return f"the schema is not valid: {shown(error.json_path, 60)}: {shown(error.message, 120)}"
    except Unresolvable as error:
        return f"the schema refers to {shown(str(error.ref), 80)!r}, which is not part of it; nothing is fetched"
    except RecursionError:
        return "the schema refers to itself without end, or is nested too deeply"
    except (re.error, ValueError, TypeError, OverflowError) as error:
        return f"the schema cannot be used: {type(error).__name__}: {shown(str(error), 120)}"
    return kind({"$ref": _ROOT}, registry=registry)


def _parts(schema: Any) -> Iterator[str]:
    """JSON pointers, as in URI fragments, of the schema and all schemas within it."""
    open_parts = [("", schema)]
    while open_parts:
        pointer, part = open_parts.pop()
        if not isinstance(part, (dict, bool)):
            continue
        yield pointer
        if not isinstance(part, dict):
            continue
        for keyword in _OF_SCHEMAS:
            if isinstance(part.get(keyword), dict):
                open_parts += [(f"{pointer}/{keyword}/{_escaped(key)}", inner) for key, inner in part[keyword].items()]
        for keyword in _LISTS:
            if isinstance(part.get(keyword), list):
                open_parts += [(f"{pointer}/{keyword}/{i}", inner) for i, inner in enumerate(part[keyword])]
        open_parts += [(f"{pointer}/{keyword}", part[keyword]) for keyword in _SINGLE if keyword in part]


def _escaped(key: str) -> str:
    from urllib.parse import quote

    return quote(key.replace("~", "~0").replace("/", "~1"), safe="~", errors="replace")
