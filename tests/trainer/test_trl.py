"""The reward function for TRL, called exactly as its trainers call it."""

from __future__ import annotations

import importlib
import inspect
import multiprocessing
import pickle
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from rough_service import json, scores, serving
from spawned_calls import call

from rewarden.trainer.adapters import trl
from rewarden.trainer.adapters.trl import reward_function

WRONG, RIGHT = "It is 5.", r"So \boxed{4}."


class Logs:
    """TRL's `log_extra` and `log_metric`."""

    def __init__(self) -> None:
        self.columns: dict[str, list[Any]] = {}
        self.metrics: dict[str, float] = {}

    def arguments(self) -> dict[str, Any]:
        """As the trainer passes them."""
        return {
            "trainer_state": SimpleNamespace(global_step=3),
            "log_extra": self.columns.__setitem__,
            "log_metric": self.metrics.__setitem__,
        }


def said(text: str) -> list[dict[str, str]]:
    """A completion of a conversational dataset."""
    return [{"role": "assistant", "content": text}]


def test_text_batch() -> None:
    """All arguments by keyword, columns repeated for each generation: one reward each, None where not graded."""
    logs = Logs()
    function = reward_function("math")
    rewards = function(
        prompts=["2+2?", "2+2?", "3+3?", "3+3?"],
        completions=[WRONG, RIGHT, r"\boxed{6}", r"\boxed{6}"],
        completion_ids=[[1], [2], [3], [4]],
        answer=["4", "4", "6", None],
        difficulty=[1, 1, 2, 2],
        **logs.arguments(),
    )
    function.close()
    assert rewards == [0.0, 1.0, 1.0, None]
    assert logs.metrics == {"math_reward/ungraded": 0.25}
    assert logs.columns["math_reward_outcome"][1:] == ["correct", "correct", "ungraded: bad_reference"]


def test_conversations() -> None:
    """Completions are message lists, with the turns of tools in between; thinking may be beside the content."""
    with_tools = [
        {"role": "assistant", "content": None, "tool_calls": [{"type": "function", "function": {"name": "add"}}]},
        {"role": "tool", "name": "add", "content": "4"},
        {"role": "assistant", "content": RIGHT, "reasoning_content": "2 and 2"},
    ]
    rewards = trl.math_reward(
        prompts=[[{"role": "user", "content": "2+2?"}]] * 3,
        completions=[said(WRONG), said(RIGHT), with_tools],
        completion_ids=[[1], [2], [3]],
        answer=["4"] * 3,
    )
    assert rewards == [0.0, 1.0, 1.0]


def test_without_the_optional_arguments() -> None:
    """The asynchronous trainer passes neither state nor logs, and calls in a thread."""
    found: list[list[float | None]] = []

    def ask() -> None:
        found.append(trl.auto_reward(completions=[RIGHT], prompts=["?"], completion_ids=[[1]], answer=["4"]))

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join(60)
    assert found == [[1.0]]


def test_what_is_sent() -> None:
    """Prompt, group, step and the columns that were asked for go along; images do not, and cost no reward."""
    logs = Logs()
    image = [{"role": "user", "content": [{"type": "image", "image": object()}, {"type": "text", "text": "?"}]}]
    with serving(scores) as (url, service):
        function = reward_function(target=url, reference="gold", columns={"data_source": "source"}, name="mine")
        rewards = function(
            prompts=[image, image, "other"],
            completions=["1", "2", "1"],
            completion_ids=[[1]] * 3,
            gold=["1", "1", "1"],
            source=["a", "a", "b"],
            **logs.arguments(),
        )
        function.close()
    assert rewards == [1.0, 0.0, 1.0]
    first, second, third = service.calls[0].rollouts
    assert first["prompt_id"] == second["prompt_id"] != third["prompt_id"]
    assert first["prompt"][0]["content"] == [{"type": "image"}, {"type": "text", "text": "?"}]
    assert [first["step"], first["data_source"], third["data_source"]] == [3, "a", "b"]


def test_a_column_that_is_not_there_is_named() -> None:
    """A mistake in the set-up stops the training at its first step, with what there is."""
    with pytest.raises(ValueError, match=r"column 'answer'.*\['solution'\]"):
        reward_function("math")(prompts=["?"], completions=["1"], completion_ids=[[1]], solution=["1"])
    with pytest.raises(ValueError, match="no fields of a rollout"):
        reward_function("math", columns={"gold": "answer"})


def test_without_reference() -> None:
    """A recipe that needs no reference reads no column."""
    function = reward_function("majority", reference=None)
    rewards = function(prompts=["?"] * 3, completions=[RIGHT, RIGHT, r"\boxed{5}"], completion_ids=[[1]] * 3)
    function.close()
    assert rewards == [1.0, 1.0, 0.0]


def test_options_reach_the_client() -> None:
    """A policy for the ungraded is the client's."""
    function = reward_function("math", on_ungraded=-1.0)
    assert function(prompts=["?"], completions=["1"], completion_ids=[[1]], answer=[None]) == [-1.0]
    function.close()


def test_a_failed_service_is_masked() -> None:
    """A service that fails makes None, which TRL leaves out, not a wrong answer and no exception."""
    with serving(lambda _: json({"verdicts": []})) as (url, _):
        function = reward_function("math", url, retries=0)
        assert function(prompts=["?"], completions=["1"], completion_ids=[[1]], answer=["1"]) == [None]
        function.close()


def test_names() -> None:
    """TRL calls it by `__name__`; two functions can have two names; it is no coroutine function."""
    assert reward_function("math@1").__name__ == "math_reward"
    assert reward_function().__name__ == "auto_reward"
    assert reward_function("math", name="strict").__name__ == "strict"
    assert not inspect.iscoroutinefunction(trl.math_reward)
    assert callable(trl.math_reward)


def test_dotted_path() -> None:
    """TRL's command line takes `module.attribute`."""
    path = "rewarden.trainer.adapters.trl.math_reward"
    module, _, name = path.rpartition(".")
    function = getattr(importlib.import_module(module), name)
    assert function(prompts=["?"], completions=[RIGHT], completion_ids=[[1]], answer=["4"]) == [1.0]


def test_pickled_into_a_spawned_process() -> None:
    """The asynchronous trainer scores in a process of its own; a function that was used before goes there too."""
    with serving(scores) as (url, service):
        function = reward_function("exact", url)
        assert function(completions=["1"], answer=["1"]) == [1.0]
        again = pickle.loads(pickle.dumps(function))
        assert again(completions=["2"], answer=["1"]) == [0.0]
        again.close()
        context = multiprocessing.get_context("spawn")
        results = context.Queue()
        arguments = {
            "prompts": ["?", "?"],
            "completions": ["1", "2"],
            "completion_ids": [[1]] * 2,
            "answer": ["1", "1"],
        }
        process = context.Process(target=call, args=(function, arguments, results))
        process.start()
        assert results.get(timeout=60) == [1.0, 0.0]
        process.join(60)
        assert process.exitcode == 0
        results.close()
        results.join_thread()
        function.close()
    assert service.connections == 3
