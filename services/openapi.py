"""The OpenAPI document: bodies are parsed by `core/wire.py`, so their schemas are declared here."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import models_json_schema

from ..core.verdict import Verdict
from ..core.wire import JobRequest, ScoreRequest
from .problems import ProblemDocument, responses

REF = "#/components/schemas/{model}"

MODELS: list[type[BaseModel]] = [ScoreRequest, JobRequest, ProblemDocument]
"""What the document describes besides what the framework sees. Other routes add theirs."""

DESCRIPTION = """\
Errors of a request as a whole are problem documents (RFC 9457). What is wrong with one rollout is its verdict, and \
the others are graded. A body may be sent with `Content-Encoding: gzip` or `zstd`."""


def schema_of(model: type[BaseModel]) -> dict[str, str]:
    """A reference to the schema of a model."""
    return {"$ref": REF.format(model=model.__name__)}


def json_body(schema: dict[str, Any], examples: dict[str, Any]) -> dict[str, Any]:
    """The `openapi_extra` of a route that parses its own body."""
    named = {name: {"value": value} for name, value in examples.items()}
    return {
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": schema, "examples": named}},
        }
    }


def install(app: FastAPI) -> None:
    """Make the app describe itself so."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _document(app)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]


def _document(app: FastAPI) -> dict[str, Any]:
    made = get_openapi(
        title=app.title, version=app.version, summary=app.summary, description=DESCRIPTION, routes=app.routes
    )
    components = made.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    _, models = models_json_schema([(model, "validation") for model in MODELS], ref_template=REF)
    schemas.update(models["$defs"])
    schemas.update(_verdict())
    for methods in made["paths"].values():
        for operation in methods.values():
            answer = operation["responses"].get("422", {})
            if "application/json" in answer.get("content", {}):  # the framework's own, which `app.py` replaces
                operation["responses"]["422"] = responses("invalid_request")[422]
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    components["securitySchemes"] = {
        "bearer": {"type": "http", "scheme": "bearer", "description": "An API key: `rw_...`"},
        "header": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
    }
    made["security"] = [{"bearer": []}, {"header": []}, {}]
    return made


def _verdict() -> dict[str, Any]:
    """The schemas of a verdict and of what it is made of."""
    schema = TypeAdapter(Verdict).json_schema(ref_template=REF, mode="serialization")
    found: dict[str, Any] = schema.pop("$defs")
    schema["required"] = ["id", "reward", "outcome"]
    return {**found, "Verdict": schema}
