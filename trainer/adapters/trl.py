"""A reward function for TRL's GRPO and RLOO trainers.

Covered: batches of text or of conversations, dataset columns, None for what was not graded, a metric and a column in
TRL's logs, functions that are pickled into another process, and functions that are named on a command line. Not
covered: rewards for tokens or steps, for which TRL has no place.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson

from ...client import RewardClient
from ...client.target import Target
from ...core.rollout import FIELDS
from ...core.verdict import Verdict

_PLAIN = (str, int, float, bool, type(None))


class RewardFunction:
    """What `GRPOTrainer(reward_funcs=...)` calls. Make it with `reward_function`.

    Its client is made when it is first called, in the process that calls it: so it can be pickled, and forked.
    """

    def __init__(
        self, recipe: str | None, target: Target, columns: Mapping[str, str], name: str, options: Mapping[str, Any]
    ) -> None:
        self.__name__ = name
        self._recipe = recipe
        self._target = target
        self._columns = dict(columns)
        self._options = dict(options)
        self._forget()

    def _forget(self) -> None:
        self._client: RewardClient | None = None
        self._lock = threading.Lock()

    def __call__(
        self,
        prompts: Sequence[Any] | None = None,
        completions: Sequence[Any] = (),
        completion_ids: Sequence[Any] | None = None,
        *,
        trainer_state: Any = None,
        log_extra: Callable[[str, list[Any]], None] | None = None,
        log_metric: Callable[[str, float], None] | None = None,
        **columns: Any,
    ) -> list[float | None]:
        """One reward for each completion; None where there is none, which TRL leaves out of the group."""
        step = getattr(trainer_state, "global_step", None)
        rows = [self._row(completion, step) for completion in completions]
        if prompts is not None:
            for row, prompt in zip(rows, prompts, strict=True):
                row["prompt"] = _plain(prompt)
                # TRL names no group. Rollouts of the same prompt are one, wherever they are in the batch.
                row["prompt_id"] = _digest(row["prompt"])
        for field, column in self._columns.items():
            if column not in columns:
                raise ValueError(
                    f"the reward function {self.__name__} reads {field} from the column {column!r}, which the dataset "
                    f"does not have; it has {sorted(columns)}. Name another with reference=..., or None for none"
                )
            for row, value in zip(rows, columns[column], strict=True):
                row[field] = value
        client = self._ready()
        verdicts = client.score(rows)
        if log_extra is not None:
            log_extra(f"{self.__name__}_outcome", [_word(verdict) for verdict in verdicts])
        if log_metric is not None and verdicts:
            failed = sum(not verdict.graded for verdict in verdicts)
            log_metric(f"{self.__name__}/ungraded", failed / len(verdicts))
        return [client.reward(verdict) for verdict in verdicts]

    def _row(self, completion: Any, step: int | None) -> dict[str, Any]:
        row: dict[str, Any] = {"completion": _plain(completion)}
        if isinstance(step, int):
            row["step"] = step
        return row

    def _ready(self) -> RewardClient:
        with self._lock:
            if self._client is None:
                self._client = RewardClient(self._target, recipe=self._recipe, **self._options)
            return self._client

    def close(self) -> None:
        """Give back connections and workers. A later call makes new ones."""
        with self._lock:
            if self._client is not None:
                self._client.close()
                self._client = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_client", "_lock")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._forget()

    def __repr__(self) -> str:
        return f"reward_function({self._recipe!r}, {self._target!r}, name={self.__name__!r})"


def reward_function(
    recipe: str | None = None,
    target: Target = None,
    *,
    reference: str | None = "answer",
    columns: Mapping[str, str] | None = None,
    name: str | None = None,
    **options: Any,
) -> RewardFunction:
    """A reward function for TRL that grades with `recipe` at `target`, both as RewardClient takes them.

    `reference`: the dataset column with the gold answers; None where the recipe needs none. `columns`: other fields of
    a rollout, and the columns that hold them (`{"data_source": "source"}`). `name`: what TRL calls it in its logs; two
    functions of one trainer need two names. `options`: those of RewardClient.

    In TRL's command line, name an object in a module of your own (`my_rewards.math`), or `auto_reward` or
    `math_reward` here.
    """
    fields = {**(columns or {}), **({} if reference is None else {"reference": reference})}
    unknown = sorted(set(fields) - FIELDS)
    if unknown:
        raise ValueError(f"columns={unknown}: no fields of a rollout; there are {', '.join(sorted(FIELDS))}")
    label = name or f"{(recipe or 'auto').partition('@')[0]}_reward"
    return RewardFunction(recipe, target, fields, label, options)


def _plain(value: Any) -> Any:
    """A prompt or completion as JSON values: images and other objects in content parts are left out."""
    if not isinstance(value, (list, tuple)):
        return value
    return [
        {**message, "content": [_text_part(part) for part in message["content"]]}
        if isinstance(message, Mapping) and isinstance(message.get("content"), (list, tuple))
        else message
        for message in value
    ]


def _text_part(part: Any) -> Any:
    if isinstance(part, Mapping):
        return {key: value for key, value in part.items() if isinstance(value, _PLAIN)}
    return part


def _digest(prompt: Any) -> str:
    text = prompt if isinstance(prompt, str) else orjson.dumps(prompt, default=repr).decode()
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def _word(verdict: Verdict) -> str:
    return str(verdict.outcome) if verdict.reason is None else f"{verdict.outcome}: {verdict.reason}"


auto_reward = reward_function()
"""Chooses the scorer by the shape of the column `answer`, in the trainer's process."""

math_reward = reward_function("math")
"""Grades mathematics against the column `answer`, in the trainer's process."""
