"""The client and the real service together."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from service import Running, running_service

from rewarden import Engine, PinError, Reason, RewardClient, Rollout, ServiceError, UnknownScorerError
from rewarden.client.transport import BusyError

ROLLOUTS = [
    Rollout(id=f"r{i}", completion=rf"The answer is \boxed{{{i % 5}}}.", reference="3", group=f"g{i // 8}")
    for i in range(600)
]


@pytest.fixture(scope="module")
def url() -> Iterator[Running]:
    """A service without a queue."""
    with running_service() as running:
        yield running


def test_verdicts_are_those_of_the_engine(url: str) -> None:
    """Over the network, in batches, packed and unpacked: verdict for verdict what the engine says here."""
    with Engine("math") as engine:
        here = engine.score(ROLLOUTS)
    with RewardClient(url, recipe="math", batch_size=100) as client:
        assert client.score(ROLLOUTS) == here


def test_offers_and_pins(url: str) -> None:
    """The versions on offer can be pinned; another version or an unknown recipe is refused at once."""
    with RewardClient(url) as client:
        version = client.offers()["math"]
    with RewardClient(url, recipe=f"math@{version}") as client:
        assert client.rewards(ROLLOUTS[:4]) == [0.0, 0.0, 0.0, 1.0]
    with RewardClient(url, recipe="math@0.0.0") as client, pytest.raises(PinError):
        client.score(ROLLOUTS[:1])
    with RewardClient(url, recipe="../math") as client, pytest.raises(UnknownScorerError):
        client.score(ROLLOUTS[:1])


def test_bad_rows(url: str) -> None:
    """What is no rollout is reported at its place, whether the client or the service finds it."""
    rows = [{"completion": "1", "reference": "1"}, {"no": "rollout"}, {"completion": "\ud800"}]
    with RewardClient(url, recipe="exact") as client:
        verdicts = client.score(rows)
    assert [verdict.reward for verdict in verdicts] == [1.0, None, None]
    assert {verdict.reason for verdict in verdicts[1:]} == {Reason.BAD_ROLLOUT}


def test_more_than_a_request_may_hold() -> None:
    """A batch that is larger than the service takes goes in parts, and nobody notices."""
    with running_service(max_body_bytes=20_000) as url, RewardClient(url, recipe="math", batch_size=600) as client:
        rewards = client.rewards(ROLLOUTS)
    assert rewards == [1.0 if i % 5 == 3 else 0.0 for i in range(600)]


def test_no_queue(url: str) -> None:
    """A service without a queue refuses jobs with what to do about it, and without tries."""
    with RewardClient(url, retries=0) as client:
        with pytest.raises(ServiceError, match="--queue") as caught:
            client.start_job(ROLLOUTS[:2])
        assert not isinstance(caught.value, BusyError)
