"""Runs OpenRLHF's own code, in an environment that has aiohttp: `openrlhf_caller.py WHEEL < JSON > JSON`.

Installing OpenRLHF needs a GPU's tool chain. The file of it that calls a reward server needs only aiohttp and a logger,
so that file alone is loaded from the wheel, with stand-ins for the logger, the tokenizer and the model.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import types
import zipfile
from typing import Any


def load_agent(wheel: str) -> Any:
    """The module openrlhf.utils.agent of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith("openrlhf/utils/agent.py")]
        source = archive.read(name).decode()
    for package in ("openrlhf", "openrlhf.utils"):
        sys.modules[package] = types.ModuleType(package)
    logger = types.ModuleType("openrlhf.utils.logging_utils")
    logger.__dict__["init_logger"] = logging.getLogger
    sys.modules["openrlhf.utils.logging_utils"] = logger
    agent = types.ModuleType("openrlhf.utils.agent")
    exec(compile(source, name, "exec"), agent.__dict__)
    return agent


class Ids(list[int]):
    """Token ids as the caller takes them from a tensor."""

    def tolist(self) -> list[int]:
        """A plain list."""
        return list(self)


class Tokenizer:
    """One token for each character."""

    def __call__(self, text: str, **_: Any) -> dict[str, list[Ids]]:
        return {"input_ids": [Ids(map(ord, text))]}

    def decode(self, ids: list[int], **_: Any) -> str:
        """The text again."""
        return "".join(map(chr, ids))


class Model:
    """Writes the same response whatever the prompt."""

    def __init__(self, response: str) -> None:
        output = types.SimpleNamespace(token_ids=list(map(ord, response)), logprobs=None, finish_reason="stop")
        self._output = types.SimpleNamespace(outputs=[output])

    async def generate(self, *_: Any, **__: Any) -> Any:
        """One response."""
        return self._output


async def main() -> None:
    """Read what to do, let OpenRLHF do it, and write what came out."""
    asked = json.load(sys.stdin)
    executor = load_agent(sys.argv[1]).SingleTurnAgentExecutor(asked["urls"])
    samples = []
    for prompt, response, label in asked["samples"]:
        params = types.SimpleNamespace(max_tokens=asked["max_tokens"], logprobs=None)
        found = await executor.execute(prompt, label, params, asked["max_length"], Tokenizer(), Model(response))
        samples.append({name: found[name] for name in ("reward", "scores", "extra_logs")})
    json.dump(samples, sys.stdout)


asyncio.run(main())
