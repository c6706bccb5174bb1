"""What a service answers to requests that are in order."""

from __future__ import annotations

import gzip
import json

import httpx
import pytest
import service_scorers
import zstandard
from service import Running, running_service, until

from rewarden import Recipe, Rollout, Verdict
from rewarden.core.wire import RequestError, ScoreOptions, decode_request

MIXED = [
    {"id": "a", "completion": "\\boxed{2/4}", "reference": "1/2"},
    {"id": "b", "x": 1},
    {"id": "c", "completion": "The answer is (B).", "reference": "B", "scorer": "choice"},
    {"id": "d", "completion": "7", "reference": "7", "scorer": "nobody"},
]


def test_probes_and_offers(url: Running) -> None:
    """A running service is alive and ready, and lists what it offers."""
    assert httpx.get(f"{url}/livez").json() == {"status": "ok"}
    assert httpx.get(f"{url}/readyz").json() == {"status": "ok"}
    offer = httpx.get(f"{url}/v1/scorers").json()
    recipes = {recipe["name"]: recipe for recipe in offer["recipes"]}
    assert {"math", "auto", "choice"} <= recipes.keys()
    assert recipes["math"]["kinds"] == ["math"]
    assert recipes["majority"]["unit"] == "group"
    assert "math" in offer["kinds"]
    assert offer["jobs"] is False


def test_one_verdict_for_each_in_order(url: Running) -> None:
    """Every rollout has its verdict, in order, under its own recipe; a bad one costs the others nothing."""
    answer = httpx.post(f"{url}/v1/score", json={"recipe": "math@1", "rollouts": MIXED})
    assert answer.status_code == 200
    assert answer.json()["recipe"] == {"name": "math", "version": "1"}
    assert [(v["reward"], v["outcome"], v.get("reason")) for v in answer.json()["verdicts"]] == [
        (1.0, "correct", None),
        (None, "ungraded", "bad_rollout"),
        (1.0, "correct", None),
        (None, "ungraded", "no_route"),
    ]


def test_same_verdicts_as_in_process(url: Running) -> None:
    """What the service says is, byte for byte, what an engine says in this process."""
    from rewarden import Engine

    rollouts = [Rollout(id=str(i), completion=f"It is \\boxed{{{i}/2}}", reference=f"{i % 7}/2") for i in range(300)]
    sent = {"recipe": "math", "rollouts": [r.model_dump(exclude_defaults=True) for r in rollouts]}
    found = httpx.post(f"{url}/v1/score", json=sent).json()["verdicts"]
    with Engine("math", workers=1) as engine:
        assert [Verdict.from_dict(one) for one in found] == [
            Verdict.from_dict(json.loads(verdict.to_json())) for verdict in engine.score(rollouts)
        ]


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_packed_bodies(url: Running, coding: str) -> None:
    """A packed body is unpacked; a large answer is packed for those who say that they can read it."""
    body = json.dumps({"recipe": "exact", "rollouts": [{"id": "i" * 30, "completion": "x", "reference": "x"}] * 300})
    packed = gzip.compress(body.encode()) if coding == "gzip" else zstandard.compress(body.encode())
    head = {"Content-Type": "application/json", "Content-Encoding": coding}
    plain = httpx.post(f"{url}/v1/score", content=packed, headers={**head, "Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    zipped = httpx.post(f"{url}/v1/score", content=packed, headers={**head, "Accept-Encoding": "zstd"})
    assert zipped.headers["content-encoding"] == "zstd"
    assert zipped.json() == plain.json()
    assert len(plain.json()["verdicts"]) == 300


def test_request_ids(url: Running) -> None:
    """A sane X-Request-ID is taken over and any other replaced; every answer has one, problems also in their body."""
    assert httpx.get(f"{url}/livez", headers={"X-Request-ID": "run-7/step.3"}).headers["x-request-id"] == "run-7/step.3"
    made = httpx.get(f"{url}/nothing", headers={"X-Request-ID": "<script>" * 40})
    assert made.headers["x-request-id"] == made.json()["request_id"]
    assert len(made.json()["request_id"]) == 16


def test_status_and_metrics() -> None:
    """Verdicts are counted by scorer and outcome, ungraded ones by reason and by touched group."""
    rows = [{"id": "g", "completion": "\\boxed{1}", "reference": "1", "group": "g"}, {"completion": 5, "id": "bad"}]
    rows += [{"id": "n", "completion": "\\boxed{1}", "group": "h"}]
    with running_service() as url:
        httpx.post(f"{url}/v1/score", json={"recipe": "math", "rollouts": rows})
        httpx.get(f"{url}/favicon.ico")
        status = httpx.get(f"{url}/v1/status").json()
        text = httpx.get(f"{url}/metrics").text
    assert status["scorers"] == {"math": {"correct": 1, "ungraded": 1}, "none": {"ungraded": 1}}
    assert [row["reason"] for row in status["ungraded"]] == ["bad_reference", "bad_rollout"]
    assert sum(bucket["rollouts"] for bucket in status["buckets"]) == 3
    assert status["queue"] is None
    for line in (
        'rewarden_verdicts_total{outcome="correct",scorer="math"} 1.0',
        'rewarden_ungraded_total{reason="bad_reference"} 1.0',
        'rewarden_ungraded_total{reason="bad_rollout"} 1.0',
        "rewarden_groups_total 2.0",
        "rewarden_groups_touched_total 1.0",
        'rewarden_reward_bucket{le="1.0",scorer="math"} 1.0',
        'rewarden_requests_total{route="/v1/score",status="200"} 1.0',
        'rewarden_requests_total{route="unmatched",status="404"} 1.0',
        "rewarden_rollouts_in_flight 0.0",
    ):
        assert line in text.splitlines(), line


def test_time_limit_of_a_request(gated: dict[str, Recipe]) -> None:
    """What is not graded when `timeout_s` is over is `ungraded: deadline`; the rest has its verdict."""
    with running_service(recipes=gated) as url:
        rows = [{"id": "1", "completion": "x", "reference": "x", "scorer": "exact"}, {"id": "2", "completion": "wait"}]
        sent = {"recipe": "gated", "timeout_s": 0.5, "rollouts": rows}
        answer = httpx.post(f"{url}/v1/score", json=sent, timeout=30).json()["verdicts"]
        service_scorers.OPEN.set()
        assert [(v["id"], v["reward"], v.get("reason")) for v in answer] == [("1", 1.0, None), ("2", None, "deadline")]
        again = httpx.post(f"{url}/v1/score", json={**sent, "timeout_s": 30}, timeout=30).json()["verdicts"]
        assert [v["reward"] for v in again] == [1.0, 1.0]


def test_only_one_kind() -> None:
    """A service for one kind offers its recipes alone, and leaves rows of other kinds ungraded."""
    with running_service(only=("math",)) as url:
        offer = httpx.get(f"{url}/v1/scorers").json()
        assert {recipe["name"] for recipe in offer["recipes"]} == {"auto", "math"}
        assert offer["kinds"] == ["math"]
        refused = httpx.post(f"{url}/v1/score", json={"recipe": "choice", "rollouts": [{"completion": "B"}]})
        assert (refused.status_code, refused.json()["code"]) == (404, "unknown_recipe")
        rows = [{"completion": "\\boxed{3}", "reference": "3"}, {"completion": "B", "reference": "B"}]
        mixed = httpx.post(f"{url}/v1/score", json={"recipe": "auto", "rollouts": rows}).json()["verdicts"]
        assert [(v["reward"], v.get("reason")) for v in mixed] == [(1.0, None), (None, "no_route")]


def test_gateway_sends_each_kind_to_its_peer() -> None:
    """A gateway keeps the order over its peers; a peer that is away costs its own rows alone."""
    rows = [
        {"id": "1", "completion": "\\boxed{3}", "reference": "3", "scorer": "math"},
        {"id": "2", "completion": "\\boxed{1}", "group": "g", "scorer": "majority"},
        {"id": "3", "completion": "x", "reference": "x", "scorer": "exact"},
        {"id": "4", "completion": "\\boxed{4}", "reference": "3", "scorer": "math"},
    ]
    with (
        running_service(only=("math",)) as peer,
        running_service(routes={"math": str(peer), "pseudo-label": "http://127.0.0.1:1"}) as url,
    ):
        sent = {"rollouts": rows, "recipe": "exact", "timeout_s": 20}
        found = httpx.post(f"{url}/v1/score", json=sent, timeout=30).json()["verdicts"]
        until(lambda: peer.service.record.outcomes.get("math") == {"correct": 1, "incorrect": 1})
    assert [(v["id"], v["reward"], v.get("reason")) for v in found] == [
        ("1", 1.0, None),
        ("2", None, "backend_unavailable"),
        ("3", 1.0, None),
        ("4", 0.0, None),
    ]


def test_body_of_the_examples() -> None:
    """The examples of the OpenAPI document are requests as the wire format has them."""
    from rewarden.services.routes.score import EXAMPLES

    for example in EXAMPLES.values():
        _, items = decode_request(json.dumps(example).encode(), ScoreOptions)
        assert all(isinstance(item, Rollout) for item in items)
    with pytest.raises(RequestError):
        decode_request(b"{}", ScoreOptions)
