"""A Redis that is killed, frozen or cut off: nothing that it answered is lost, and nobody is blamed for its absence."""

from __future__ import annotations

import random
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from broken_line import BrokenLine, broken_line
from certificates import server_context
from private_redis import PrivateRedis, private_redis
from queue_workers import collected, differences, rollouts, undisturbed, workers
from service import until

from rewarden import RewardClient

ROLLOUTS = 5000
HARD = 0.03


@pytest.fixture
def redis() -> Iterator[PrivateRedis]:
    """A Redis of the test's own."""
    with private_redis() as server:
        yield server


def start(url: str, seed: int = 0, count: int = ROLLOUTS) -> str:
    """A job of mixed work."""
    with RewardClient(url, retries=1000, retry_for_s=60) as client:
        return client.start_job(rollouts(count, seed, HARD), key=uuid.uuid4().hex).id


@contextmanager
def meanwhile(happens: object) -> Iterator[None]:
    """Have `happens()` run in a thread while the block does; what it raises is raised at the end."""
    failures: list[BaseException] = []

    def run() -> None:
        try:
            happens()  # type: ignore[operator]
        except BaseException as error:  # noqa: BLE001 - the test's thread must hear of it
            failures.append(error)

    thread = threading.Thread(target=run, name="test-chaos", daemon=True)
    thread.start()
    yield
    thread.join(60)
    assert not thread.is_alive()
    if failures:
        raise failures[0]


@pytest.mark.slow
def test_redis_is_killed_and_started_again(redis: PrivateRedis) -> None:
    """Kills of the server lose nothing that it answered, and bring no row a second verdict or another one."""
    rng = random.Random(3)

    def chaos() -> None:
        for _ in range(4):
            time.sleep(rng.uniform(0.2, 1.0))
            redis.kill()
            time.sleep(rng.uniform(0.0, 1.0))
            redis.start()

    with workers(redis.url, 2) as living:
        until(lambda: all(worker.pool for worker in living))
        job = start(redis.url)
        with meanwhile(chaos):
            found = collected(redis.url, job)
    assert not differences(found, undisturbed(ROLLOUTS, 0, HARD))


@pytest.mark.slow
def test_redis_stands_still_for_longer_than_a_lease(redis: PrivateRedis) -> None:
    """While Redis does nothing nobody can renew a lease: no worker is blamed, and nothing is graded otherwise."""
    with workers(redis.url, 2) as living:
        until(lambda: all(worker.pool for worker in living))
        job = start(redis.url)
        time.sleep(0.3)
        redis.freeze(11.0)
        found = collected(redis.url, job)
        with redis.client() as client:
            losses = [int(client.hget(name, "losses") or 0) for name in client.scan_iter("rw:batch:*")]
    assert not differences(found, undisturbed(ROLLOUTS, 0, HARD))
    assert not any(losses)


@pytest.mark.slow
def test_redis_pauses_its_clients(redis: PrivateRedis) -> None:
    """CLIENT PAUSE, as a failover does it, only takes time."""
    with workers(redis.url, 2) as living:
        until(lambda: all(worker.pool for worker in living))
        job = start(redis.url)
        with redis.client() as client:
            for _ in range(3):
                time.sleep(0.2)
                client.client_pause(1000)
        found = collected(redis.url, job)
    assert not differences(found, undisturbed(ROLLOUTS, 0, HARD))


@pytest.mark.slow
def test_lines_are_cut_in_the_middle_of_answers(redis: PrivateRedis) -> None:
    """Cut lines of workers and of the client lose no row and double none, wherever in an answer they break."""
    rng = random.Random(5)
    with broken_line(redis.port) as theirs, broken_line(redis.port) as ours:

        def chaos() -> None:
            for _ in range(25):
                time.sleep(rng.uniform(0.02, 0.25))
                line: BrokenLine = rng.choice([theirs, theirs, ours])
                line.cut_after(rng.randrange(1, 60_000)) if rng.random() < 0.7 else line.cut()

        with workers(f"redis://127.0.0.1:{theirs.port}/0", 2) as living:
            until(lambda: all(worker.pool for worker in living))
            url = f"redis://127.0.0.1:{ours.port}/0"
            with meanwhile(chaos):
                job = start(url)
                found = collected(url, job)
        assert theirs.cuts
        assert ours.cuts
    assert not differences(found, undisturbed(ROLLOUTS, 0, HARD))


@pytest.mark.slow
def test_a_line_stalls_for_longer_than_a_lease(redis: PrivateRedis) -> None:
    """A worker behind a line that swallows everything loses its batches to one that is not, and comes back."""
    with broken_line(redis.port) as line, workers(f"redis://127.0.0.1:{line.port}/0", 1) as far, workers(redis.url, 1):
        until(lambda: far[0].pool)
        job = start(redis.url)
        time.sleep(0.3)
        with line.stalled():
            found = collected(redis.url, job)
            more = start(redis.url, 1, 500)
            assert not differences(collected(redis.url, more), undisturbed(500, 1, HARD))
    assert not differences(found, undisturbed(ROLLOUTS, 0, HARD))


@pytest.mark.slow
def test_a_line_under_tls_is_cut(tmp_path: Path) -> None:
    """The same over rediss:// with an authority of one's own and a password."""
    context, authority = server_context(tmp_path)
    with private_redis("se:cr@t") as server, broken_line(server.port, context) as line:
        url = f"rediss://:se%3Acr%40t@127.0.0.1:{line.port}/0?ssl_ca_certs={authority}"
        with workers(url, 1) as living:
            until(lambda: living[0].pool)
            job = start(url, 2, 1000)
            for _ in range(4):
                time.sleep(0.1)
                line.cut()
            found = collected(url, job)
        assert line.cuts
    assert not differences(found, undisturbed(1000, 2, HARD))
