"""Generated requests for jobs, to a service that has them."""

from __future__ import annotations

import contextlib
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


def no_fault(_: Any, answer: Any, __: Any) -> None:
    """There is a queue, and it answers."""
    assert answer.status_code < 500, answer.content


@pytest.mark.slow
@pytest.mark.parametrize("mode", list(GenerationMode))
def test_jobs(redis_url: str, mode: GenerationMode) -> None:
    """No request for a job, also for one that is there, gets a 500, or an answer that is not declared."""
    checks = [
        no_fault,
        status_code_conformance,
        content_type_conformance,
        response_headers_conformance,
        response_schema_conformance,
    ]
    answered: set[tuple[str, int]] = set()
    with running_service(queue=redis_url, max_queued_batches=10**9) as url:
        body = {"recipe": "math", "rollouts": [{"completion": "1", "reference": "1"}]}
        job = httpx.post(f"{url}/v1/jobs", json=body).json()["id"]
        httpx.delete(f"{url}/v1/jobs/{job}")
        schema = schemathesis.openapi.from_dict(httpx.get(f"{url}/openapi.json").json())

        def attack(operation: Any) -> None:
            @settings(
                max_examples=30,
                deadline=None,
                derandomize=True,
                database=None,
                phases=[Phase.explicit, Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            @given(case=operation.as_strategy(generation_mode=mode))
            def one(case: Any) -> None:
                for known in (False, True):
                    if known and "job" in (case.path_parameters or {}):
                        case.path_parameters["job"] = job
                    answer = case.call_and_validate(base_url=str(url), checks=checks, timeout=60)
                    answered.add((operation.label, answer.status_code))

            with contextlib.suppress(Unsatisfiable):  # there is nothing to get wrong in it
                one()

        for found in schema.get_all_operations():
            assert isinstance(found, Ok)
            if "/v1/jobs" in found.ok().path:
                attack(found.ok())
    assert ("POST /v1/jobs", 422) in answered or mode is GenerationMode.POSITIVE
    if mode is GenerationMode.POSITIVE:
        assert {("POST /v1/jobs", 202), ("GET /v1/jobs/{job}", 200), ("DELETE /v1/jobs/{job}", 200)} <= answered
