"""OpenRLHF's own code against a service: the file of its wheel that calls a reward server, run as it is."""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from service import Running

pytestmark = pytest.mark.slow

VERSION = "0.11.2"
PROMPT = "<|im_start|>user\n1+1?<|im_end|>\n<|im_start|>assistant\n"


class Caller(NamedTuple):
    """An environment with aiohttp, and the wheel."""

    python: Path
    wheel: Path


@pytest.fixture(scope="module")
def caller(pytestconfig: pytest.Config) -> Caller:
    """Made once, in pytest's cache; without the package index the tests are skipped."""
    assert pytestconfig.cache is not None
    folder = pytestconfig.cache.mkdir(f"openrlhf-{VERSION}")
    python = folder / "env/bin/python"
    try:
        if not list(folder.glob("*.whl")):
            wanted = ["--no-deps", "--python-version=3.11", "--only-binary=:all:", f"openrlhf=={VERSION}"]
            _run(sys.executable, "-m", "pip", "-q", "download", *wanted, "--dest", str(folder))
        if not python.exists():
            venv.create(folder / "env", with_pip=True)
        _run(str(python), "-m", "pip", "-q", "install", "aiohttp")
    except (subprocess.SubprocessError, OSError) as error:
        pytest.skip(f"needs openrlhf {VERSION} and aiohttp from the package index: {error}")
    return Caller(python, next(folder.glob("*.whl")))


def _run(*command: str, **options: Any) -> str:
    done: subprocess.CompletedProcess[str] = subprocess.run(
        command, check=True, capture_output=True, text=True, timeout=120, **options
    )
    return done.stdout


def sample(
    caller: Caller, root: Path, urls: list[str], samples: list[tuple[str, str, Any]], max_length: int = 10_000
) -> list[dict[str, Any]]:
    """What OpenRLHF makes of these prompts, responses and labels."""
    asked = {"urls": urls, "samples": samples, "max_tokens": 50, "max_length": max_length}
    script = root / "tests/support/openrlhf_caller.py"
    out: list[dict[str, Any]] = json.loads(
        _run(str(caller.python), "-P", str(script), str(caller.wheel), input=json.dumps(asked))
    )
    return out


def test_it_gets_its_rewards(url: Running, caller: Caller, root: Path) -> None:
    """Right, wrong and silent samples come back with reward, score and logs; several addresses take turns."""
    address = f"{url}/get_reward?recipe=math"
    responses = ["It is \\boxed{2}.<|im_end|>", "It is \\boxed{3}.<|im_end|>", "<|im_end|>"]
    found = sample(caller, root, [address, address], [(PROMPT, response, "2") for response in responses])
    assert [one["reward"] for one in found] == [[1.0], [0.0], [0.0]]
    assert [one["scores"] for one in found] == [[1.0], [0.0], [0.0]]
    assert [one["extra_logs"]["no_answer"] for one in found] == [[0.0], [0.0], [1.0]]
    assert all(one["extra_logs"]["graded"] == [1.0] for one in found)


def test_a_prompt_that_it_cut_is_no_hindrance(url: Running, caller: Caller, root: Path) -> None:
    """It cuts the beginning of a prompt that is too long, and sends the whole one beside it."""
    prompt = "".join(f"line {i}\n" for i in range(100)) + PROMPT
    [found] = sample(caller, root, [f"{url}/get_reward?recipe=math"], [(prompt, "\\boxed{2}", "2")], max_length=500)
    assert found["reward"] == [1.0]


def test_ungraded_reaches_it_as_no_reward(url: Running, caller: Caller, root: Path) -> None:
    """Without a label there is no reward, which stops training there; with a stated value there is a marked one."""
    address = f"{url}/get_reward?recipe=math"
    [found] = sample(caller, root, [address], [(PROMPT, "\\boxed{2}", "")])
    assert found == {"reward": None, "scores": None, "extra_logs": {}}
    [found] = sample(caller, root, [f"{address}&ungraded=0.5"], [(PROMPT, "\\boxed{2}", "")])
    assert (found["reward"], found["extra_logs"]["graded"]) == ([0.5], [0.0])
