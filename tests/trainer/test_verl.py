"""The reward function for verl, loaded and called exactly as its trainers do."""

from __future__ import annotations

import functools
import importlib.util
import inspect
import multiprocessing
import pickle
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rough_service import json, scores, serving
from spawned_calls import call

from rewarden import Reason, UngradedError
from rewarden.trainer.adapters import verl
from rewarden.trainer.adapters.verl import compute_score

KEYS = ["score", "acc", "graded", "outcome", "reason"]
SAMPLE: dict[str, Any] = {
    "data_source": "openai/gsm8k",
    "solution_str": r"So \boxed{4}.",
    "ground_truth": "4",
    "extra_info": {"index": 7, "split": "train", "num_turns": None, "rollout_reward_scores": {}},
}


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    """Clients are kept for the life of a process; a test leaves none."""
    yield
    verl._client.cache_clear()


def with_kwargs(function: Any, extra: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
    """As verl merges `reward_kwargs` into each call."""
    return function(*args, **{**kwargs, **extra})


def test_one_sample() -> None:
    """Keyword arguments in, a dict with a score and a fixed set of keys out, whatever the outcome is."""
    right = compute_score(**SAMPLE, recipe="math")
    wrong = compute_score(**SAMPLE | {"solution_str": r"\boxed{5}"}, recipe="math")
    silent = compute_score(**SAMPLE | {"solution_str": ""}, recipe="math")
    broken = compute_score(**SAMPLE | {"ground_truth": None}, recipe="math", ungraded=-0.5)
    assert [list(result) for result in (right, wrong, silent, broken)] == [KEYS] * 4
    assert [result["score"] for result in (right, wrong, silent, broken)] == [1.0, 0.0, 0.0, -0.5]
    assert [result["graded"] for result in (right, wrong, silent, broken)] == [1.0, 1.0, 1.0, 0.0]
    assert all(result["acc"] == result["score"] for result in (right, wrong, silent, broken))
    assert broken["reason"] == "bad_reference"
    for result in (right, broken):
        assert [type(value) for value in result.values()] == [float, float, float, str, str]


def test_ungraded_raises_unless_a_number_was_chosen() -> None:
    """A number is never made up: without `ungraded` the sample raises, with the verdict; 0 is a choice too."""
    with serving(lambda _: json({"verdicts": []})) as (url, _):
        options: dict[str, Any] = {"recipe": "math", "target": url, "retries": 0}
        with pytest.raises(UngradedError, match=r"backend_unavailable.*reward_kwargs\.ungraded") as caught:
            compute_score(**SAMPLE, **options)
        assert caught.value.verdicts[0].reason is Reason.BACKEND_UNAVAILABLE
        assert pickle.loads(pickle.dumps(caught.value)).verdicts == caught.value.verdicts
        result = compute_score(**SAMPLE, **options, ungraded=0)
        assert (result["score"], result["graded"]) == (0.0, 0.0)
        with pytest.raises(ValueError, match="ungraded=nan"):
            compute_score(**SAMPLE, **options, ungraded=float("nan"))


def test_what_is_sent() -> None:
    """Source, reference and plain extra values go along, NumPy lists as lists; what verl adds for itself does not."""
    extra = {"index": 3, "raw_prompt": [{"role": "user", "content": "2+2?"}], "tools": object()}
    gold = SimpleNamespace(tolist=lambda: ["4", "5"])
    with serving(scores) as (url, service):
        for _ in range(2):
            compute_score(
                "source",
                "4",
                gold,
                extra,
                target=url,
                reward_router_address="http://r",
                reward_model_tokenizer=object(),
            )
    sent = service.calls[0].rollouts[0]
    assert sent == {
        "completion": "4",
        "reference": ["4", "5"],
        "data_source": "source",
        "prompt": [{"role": "user", "content": "2+2?"}],
        "metadata": {"index": 3},
    }
    assert service.connections == 1, "one client for all calls"


def test_many_threads() -> None:
    """It is called from the threads of an executor, wrapped in a partial."""
    wrapped = functools.partial(with_kwargs, compute_score, {"recipe": "math"})
    assert not inspect.iscoroutinefunction(wrapped)
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda i: wrapped(**SAMPLE | {"ground_truth": str(i % 8)})["score"], range(64)))
    assert results == [1.0 if i % 8 == 4 else 0.0 for i in range(64)]


def test_loaded_by_its_path(root: Path) -> None:
    """The file may be loaded by its path, as a module of no package."""
    spec = importlib.util.spec_from_file_location("custom_module", root / "trainer/adapters/verl.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["custom_module"] = module
    try:
        spec.loader.exec_module(module)
        assert module.compute_score(**SAMPLE, recipe="math")["score"] == 1.0
        module._client.cache_clear()
    finally:
        del sys.modules["custom_module"]


def test_pickled_into_a_spawned_process() -> None:
    """A reward worker is another process: the function goes there as a pickle, also inside verl's partial."""
    wrapped = functools.partial(compute_score, recipe="math")
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    process = context.Process(target=call, args=(wrapped, SAMPLE, results))
    process.start()
    assert results.get(timeout=60)["score"] == 1.0
    process.join(60)
    assert process.exitcode == 0
    results.close()
    results.join_thread()
