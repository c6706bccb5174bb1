"""A reward function for verl, whose trainers call it for one sample at a time.

    reward.custom_reward_function.path=pkg://rewarden.trainer.adapters.verl      # or the path of this file
    reward.custom_reward_function.name=compute_score
    +reward.custom_reward_function.reward_kwargs.recipe=math
    +reward.custom_reward_function.reward_kwargs.target=http://rewards:8321

verl has no word for "not graded": a reward must be a number. So an ungraded sample raises, and verl's default (v1)
trainer drops its whole prompt group from the step, which is what a group with a hole should be; the older trainer
(`trainer.use_v1=false`) stops. With `reward_kwargs.ungraded=0.0` that number is given instead, and `graded` is 0.0 in
the extra info, so that a loss or a filter can leave the sample out.

Not covered: rewards for tokens, for which verl's streaming path has no place, and prompts, which it does not hand over
there (put what a scorer needs into the dataset's `extra_info`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any

# Absolute, because verl may load this file by its path, as a module of no package.
from rewarden.client import RewardClient
from rewarden.core.errors import UngradedError

_PLAIN = (str, int, float, bool)


def compute_score(
    data_source: str | None,
    solution_str: str,
    ground_truth: Any,
    extra_info: Mapping[str, Any] | None = None,
    *,
    recipe: str | None = None,
    target: str | None = None,
    ungraded: float | None = None,
    reward_router_address: Any = None,  # noqa: ARG001 - verl passes it where it has a reward model
    reward_model_tokenizer: Any = None,  # noqa: ARG001 - the same
    **options: Any,
) -> dict[str, Any]:
    """The score of one sample, always with the keys `score`, `acc`, `graded`, `outcome` and `reason`.

    `acc` is the score, as verl names a bare number. Plain values of `extra_info` are the rollout's metadata, and its
    `raw_prompt`, where verl gives it, is the prompt. `ungraded`: the score of what was not graded; when None, that
    raises UngradedError. `options` are those of RewardClient.
    """
    if ungraded is not None and not math.isfinite(ungraded):
        raise ValueError(f"ungraded={ungraded}: a score must be a finite number")
    extra = dict(extra_info or {})
    rollout = {
        "completion": solution_str,
        "reference": _plain(ground_truth),
        "data_source": data_source,
        "prompt": _plain(extra.get("raw_prompt")),
        "metadata": {key: value for key, value in extra.items() if isinstance(value, _PLAIN)} or None,
    }
    (verdict,) = _client(recipe, target, tuple(sorted(options.items()))).score([rollout])
    if verdict.reward is None and ungraded is None:
        raise UngradedError(
            f"not graded ({verdict.reason}): {verdict.explanation}; to give a number instead, set "
            "reward_kwargs.ungraded",
            [verdict],
        )
    score = float(ungraded or 0.0) if verdict.reward is None else verdict.reward
    return {
        "score": score,
        "acc": score,
        "graded": float(verdict.graded),
        "outcome": str(verdict.outcome),
        "reason": str(verdict.reason or ""),
    }


@functools.cache
def _client(recipe: str | None, target: str | None, options: tuple[tuple[str, Any], ...]) -> RewardClient:
    """One client for each set of arguments, kept for the life of the process. A forked process gets its own."""
    return RewardClient(target, recipe=recipe, **dict(options))


def _plain(value: Any) -> Any:
    """A value from a Parquet column without its NumPy types."""
    return value.tolist() if hasattr(value, "tolist") else value
