"""The two clients in the places where trainers use them: threads, running loops, forks, ends of programs."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import CancelledError, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from rough_service import Call, Reply, scores, serving

from rewarden import AsyncRewardClient, Engine, PinError, Reason, Recipe, RewardClient, Rollout, ServiceError, Verdict
from rewarden.client.in_process import InProcessTransport
from rewarden.client.target import connect
from rewarden.client.transport import Request
from rewarden.core.catalog import Catalog
from rewarden.core.engines import Engines
from rewarden.core.errors import UnknownScorerError

WRONG = Rollout(id="w", completion="2", reference="1")
RIGHT = Rollout(id="r", completion="1", reference="1")


def slowly(call: Call) -> Reply:
    """The truth, after a while."""
    reply = scores(call)
    reply.pause_s = 0.3
    return reply


def threads() -> list[threading.Thread]:
    """The threads of clients."""
    return [thread for thread in threading.enumerate() if thread.name == "rewarden-client"]


def in_child(action: Callable[[], Any]) -> None:
    """Run `action` in a forked process, and fail when it raises there or does not end."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            action()
            status = 0
        except BaseException:  # noqa: BLE001 - the parent must learn of it
            traceback.print_exc()
        finally:
            os._exit(status)
    until = time.monotonic() + 60
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            assert status == 0
            return
        if time.monotonic() > until:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            pytest.fail("the child hangs")
        time.sleep(0.01)


# -- in the background -----------------------------------------------------------------------------------------------


def test_submit_gather_and_as_completed() -> None:
    """`submit` returns at once; `gather` keeps the order; `as_completed` gives each as it is done."""

    def one_is_slow(call: Call) -> Reply:
        return slowly(call) if call.rollouts[0]["id"] == "w" else scores(call)

    with serving(one_is_slow) as (url, _), RewardClient(url) as client:
        pendings = [client.submit([WRONG]), client.submit([RIGHT])]
        assert not pendings[0].done
        done = [(pending.rollouts[0], pending.result()[0].reward) for pending in client.as_completed(pendings)]
        assert done == [(RIGHT, 1.0), (WRONG, 0.0)]
        assert [verdicts[0].reward for verdicts in client.gather(pendings)] == [0.0, 1.0]


def test_pending_can_be_given_up() -> None:
    """A pending that is cancelled raises, and holds no place in flight."""
    with serving(slowly) as (url, _), RewardClient(url, max_in_flight=1) as client:
        given_up = client.submit([WRONG])
        assert given_up.cancel()
        with pytest.raises(CancelledError):
            given_up.result(10)
        assert client.submit([RIGHT]).result(10)[0].reward == 1.0


async def test_async_client() -> None:
    """The async client does the same on a running loop, which goes on meanwhile."""
    with serving(slowly) as (url, _):
        async with AsyncRewardClient(url) as client:
            pendings = [client.submit([WRONG]), client.submit([RIGHT, RIGHT])]
            ticks = 0
            while not all(pending.done for pending in pendings):
                await asyncio.sleep(0.01)
                ticks += 1
            assert ticks > 5
            assert [len(verdicts) for verdicts in await client.gather(pendings)] == [1, 2]
            assert {len(pending.rollouts) async for pending in client.as_completed(pendings)} == {1, 2}
            assert await client.rewards([RIGHT, WRONG]) == [1.0, 0.0]


# -- threads and loops -----------------------------------------------------------------------------------------------


def test_many_threads_share_a_client() -> None:
    """Calls from several threads do not mix up their verdicts."""
    with serving(scores) as (url, _), RewardClient(url, batch_size=3) as client, ThreadPoolExecutor(8) as pool:

        def ask(i: int) -> list[str]:
            return [verdict.id for verdict in client.score([Rollout(id=f"{i}-{k}", completion="") for k in range(9)])]

        assert list(pool.map(ask, range(24))) == [[f"{i}-{k}" for k in range(9)] for i in range(24)]


async def test_under_a_running_loop() -> None:
    """The plain client works in a notebook, whose loop runs already."""
    with serving(scores) as (url, _), RewardClient(url) as client:
        assert client.rewards([RIGHT]) == [1.0]


def test_closing_ends_everything() -> None:
    """A closed client has no thread, says that it is closed, and leaves nobody waiting; it may be closed again."""
    before = threads()
    with serving(slowly) as (url, _):
        client = RewardClient(url)
        pending = client.submit([RIGHT])
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(client.score, [RIGHT])
            time.sleep(0.05)
            client.close()
            client.close()
            with pytest.raises(ServiceError, match="closed"):
                waiting.result(10)
        with pytest.raises(CancelledError):
            pending.result(10)
        with pytest.raises(ServiceError, match="closed"):
            client.score([RIGHT])
    assert threads() == before


def test_a_client_that_is_dropped_is_closed() -> None:
    """Nobody has to remember to close it."""
    before = threads()
    with serving(scores) as (url, _):
        client = RewardClient(url)
        client.score([RIGHT])
        del client
        gc.collect()
        assert threads() == before


def test_a_refused_client_leaves_no_thread() -> None:
    """A client that cannot be made leaves nothing behind."""
    before = threads()
    with pytest.raises(ValueError, match="leads nowhere"):
        RewardClient("math")
    with pytest.raises(TypeError, match="leads nowhere"):
        RewardClient(5)  # type: ignore[arg-type]
    assert threads() == before


@pytest.mark.parametrize("close", ["client.close()", "", "client.submit(rollouts)"], ids=["closed", "open", "working"])
def test_a_program_ends(close: str) -> None:
    """A program that uses a client ends, without warnings, whether it closes it or not."""
    program = f"""
from rewarden import RewardClient, Rollout
if __name__ == "__main__":
    client = RewardClient(recipe="math")
    rollouts = [Rollout(completion=r"\\boxed{{x^2-{{i}}}}", reference="(x-1)(x+1)") for i in range(3)]
    assert len(client.rewards(rollouts)) == 3
    {close}
"""
    command = [sys.executable, "-W", "error", "-c", program]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (result.returncode, result.stderr) == (0, "")


# -- forks -----------------------------------------------------------------------------------------------------------


def test_a_fork_gets_its_own_connections() -> None:
    """A child of a process with a client scores too, with connections of its own, and the parent's go on."""
    with serving(scores) as (url, service), RewardClient(url) as client:
        assert client.rewards([RIGHT]) == [1.0]
        assert service.connections == 1

        def child() -> None:
            assert client.rewards([RIGHT, WRONG]) == [1.0, 0.0]
            assert client.start_job is not None
            client.close()

        in_child(child)
        assert service.connections == 2
        assert client.rewards([WRONG]) == [0.0]
        assert service.connections == 2


def test_a_fork_during_a_request() -> None:
    """A child that is forked while the parent waits for an answer neither hangs nor disturbs it."""
    with serving(slowly) as (url, _), RewardClient(url) as client:
        pending = client.submit([RIGHT])
        in_child(lambda: client.rewards([WRONG]) == [0.0] or sys.exit(1))
        assert pending.result(30)[0].reward == 1.0


def test_a_fork_grades_in_process() -> None:
    """In process, a child gets graders of its own."""
    with RewardClient(recipe="exact") as client:
        assert client.rewards([RIGHT]) == [1.0]
        in_child(lambda: client.rewards([RIGHT]) == [1.0] or sys.exit(1))


def test_what_cannot_be_made_anew_is_refused_in_a_fork() -> None:
    """An Engine is its process's own: in a child the client says so, and does not hang."""
    with Engine("exact") as engine, RewardClient(engine) as client:

        def child() -> None:
            with pytest.raises(ServiceError, match=r"before a fork.*Engine"):
                client.rewards([RIGHT])
            client.close()

        in_child(child)


async def test_the_async_client_is_refused_in_a_fork() -> None:
    """It belongs to a loop, which a child does not have."""
    async with AsyncRewardClient(recipe="exact") as client:

        def child() -> None:
            with pytest.raises(ServiceError, match="before a fork"):
                client.submit([RIGHT])

        in_child(child)


# -- in process ------------------------------------------------------------------------------------------------------


def test_in_process_by_recipe_and_pin() -> None:
    """Without a target everything built in is on offer; an unknown recipe or another version is refused."""
    with RewardClient(recipe="exact") as client:
        assert client.rewards([RIGHT, WRONG]) == [1.0, 0.0]
        version = client.offers()["exact"]
    with RewardClient("local", recipe=f"exact@{version}") as client:
        assert client.rewards([RIGHT]) == [1.0]
    with RewardClient(recipe="exact@no-such") as client, pytest.raises(PinError):
        client.score([RIGHT])
    with RewardClient(recipe="no_such") as client, pytest.raises(UnknownScorerError):
        client.score([RIGHT])


def test_in_process_by_engine() -> None:
    """An engine grades with its own recipe, may be pinned, and stays open when the client is closed."""
    with Engine("exact") as engine:
        with RewardClient(engine) as client:
            assert client.rewards([RIGHT, WRONG]) == [1.0, 0.0]
            (version,) = client.offers().values()
        with RewardClient(engine, recipe=f"exact@{version}") as client:
            assert client.rewards([RIGHT]) == [1.0]
        with RewardClient(engine, recipe="exact@0") as client, pytest.raises(PinError):
            client.score([RIGHT])
        with RewardClient(engine, recipe="math") as client, pytest.raises(UnknownScorerError):
            client.score([RIGHT])
        assert engine.score([RIGHT])[0].reward == 1.0


def test_in_process_by_engines() -> None:
    """Engines that others use too are not closed with the client."""
    with Engines(Catalog()) as engines:
        with RewardClient(engines, recipe="exact") as client:
            assert client.rewards([RIGHT]) == [1.0]
        assert engines.score("exact", [RIGHT])[0].verdict.reward == 1.0


def test_in_process_by_recipe_file(tmp_path: Path) -> None:
    """A recipe of one's own, as a file or an object, is the target and the recipe at once."""
    text = 'name = "doubled"\n[[routes]]\nparts = [{scorer = "exact"}]\nscale = 2.0\n'
    file = tmp_path / "mine.toml"
    file.write_text(text)
    for target in (file, str(file), Recipe.from_toml(text)):
        with RewardClient(target) as client:
            assert client.recipe == "doubled"
            assert client.rewards([RIGHT, WRONG]) == [2.0, 0.0]


def test_in_process_has_no_jobs() -> None:
    """What would not outlive the process is not called a job."""
    with RewardClient() as client:
        with pytest.raises(ServiceError, match="service with a queue"):
            client.start_job([RIGHT])
        for action in (client.attach("x").status, client.attach("x").cancel, client.attach("x").result):
            with pytest.raises(ServiceError, match="service with a queue"):
                action()


def test_in_process_deadline() -> None:
    """What is not graded in time is `ungraded: deadline`, and the caller does not wait for it."""
    rollouts = [Rollout(id=str(i), completion=rf"\boxed{{x^{{{i}}}+1}}", reference="(x+1)^9") for i in range(200)]
    with RewardClient(recipe="math", timeout_s=0.001) as client:
        verdicts = client.score(rollouts)
    assert [verdict.id for verdict in verdicts] == [rollout.id for rollout in rollouts]
    assert Reason.DEADLINE in {verdict.reason for verdict in verdicts}


def test_one_rollout_is_not_a_list() -> None:
    """A single rollout, dict or text in place of a list is a mistake that is named."""
    with RewardClient(recipe="exact") as client:
        for mistake in (RIGHT, {"completion": "1"}, "text"):
            with pytest.raises(TypeError, match="give a list"):
                client.score(mistake)  # type: ignore[arg-type]


def test_every_address_has_its_transport() -> None:
    """An address says which way rollouts go."""

    async def names() -> list[str]:
        return [
            type(connect(target)[0]).__name__
            for target in (None, "local", "http://h:1", "https://h", "redis://h:1/0", "rediss://h")
        ]

    found = asyncio.run(names())
    assert found == ["InProcessTransport"] * 2 + ["HttpTransport"] * 2 + ["QueueTransport"] * 2


class Miscounting(InProcessTransport):
    """A transport of somebody's own, with a mistake in it."""

    async def score(self, request: Request) -> list[Verdict]:
        return (await super().score(request))[1:]


def test_any_transport_is_checked() -> None:
    """A transport of one's own is a target; verdicts that are too few are never spread over the rollouts."""
    with Engine("exact") as engine:
        with RewardClient(InProcessTransport(engine), recipe="exact") as client:
            assert client.rewards([RIGHT, WRONG]) == [1.0, 0.0]
        with RewardClient(Miscounting(engine), recipe="exact", retries=0) as client:
            verdicts = client.score([RIGHT, WRONG])
    assert {verdict.reason for verdict in verdicts} == {Reason.BACKEND_UNAVAILABLE}
    assert len(verdicts) == 2


def test_imports_are_light() -> None:
    """`import rewarden` brings no client, and the client brings nothing heavy before it needs it."""
    program = (
        "import sys, rewarden\n"
        "assert not [name for name in sys.modules if name.startswith('rewarden.client')]\n"
        "client = rewarden.RewardClient(recipe='exact')\n"
        "assert client.rewards([rewarden.Rollout(completion='1', reference='1')]) == [1.0]\n"
        "heavy = {'httpx', 'redis', 'celery', 'fastapi', 'torch', 'numpy'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
