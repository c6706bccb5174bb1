"""A service as trainers meet it: the built-in recipes, and `named`, whose verdict the completion names."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from service import Running, running_service

import rewarden
from rewarden.core.recipe import Part, Route


@pytest.fixture(scope="package")
def url() -> Iterator[Running]:
    """The address of the service."""
    named = rewarden.Recipe(name="named", routes=[Route(parts=[Part(scorer="trainer_scorers:Named")])])
    with running_service(recipes={"named": named}, max_body_bytes=1 << 20, max_rollouts=100) as found:
        yield found


@pytest.fixture(params=["not json", "a list", "nan", "huge number", "deep", "nothing", "text of a million letters"])
def rubbish(request: pytest.FixtureRequest) -> bytes:
    """A body that is no request of any trainer."""
    bodies = {
        "not json": b"{",
        "a list": b"[1, 2]",
        "nan": b'{"query": NaN, "prompt": NaN, "input": NaN, "messages": NaN, "text_1": NaN, "response": NaN}',
        "huge number": b'{"response": 1e999, "query": [1e999], "input": 1e999, "messages": [1e999]}',
        "deep": b'{"label": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        "nothing": b"",
        "text of a million letters": b'"' + b"a" * 1_000_000 + b'"',
    }
    return bodies[request.param]
