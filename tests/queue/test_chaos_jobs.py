"""Jobs whose clients, services and messages get lost or come twice, whose time runs out, and that are cancelled."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from command import COMMAND
from private_redis import PrivateRedis, free_port, private_redis
from queue_workers import (
    WAIT_S,
    alive,
    collected,
    descendants,
    differences,
    rollouts,
    undisturbed,
    workers,
)
from service import PATIENCE_S, until

from rewarden import RewardClient, Verdict
from rewarden.core.errors import ServiceError

ROLLOUTS = 5000
HARD = 0.03


@pytest.fixture(scope="module")
def redis() -> Iterator[PrivateRedis]:
    """A Redis that nothing happens to."""
    with private_redis() as server:
        yield server


@pytest.fixture(scope="module")
def pair(redis: PrivateRedis) -> Iterator[None]:
    """Two workers on it."""
    with workers(redis.url, 2) as living:
        until(lambda: all(worker.pool for worker in living))
        yield


@contextmanager
def again_and_again(happens: Callable[[], object], every_s: float = 0.01) -> Iterator[None]:
    """Have `happens()` run in a thread while the block does."""
    stop = threading.Event()
    failures: list[BaseException] = []

    def run() -> None:
        try:
            while not stop.wait(every_s):
                happens()
        except BaseException as error:  # noqa: BLE001 - the test's thread must hear of it
            failures.append(error)

    thread = threading.Thread(target=run, name="test-chaos", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(PATIENCE_S)
    assert not failures, failures


def start(url: str, count: int = ROLLOUTS, seed: int = 0, **options: Any) -> str:
    """A job of mixed work, under a new key."""
    with RewardClient(url) as client:
        return client.start_job(rollouts(count, seed, HARD), **{"key": uuid.uuid4().hex, **options}).id


# -- what comes twice, and what gets lost -----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.usefixtures("pair")
def test_everything_is_delivered_twice(redis: PrivateRedis) -> None:
    """Messages that are doubled, and batches that two workers grade at once, give no row a second verdict."""
    doubled: Counter[str] = Counter()
    with redis.client() as client:

        def double() -> None:
            for name in client.scan_iter("rw:celery:rewarden.*"):
                for message in client.lrange(name, 0, 20):
                    client.rpush(name, message)
                    doubled["messages"] += 1
            for batch in client.zrange("rw:leased", 0, -1):
                kind = client.hget(b"rw:batch:" + batch, "kind")
                if kind:
                    client.zadd(b"rw:ready:" + kind, {batch: 0})
                    doubled["batches"] += 1

        with again_and_again(double, 0.05):
            job = start(redis.url, seed=1)
            until(lambda: doubled["messages"] and doubled["batches"])
            time.sleep(1.0)
        found = collected(redis.url, job)
    assert not differences(found, undisturbed(ROLLOUTS, 1, HARD))


@pytest.mark.slow
@pytest.mark.usefixtures("pair")
def test_every_message_is_lost(redis: PrivateRedis) -> None:
    """Workers that no message reaches finish the work all the same."""
    with redis.client() as client:

        def lose() -> None:
            for name in client.scan_iter("rw:celery:rewarden.*"):
                client.delete(name)

        with again_and_again(lose, 0.001):
            found = collected(redis.url, start(redis.url, seed=2))
    assert not differences(found, undisturbed(ROLLOUTS, 2, HARD))


@pytest.mark.slow
@pytest.mark.usefixtures("pair")
def test_a_job_that_many_start_at_once(redis: PrivateRedis) -> None:
    """One key is one job, however many send it at the same time; with another body it is refused."""
    key = uuid.uuid4().hex
    with ThreadPoolExecutor(8) as pool:
        jobs = list(pool.map(lambda _: start(redis.url, 1000, 3, key=key), range(8)))
    assert len(set(jobs)) == 1
    assert not differences(collected(redis.url, jobs[0]), undisturbed(1000, 3, HARD))
    with pytest.raises(ServiceError, match="used for another request"):
        start(redis.url, 1000, 4, key=key)
    assert start(redis.url, 1000, 3, key=key) == jobs[0]
    assert not differences(collected(redis.url, jobs[0]), undisturbed(1000, 3, HARD))


# -- services and clients that die ------------------------------------------------------------------------------------


class Gateway:
    """`rewarden serve` in a process of its own, on a port that its successor takes over."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._arguments = arguments
        self._log = folder / "serve.log"
        self.process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [*COMMAND, "serve", "--port", str(self.port), "--workers", "1", *self._arguments],
                stdout=log,
                stderr=log,
            )

    def wait_until_ready(self) -> None:
        """Until it answers."""
        with RewardClient(self.url, retries=10_000, retry_for_s=PATIENCE_S) as client:
            until(lambda: _answers(client))

    def kill(self) -> list[int]:
        """End it as nothing in it can notice. What processes it had."""
        known = descendants(self.process.pid)
        self.process.kill()
        self.process.wait(PATIENCE_S)
        return known

    def restart(self) -> None:
        """Its successor."""
        self.process = self._start()

    def stop(self) -> None:
        """End it in good order."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(PATIENCE_S) == 0, self._log.read_text()[-2000:]


def _answers(client: RewardClient) -> bool:
    try:
        return bool(client.offers())
    except ServiceError:
        return False


@pytest.mark.slow
@pytest.mark.usefixtures("pair")
def test_the_gateway_is_killed_in_the_middle_of_a_stream(redis: PrivateRedis, tmp_path: Path) -> None:
    """A client whose service dies goes on by its cursor at the next one: no row is lost, and none comes twice."""
    gateway = Gateway(tmp_path, "--queue", redis.url)
    gateway.wait_until_ready()
    found: dict[int, Verdict] = {}
    kills = 0
    with RewardClient(gateway.url, retries=10_000, retry_for_s=WAIT_S) as client:
        job = client.start_job(rollouts(ROLLOUTS // 2, 5, HARD))
        for arrival in job.verdicts():
            assert arrival.row not in found
            assert arrival.cursor == len(found) + 1
            found[arrival.row] = arrival.verdict
            if len(found) in (300, 1500):
                gateway.kill()
                gateway.restart()
                kills += 1
    assert kills == 2
    assert not differences([found[row] for row in range(ROLLOUTS // 2)], undisturbed(ROLLOUTS // 2, 5, HARD))
    gateway.stop()


@pytest.mark.slow
@pytest.mark.usefixtures("pair")
def test_a_client_that_dies_leaves_its_job_to_others(redis: PrivateRedis) -> None:
    """A job goes on when the process that started it is killed; whoever knows its id gets every verdict."""
    program = (
        "import sys, os, signal; from rewarden import RewardClient; from queue_workers import rollouts\n"
        f"client = RewardClient({redis.url!r}); job = client.start_job(rollouts({ROLLOUTS}, 6, {HARD}))\n"
        "print(job.id, flush=True)\n"
        "next(iter(job.verdicts()))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    support = str(Path(__file__).parents[1] / "support")
    died = subprocess.run(
        [sys.executable, "-P", "-c", program],
        env={**os.environ, "PYTHONPATH": support},
        stdout=subprocess.PIPE,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert died.returncode == -signal.SIGKILL
    found = collected(redis.url, died.stdout.strip())
    assert not differences(found, undisturbed(ROLLOUTS, 6, HARD))


@pytest.mark.slow
def test_an_embedded_queue_is_killed_and_goes_on(tmp_path: Path) -> None:
    """A service with its own queue that is killed leaves no process behind; started again in its folder it goes on."""
    folder = tmp_path / "q"
    gateway = Gateway(tmp_path, "--queue", "embedded", "--queue-dir", str(folder))
    gateway.wait_until_ready()
    with RewardClient(gateway.url, retries=10_000, retry_for_s=WAIT_S) as client:
        job = client.start_job(rollouts(3000, 7, HARD)).id
        arrivals = client.attach(job).verdicts()
        for _ in range(100):
            next(arrivals)
        for _ in range(2):  # the first time it is started again at once, while what it had is still ending
            known = gateway.kill()
            assert len(known) >= 3
            gateway.restart()
            until(lambda known=known: not any(alive(pid) for pid in known))
            gateway.wait_until_ready()
        found = collected(gateway.url, job)
    assert not differences(found, undisturbed(3000, 7, HARD))
    last = descendants(gateway.process.pid)
    gateway.stop()
    until(lambda: not any(alive(pid) for pid in last))
