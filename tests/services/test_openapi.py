"""The OpenAPI document is what was agreed on, and what the service does.

After a wanted change: `REFRESH=1 pytest tests/services/test_openapi.py`, and look at the difference.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.core.result import Ok
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from service import running_service

from rewarden.services.app import create_app
from rewarden.services.settings import Settings

FROZEN = Path(__file__).parents[2] / "docs/reference/openapi.json"


def no_fault(_: Any, answer: Any, __: Any) -> None:
    """503 is an answer: there is no queue here."""
    assert answer.status_code < 500 or answer.status_code == 503, answer.content


CHECKS = [
    no_fault,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    """The document of a service."""
    return create_app(Settings()).openapi()


def operations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every operation, with its method and path."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield f"{method} {path}", operation


def test_frozen(document: dict[str, Any]) -> None:
    """docs/reference/openapi.json is the document."""
    text = json.dumps(document, indent=2, sort_keys=True) + "\n"
    if os.environ.get("REFRESH"):
        FROZEN.write_text(text)
    assert json.loads(FROZEN.read_text()) == document


def test_every_error_is_a_declared_problem(document: dict[str, Any]) -> None:
    """Each operation declares its errors, all as problem documents, and has a summary and an id of its own."""
    ids = set()
    for name, operation in operations(document):
        assert operation["summary"], name
        ids.add(operation["operationId"])
        for status, answer in operation["responses"].items():
            if not status.startswith("2"):
                assert list(answer["content"]) == ["application/problem+json"], (name, status)
    assert len(ids) == len(list(operations(document)))


def test_references_lead_somewhere(document: dict[str, Any]) -> None:
    """Every `$ref` names a schema of the document."""
    names = {name.partition('"')[0] for name in json.dumps(document).split('"#/components/schemas/')[1:]}
    assert names <= document["components"]["schemas"].keys()


def test_bodies_have_examples(document: dict[str, Any]) -> None:
    """What scores rollouts shows an example of the body and of the answer."""
    operation = document["paths"]["/v1/score"]["post"]
    assert operation["requestBody"]["content"]["application/json"]["examples"]
    assert operation["responses"]["200"]["content"]["application/json"]["example"]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[bool, str]]:
    """Services for generated requests, with keys (True) and without."""
    file = tmp_path_factory.mktemp("keys") / "keys.json"
    file.write_text('{"keys": []}')
    with running_service(max_timeout_s=20.0) as url, running_service(keys=file) as closed:
        yield {False: str(url), True: str(closed)}


@pytest.mark.slow
@pytest.mark.parametrize("mode", list(GenerationMode))
@pytest.mark.parametrize("shown", [{}, {"X-API-Key": "rw_wrong_key"}], ids=["open", "wrong key"])
def test_generated_requests(guarded: dict[bool, str], mode: GenerationMode, shown: dict[str, str]) -> None:
    """No generated request, valid or not, gets a 500, an undeclared status, or an answer that is not as declared."""
    url = guarded[bool(shown)]
    schema = schemathesis.openapi.from_dict(httpx.get(f"{url}/openapi.json").json())
    answered: set[str] = set()

    def attack(operation: Any) -> None:
        @settings(
            max_examples=15,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def one(case: Any) -> None:
            case.call_and_validate(base_url=url, headers=shown, checks=CHECKS, timeout=60)
            answered.add(operation.label)

        try:
            one()
        except Unsatisfiable:
            assert not operation.body, operation.label  # nothing to get wrong in it

    for found in schema.get_all_operations():
        assert isinstance(found, Ok)
        attack(found.ok())
    assert "POST /v1/score" in answered
