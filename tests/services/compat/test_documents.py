"""The OpenAPI document knows every drop-in endpoint, with its shapes, its examples and its errors."""

from __future__ import annotations

import json
import re
from typing import Any

import httpx
import jsonschema
import pytest
from service import Running

PATHS = [
    "/get_reward",
    "/remote_rm",
    "/verify",
    "/seed_session",
    "/close_session",
    "/v1/score/evaluation",
    "/classify",
    "/recipes/{recipe}/classify",
    "/score",
    "/recipes/{recipe}/score",
]


@pytest.fixture(scope="module")
def document(url: Running) -> dict[str, Any]:
    """The document of the running service."""
    found: dict[str, Any] = httpx.get(f"{url}/openapi.json").json()
    return found


@pytest.mark.parametrize("path", PATHS)
def test_every_endpoint_is_described(document: dict[str, Any], path: str) -> None:
    """A request shape with examples that fit it, the reply, and every error as a problem document."""
    operation = document["paths"][path]["post"]
    body = operation["requestBody"]["content"]["application/json"]
    schemas = document["components"]
    for example in body["examples"].values():
        jsonschema.validate(example["value"], body["schema"] | {"components": schemas})
    assert operation["responses"]["200"]["content"]["application/json"]["schema"]
    for status in ("400", "404", "409", "413", "415", "422", "429", "503"):
        content = operation["responses"][status]["content"]["application/problem+json"]
        assert content["schema"] == {"$ref": "#/components/schemas/ProblemDocument"}


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    """No schema that is referred to is missing."""
    schemas = document["components"]["schemas"]
    todo: list[Any] = [document["paths"][path] for path in PATHS]
    seen: set[str] = set()
    while todo:
        found = set(re.findall(r"#/components/schemas/([\w.-]+)", json.dumps(todo.pop()))) - seen
        assert found <= set(schemas)
        seen |= found
        todo += [schemas[name] for name in found]
    assert {"NeMoGymRequest", "Message", "ProblemDocument"} <= seen


@pytest.mark.parametrize("path", [path for path in PATHS if path.endswith(("_reward", "_rm", "verify"))])
def test_the_examples_are_graded(url: Running, document: dict[str, Any], path: str) -> None:
    """What the document shows can be sent as it is."""
    examples = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["examples"]
    for example in examples.values():
        assert httpx.post(f"{url}{path}", json=example["value"]).status_code == 200


def test_the_services_own_path_stays_its_own(url: Running) -> None:
    """`/v1/score`, which vLLM has too, takes rollouts, and vLLM's pairs are refused there."""
    own = {"recipe": "math", "rollouts": [{"completion": "\\boxed{2}", "reference": "2"}]}
    assert httpx.post(f"{url}/v1/score", json=own).json()["verdicts"][0]["reward"] == 1.0
    assert httpx.post(f"{url}/v1/score", json={"text_1": "2", "text_2": "2"}).status_code == 422
