"""What a service answers."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from service import Running, running_service


@pytest.fixture(scope="module")
def url() -> Iterator[Running]:
    """A service with all kinds of work."""
    with running_service() as found:
        yield found


def test_probes_and_offers(url: Running) -> None:
    """A running service is alive and ready, and lists what it offers."""
    assert httpx.get(f"{url}/livez").json() == {"status": "ok"}
    assert httpx.get(f"{url}/readyz").json() == {"status": "ok"}
    offer = httpx.get(f"{url}/v1/scorers").json()
    assert {"math", "auto", "choice"} <= {recipe["name"] for recipe in offer["recipes"]}
    assert offer["jobs"] is False


def test_one_verdict_for_each_in_order(url: Running) -> None:
    """Every rollout has its verdict, in order; what is none of its own fault alone."""
    rollouts = [
        {"id": "a", "completion": "\\boxed{2/4}", "reference": "1/2"},
        {"id": "b", "x": 1},
        {"id": "c", "completion": "The answer is (B).", "reference": "B", "scorer": "choice"},
        {"id": "d", "completion": "7", "reference": "7", "scorer": "os.system"},
    ]
    answer = httpx.post(f"{url}/v1/score", json={"recipe": "math", "rollouts": rollouts})
    assert answer.status_code == 200
    assert answer.json()["recipe"] == {"name": "math", "version": "1"}
    assert [(v["reward"], v["outcome"], v.get("reason")) for v in answer.json()["verdicts"]] == [
        (1.0, "correct", None),
        (None, "ungraded", "bad_rollout"),
        (1.0, "correct", None),
        (None, "ungraded", "no_route"),
    ]


def test_status_metrics_and_openapi(url: Running) -> None:
    """The dashboard's numbers, the metrics and the document can be read."""
    httpx.post(f"{url}/v1/score", json={"recipe": "exact", "rollouts": [{"completion": "x", "reference": "x"}]})
    assert httpx.get(f"{url}/v1/status").json()["scorers"]["exact"] == {"correct": 1}
    assert 'rewarden_verdicts_total{outcome="correct",scorer="exact"} 1.0' in httpx.get(f"{url}/metrics").text
    assert "/v1/score" in httpx.get(f"{url}/openapi.json").json()["paths"]
