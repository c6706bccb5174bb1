"""Jobs over HTTP, graded by real workers."""

from __future__ import annotations

import asyncio
import gc
import re
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from service import PATIENCE_S, Running, running_service, until

from rewarden import Outcome, Reason, RewardClient, Rollout
from rewarden.client.queue.connection import connect
from rewarden.client.queue.ledger import Ledger
from rewarden.core.errors import ServiceError
from rewarden.services.embedded import EmbeddedRedis, worker_command
from rewarden.services.worker.cache import RedisCache

ROLLOUTS = [
    {"id": f"r{i}", "completion": f"\\boxed{{{i % 3}}}", "reference": "1", "group": str(i // 4)} for i in range(150)
]
BODY = {"recipe": "math", "rollouts": ROLLOUTS}


@pytest.fixture(scope="module")
def worker(redis_url: str) -> Iterator[None]:
    """A worker under its supervisor, as the command starts it."""
    process = subprocess.Popen(worker_command(["--queue", redis_url, "--workers", "1"]))
    yield
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_S) == 0


@pytest.fixture(scope="module")
def service(redis_url: str, worker: None) -> Iterator[Running]:  # noqa: ARG001 - it needs one
    """A service on the queue of that worker."""
    with running_service(queue=redis_url) as url:
        until(lambda: httpx.get(f"{url}/v1/status").json()["queue"]["workers"])
        yield url


def start(url: str, body: Any = None, key: str | None = None) -> httpx.Response:
    """Start a job."""
    headers = {"Idempotency-Key": key} if key is not None else {}
    return httpx.post(f"{url}/v1/jobs", json=BODY if body is None else body, headers=headers)


def lines(url: str, job: str, cursor: int = 0) -> list[dict[str, Any]]:
    """The stream of a job until it ends by itself."""
    headers = {"Accept": "application/x-ndjson"}
    answer = httpx.get(f"{url}/v1/jobs/{job}", params={"cursor": cursor}, headers=headers, timeout=PATIENCE_S)
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    return [orjson.loads(line) for line in answer.text.splitlines() if line]


def test_a_job_from_start_to_end(service: Running) -> None:
    """A job is taken at once, its verdicts are those of a direct request, and its status says so."""
    answer = start(service)
    assert answer.status_code == 202
    job = answer.json()["id"]
    assert answer.headers["location"] == f"/v1/jobs/{job}"
    *verdicts, last = lines(service, job)
    assert last == {"cursor": 150, "state": "done"}
    assert [line["cursor"] for line in verdicts] == list(range(1, 151))
    direct = httpx.post(f"{service}/v1/score", json=BODY).json()["verdicts"]
    assert [line["verdict"] for line in sorted(verdicts, key=lambda line: line["row"])] == direct
    status = httpx.get(f"{service}/v1/jobs/{job}").json()
    assert (status["state"], status["total"], status["done"]) == ("done", 150, 150)
    assert status["outcomes"] == {"correct": 50, "incorrect": 100}


@pytest.mark.parametrize("cursor", [1, 149, 150])
def test_any_cursor_goes_on(service: Running, cursor: int) -> None:
    """A stream goes on after any cursor."""
    job = start(service, key="cursors").json()["id"]
    whole = lines(service, job)
    rest = lines(service, job, cursor)
    assert rest[:-1] == whole[cursor:-1]
    assert rest[-1]["state"] == "done"


@pytest.mark.parametrize("cursor", [151, 10**12, -1, 10**30])
def test_a_cursor_that_cannot_be(service: Running, redis_url: str, cursor: int) -> None:
    """A cursor beyond the job is refused: whoever has it has confused two jobs, and would miss verdicts."""
    job = start(service, key="cursors").json()["id"]
    headers = {"Accept": "application/x-ndjson"}
    answer = httpx.get(f"{service}/v1/jobs/{job}", params={"cursor": cursor}, headers=headers, timeout=PATIENCE_S)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
    if 0 < cursor < 10**15:
        for target in (str(service), redis_url):
            with RewardClient(target) as client, pytest.raises(ServiceError, match="rollouts"):
                list(client.attach(job).verdicts(cursor=cursor))


def test_a_key_makes_one_job(service: Running) -> None:
    """The same request under a key is one job, another request under it is refused, and none gets a new one."""
    jobs = {start(service, key="mine").json()["id"] for _ in range(3)}
    assert len(jobs) == 1
    refused = start(service, {**BODY, "priority": "bulk"}, key="mine")
    assert (refused.status_code, refused.json()["code"]) == (422, "key_reused")
    assert start(service).json()["id"] != start(service).json()["id"]


def test_faults_stay_with_their_rows(service: Running) -> None:
    """What is no rollout, or asks for what is not on offer, gets its verdict, and the others are graded."""
    rows = [{"completion": 5}, ROLLOUTS[1], {"completion": "x", "scorer": "/etc/passwd"}, {**ROLLOUTS[2], "extra": 1}]
    job = start(service, {"recipe": "math", "rollouts": rows}).json()["id"]
    found = {line["row"]: line["verdict"] for line in lines(service, job)[:-1]}
    assert [found[row].get("reason") for row in range(4)] == ["bad_rollout", None, "no_route", "bad_rollout"]
    assert [found[row]["reward"] for row in range(4)] == [None, 1.0, None, None]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"rollouts": []}, 422, "invalid_request"),
        ({"rollouts": [{"completion": "x"}], "priority": "urgent"}, 422, "invalid_request"),
        ({"rollouts": [{"completion": "x"}], "timeout_s": -1}, 422, "invalid_request"),
        ({"rollouts": [{"completion": "x"}], "timeout_s": 1e9}, 422, "invalid_request"),
        ({"rollouts": [{"completion": "x"}], "recipe": "os:system"}, 404, "unknown_recipe"),
        ({"rollouts": [{"completion": "x"}], "recipe": "math@9"}, 409, "other_version"),
        ([], 422, "invalid_request"),
    ],
)
def test_bad_requests(service: Running, body: Any, status: int, code: str) -> None:
    """What is wrong with a request as a whole is a problem, and no job is started."""
    before = httpx.get(f"{service}/v1/status").json()["queue"]["jobs"]
    answer = start(service, body)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert httpx.get(f"{service}/v1/status").json()["queue"]["jobs"] == before


@pytest.mark.parametrize("job", ["nobody", "..%2F..", "a" * 3000, "job:x:done", "%00"])
def test_unknown_jobs(service: Running, job: str) -> None:
    """A job that never was is a problem for every method, whatever its name looks like."""
    for answer in (
        httpx.get(f"{service}/v1/jobs/{job}"),
        httpx.delete(f"{service}/v1/jobs/{job}"),
        httpx.get(f"{service}/v1/jobs/{job}", headers={"Accept": "application/x-ndjson"}),
    ):
        assert answer.status_code == 404
        assert answer.headers["content-type"] == "application/problem+json"


def test_cancelling(service: Running) -> None:
    """A job that is cancelled has a verdict for each row; one that is done stays done."""
    job = start(service).json()["id"]
    answer = httpx.delete(f"{service}/v1/jobs/{job}")
    assert answer.status_code == 200
    assert answer.json()["state"] in ("cancelled", "done")
    found = lines(service, job)
    assert Counter(line["row"] for line in found[:-1]) == Counter(range(150))
    assert httpx.delete(f"{service}/v1/jobs/{job}").json()["state"] == answer.json()["state"]


@pytest.mark.usefixtures("worker")
def test_jobs_of_other_keys_are_unknown(redis_url: str, tmp_path: Path) -> None:
    """An API key sees its own jobs alone."""
    file = tmp_path / "keys.json"

    def make(name: str) -> dict[str, str]:
        command = [sys.executable, "-P", "-m", "rewarden.cli", "keys", "create", "--name", name, "--file", str(file)]
        key = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        return {"Authorization": f"Bearer {key}"}

    mine, other = make("a"), make("b")
    with running_service(queue=redis_url, keys=file) as url:
        answer = httpx.post(f"{url}/v1/jobs", json=BODY, headers={**mine, "Idempotency-Key": "k"})
        job = answer.json()["id"]
        assert httpx.get(f"{url}/v1/jobs/{job}", headers=mine).status_code == 200
        assert httpx.get(f"{url}/v1/jobs/{job}", headers=other).status_code == 404
        assert httpx.delete(f"{url}/v1/jobs/{job}", headers=other).status_code == 404
        assert httpx.get(f"{url}/v1/jobs/{job}").status_code == 401
        again = httpx.post(f"{url}/v1/jobs", json=BODY, headers={**other, "Idempotency-Key": "k"})
        assert again.json()["id"] != job


def test_without_a_queue_there_are_no_jobs() -> None:
    """A service without a queue says so, and what to do."""
    with running_service() as url:
        answers = [start(url), httpx.get(f"{url}/v1/jobs/x"), httpx.delete(f"{url}/v1/jobs/x")]
    for answer in answers:
        assert (answer.status_code, answer.json()["code"]) == (503, "no_queue")
        assert "--queue" in answer.json()["detail"]


@pytest.mark.usefixtures("worker")
def test_a_full_queue_refuses(redis_url: str) -> None:
    """While too many batches wait, jobs are told to come later, with a time."""
    with running_service(queue=redis_url, max_queued_batches=0) as url:
        until(lambda: httpx.get(f"{url}/v1/status").json()["queue"]["reachable"])
        answer = start(url)
    assert (answer.status_code, answer.json()["code"]) == (429, "busy")
    assert int(answer.headers["retry-after"]) >= 1


@pytest.mark.usefixtures("worker")
def test_a_request_can_be_graded_by_workers(redis_url: str) -> None:
    """With a route to the queue, a direct request is answered by workers, and the service makes no engine."""
    with running_service(queue=redis_url, routes={"*": "queue"}) as url:
        answer = httpx.post(f"{url}/v1/score", json=BODY, timeout=PATIENCE_S).json()
        assert url.service.engines.pool_stats == []
    assert Counter(verdict["outcome"] for verdict in answer["verdicts"]) == {"correct": 50, "incorrect": 100}
    assert [verdict["id"] for verdict in answer["verdicts"]] == [row["id"] for row in ROLLOUTS]


@pytest.mark.parametrize("target", ["http", "queue"])
def test_the_client_over_jobs(service: Running, redis_url: str, target: str) -> None:
    """The client starts jobs and reads them, over HTTP and over the queue itself, bad rows and all."""
    rollouts = [Rollout.parse(row) for row in ROLLOUTS]
    with RewardClient(str(service) if target == "http" else redis_url, recipe="math") as client:
        assert [verdict.id for verdict in client.score(rollouts)] == [row["id"] for row in ROLLOUTS]
        job = client.start_job([*ROLLOUTS, {"completion": 7}, Rollout(completion="lone \ud800")])
        verdicts = client.attach(job.id).result()
        assert [verdict.reason for verdict in verdicts[-2:]] == [Reason.BAD_ROLLOUT, Reason.BAD_ROLLOUT]
        assert Counter(verdict.outcome for verdict in verdicts[:-2]) == {Outcome.CORRECT: 50, Outcome.INCORRECT: 100}
        assert [arrival.cursor for arrival in job.verdicts(cursor=100)] == list(range(101, 153))


def test_a_job_holds_its_client(service: Running) -> None:
    """A job can be read when its client is held by nobody else."""
    job = RewardClient(str(service), recipe="math").start_job([Rollout.parse(row) for row in ROLLOUTS])
    gc.collect()
    assert len(job.result()) == len(ROLLOUTS)


def test_what_workers_graded_is_seen(service: Running) -> None:
    """Status and metrics of a service count what the workers of its queue have graded."""
    before = httpx.get(f"{service}/v1/status").json()["queue"]["graded"]
    job = start(service, {"recipe": "math", "rollouts": [{"id": "odd", "completion": "1", "reference": ""}]})
    lines(service, job.json()["id"])

    def counted() -> bool:
        graded = httpx.get(f"{service}/v1/status").json()["queue"]["graded"]
        return bool(graded["reasons"].get("bad_reference", 0) == before["reasons"].get("bad_reference", 0) + 1)

    until(counted)
    status = httpx.get(f"{service}/v1/status").json()["queue"]
    assert status["graded"]["ungraded"][0]["id"] == "odd"
    assert sum(bucket["rollouts"] for bucket in status["graded"]["buckets"]) >= 1
    text = httpx.get(f"{service}/metrics").text
    assert re.search(r'^rewarden_queue_verdicts_total\{outcome="ungraded",scorer="math"\} [1-9]', text, re.MULTILINE)
    assert re.search(r'^rewarden_queue_age_seconds\{kind="math"\} 0', text, re.MULTILINE)
    assert re.search(r"^rewarden_queue_workers [1-9]", text, re.MULTILINE)


def test_readiness_needs_the_queue(tmp_path: Path) -> None:
    """A service whose queue is away lives, and is not ready."""
    with running_service(ready=False, queue=f"unix://{tmp_path}/nobody.sock") as url:
        assert httpx.get(f"{url}/livez").status_code == 200
        assert httpx.get(f"{url}/readyz").status_code == 503


def test_a_worker_is_started_again(service: Running) -> None:
    """A worker that dies is started again under another name, and work goes on."""

    def workers() -> dict[str, int]:
        found = httpx.get(f"{service}/v1/status").json()["queue"]["workers"]
        return {one["name"]: one["pid"] for one in found}

    until(workers)
    before = workers()
    (pid,) = before.values()
    subprocess.run(["kill", "-9", str(pid)], check=True)
    until(lambda: workers().keys() - before.keys())
    job = start(service).json()["id"]
    assert lines(service, job)[-1] == {"cursor": 150, "state": "done"}


def test_dead_letters_by_hand(redis_url: str) -> None:
    """Dead letters are listed, shown, tried again as a job, and dropped by the command."""

    async def give_up() -> None:
        ledger = Ledger(connect(redis_url))
        from rewarden.client.queue.batches import cut_again
        from rewarden.client.queue.ledger import NewJob
        from rewarden.core.verdict import ungraded

        rollouts = [Rollout(id=str(i), completion="\\boxed{1}", reference="1") for i in range(3)]
        parts = cut_again("nobodys-kind", "math", rollouts)
        job = NewJob(uuid.uuid4().hex, "math", 3, parts, [r.id for r in rollouts], "d")
        await ledger.create(job)
        batch = await ledger.take(["nobodys-kind"], "w")
        assert batch is not None
        verdicts = [ungraded(Reason.WORKER_LOST, "test", id=r.id) for r in rollouts]
        await ledger.keep_dead(batch, range(3), rollouts, verdicts)
        await ledger.settle(batch, verdicts)
        await ledger.close()

    def dead(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-P", "-m", "rewarden.cli", "dead", *arguments, "--queue", redis_url]
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)

    asyncio.run(give_up())
    listed = dead("list", "--count", "3").stdout
    ids = re.findall(r"\d{13}-\d+", listed)
    assert len(ids) == 3
    assert "worker_lost" in listed
    shown = [orjson.loads(line) for line in dead("show", *ids).stdout.splitlines()]
    assert [one["rollout"]["id"] for one in shown] == ["2", "1", "0"]
    again = dead("retry", ids[0])
    assert again.returncode == 0
    assert re.fullmatch(r"[0-9a-f]{32}\n", again.stdout)
    assert dead("show", ids[0]).returncode == 1
    assert "2 dead letters dropped" in dead("drop", *ids[1:]).stderr
    assert dead("retry").returncode == 2
    assert dead("show", "nobody", "*", "0").returncode == 1
    assert dead("drop", "--all", ids[0]).returncode == 2


def test_verdicts_are_shared_by_content(redis_url: str) -> None:
    """What one worker has graded another knows; the first verdict written stays."""
    from rewarden import correct, incorrect

    key = uuid.uuid4().bytes
    one, other = RedisCache(redis_url), RedisCache(redis_url)
    one.put_many({key: correct(evidence={"a": [1, 2.5, None]})})
    other.put_many({uuid.uuid4().bytes: incorrect()})
    assert other.get_many([key]) == {key: correct(evidence={"a": [1, 2.5, None]})}
    third = RedisCache(redis_url)
    third.put_many({key: incorrect()})
    assert RedisCache(redis_url).get_many([key])[key].outcome is Outcome.CORRECT
    for cache in (one, other, third):
        cache.close()


@pytest.mark.parametrize(
    "arguments",
    [["--queue", "http://x"], ["--queues", "nothing"], ["--queues", ","], ["--recipe", "x"], ["--metrics", "x"]],
)
def test_a_worker_that_cannot_start_says_why(arguments: list[str], redis_url: str) -> None:
    """Usage errors end the worker with status 2 and one line, and are not tried again."""
    given = arguments if "--queue" in arguments else ["--queue", redis_url, *arguments]
    started = time.monotonic()
    done = subprocess.run(worker_command(given), capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert time.monotonic() - started < PATIENCE_S


def test_a_folder_has_one_server(tmp_path_factory: pytest.TempPathFactory) -> None:
    """An embedded queue that is in use is refused to others, also while only its server is left."""
    folder = tmp_path_factory.mktemp("q")
    first, second = EmbeddedRedis(folder), EmbeddedRedis(folder)
    first.start()
    try:
        with pytest.raises(ServiceError, match="in use"):
            second.start()
        assert first._lock is not None
        first._lock.close()  # as when the service was killed, and its server is slow to end
        with pytest.raises(ServiceError, match="in use"):
            second.start()
    finally:
        first.stop()
    second.start()
    second.stop()


def test_recipes_are_checked_before_they_are_offered(tmp_path: Path) -> None:
    """A recipe that cannot be used here, or hides a built-in one, stops a service and a worker with one line."""
    recipe = tmp_path / "mine.toml"
    recipe.write_text('name = "mine"\n[[routes]]\nparts = [{scorer = "nobody"}]\n')
    good = tmp_path / "good.toml"
    good.write_text('name = "good"\n[[routes]]\nparts = [{scorer = "exact"}]\n')
    for given in (f"mine={recipe}", "mine=no_such_module:X", f"math={good}"):
        for command in (["serve", "--port", "0"], ["worker", "--queue", "redis://127.0.0.1:1/0"]):
            line = [sys.executable, "-P", "-m", "rewarden.cli", *command, "--recipe", given]
            done = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
            assert done.returncode == 2, done.stderr
            assert len(done.stderr.strip().splitlines()) == 1


def test_a_relative_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """An embedded queue may be kept in a folder named from here."""
    monkeypatch.chdir(tmp_path_factory.mktemp("q"))
    server = EmbeddedRedis(Path("queue"))
    server.start()
    server.stop()


def test_a_worker_that_ended_for_good_is_noticed(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A service whose own worker cannot start is not ready."""
    folder = tmp_path_factory.mktemp("q")
    with running_service(queue="embedded", queue_dir=folder) as url:
        assert url.service.queue is not None
        embedded = url.service.queue._embedded
        assert embedded is not None
        embedded._worker.stop()
        until(lambda: httpx.get(f"{url}/readyz").status_code == 503)
