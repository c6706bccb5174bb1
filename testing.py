"""The conformance suite for scorers: `check_scorer` runs it, from any test framework.

```python
from rewarden.testing import check_scorer

def test_my_scorer():
    check_scorer(MyScorer(), [Rollout(completion="...", reference="...")])
```

It checks what the engine relies on and what users are promised: one verdict for each rollout, the same verdict every
time and in any company, no exception for anything a model may write, no reward where the reference is unusable.
It does not check that verdicts are *right*: only the author's own cases can.
"""

from __future__ import annotations

import asyncio
import inspect
import pickle
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from .core.errors import RewardenError
from .core.rollout import Rollout
from .core.scorer import Resource, Scorer, Unit, check_protocol
from .core.verdict import Verdict
from .core.work import views_of

HOSTILE_COMPLETIONS: tuple[Any, ...] = (
    "",
    " \n\t",
    "\x00\x01\ud800",
    "\\boxed{}",
    "\\boxed{" * 2000,
    "<think>" * 2000,
    "(" * 20_000,
    "\\boxed{" + "f(x+" * 40 + "1" + ")" * 40 + "}",
    "\\boxed{" + "2\\frac{1}{" * 40 + "1" + "}" * 40 + "}",
    "\\boxed{" + "\\" * 15_000 + "}",
    "\\boxed{1_{" + " " * 15_000 + "}}",
    "\\boxed{" + "\\text{" * 2000 + "}" * 2000 + "}",
    "<answer>" + "`" * 15_000 + "</answer>",
    "9^{9^{9^{9^9}}}",
    "1E9999999999",
    "١٢٣ ½ ∞ 𝟙 ＃",
    "x" * 200_000,
    [{"role": "assistant", "content": None}],
    [{"role": "assistant", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}],
    [{"role": "user", "content": "hello"}],
    [],
)
"""Completions that no scorer may fail on."""

DEADLINE_S = 30.0
"""How long one call of `score` may take on anything that the suite offers."""

BAD_REFERENCES: tuple[Any, ...] = (None, "", "  ", [], {})
"""References that say nothing. (A scorer that does not read `reference` is not asked about them.)"""


class ConformanceError(RewardenError, AssertionError):
    """A scorer breaks the contract; the message names each broken law."""


def check_scorer(
    scorer: Scorer, rollouts: Sequence[Rollout], *, bad_references: Sequence[Any] = BAD_REFERENCES
) -> list[Verdict]:
    """Run the suite on a scorer with typical rollouts (for a group scorer: one group) and return their verdicts.

    Raises ConformanceError with all broken laws. `bad_references` are references that must not get a reward.
    """
    check_protocol(scorer)
    if not rollouts:
        raise ConformanceError("give at least one typical rollout")
    faults: list[str] = []

    def law(holds: bool, text: str) -> None:
        if not holds:
            faults.append(text)

    verdicts = _score(scorer, rollouts, faults, "the typical rollouts")
    if verdicts is None:
        raise ConformanceError("; ".join(faults))
    again = _score(scorer, rollouts, faults, "the typical rollouts, again")
    law(again is None or _plain(verdicts) == _plain(again), "scoring twice gave different verdicts")
    for verdict in verdicts:
        try:
            law(Verdict.from_dict(_json(verdict)).to_json() == verdict.to_json(), "a verdict changes when it is stored")
        except (TypeError, ValueError) as error:
            law(False, f"a verdict is not JSON: {error}")
    if scorer.resource is Resource.CPU:
        try:
            clone = pickle.loads(pickle.dumps(scorer))  # noqa: S301 - our own bytes
            law(clone.stamp == scorer.stamp, "the scorer changes its stamp when pickled")
        except Exception as error:  # noqa: BLE001 - whatever goes wrong is the finding
            law(False, f"a CPU scorer must pickle (define it in a module): {error}")
    if scorer.unit is Unit.ROLLOUT:
        alone = [_score(scorer, [rollout], faults, "one rollout alone") for rollout in rollouts]
        single = [some[0] for some in alone if some]
        law(_plain(single) == _plain(verdicts), "a rollout alone gets another verdict than in company")
        quick = [scorer.quick(view) for view in views_of(scorer, rollouts)]
        law(
            all(fast is None or _plain([fast]) == _plain([slow]) for fast, slow in zip(quick, verdicts, strict=True)),
            "quick() and score() disagree",
        )
    base = rollouts[0]
    for completion in HOSTILE_COMPLETIONS:
        hostile = Rollout.parse({**base.model_dump(exclude_unset=True), "completion": completion})
        _score(
            scorer,
            [hostile, *rollouts[1:]] if scorer.unit is not Unit.ROLLOUT else [hostile],
            faults,
            repr(completion)[:60],
        )
    if "reference" in scorer.reads:
        for reference in bad_references:
            given = [rollout.model_copy(update={"reference": reference}) for rollout in rollouts]
            for verdict in _score(scorer, given, faults, f"reference {reference!r}") or []:
                law(
                    verdict.reward is None,
                    f"reference {reference!r} got the reward {verdict.reward}; it must be ungraded",
                )
    if faults:
        raise ConformanceError(f"scorer {scorer.name!r}: " + "; ".join(dict.fromkeys(faults)))
    return verdicts


def _score(scorer: Scorer, rollouts: Sequence[Rollout], faults: list[str], what: str) -> list[Verdict] | None:
    views = views_of(scorer, rollouts)
    try:
        out = _within(DEADLINE_S, lambda: _list(scorer, views, faults))
    except ConformanceError as error:
        raise ConformanceError(f"scorer {scorer.name!r}: {error} on {what}") from None
    except Exception as error:  # noqa: BLE001 - whatever goes wrong is the finding
        faults.append(f"score() raised {type(error).__name__} on {what}: {str(error)[:200]}")
        return None
    if len(out) != len(views) or not all(isinstance(verdict, Verdict) for verdict in out):
        faults.append(f"score() must return one Verdict for each rollout; on {what} it did not")
        return None
    return out


def _list(scorer: Scorer, views: Sequence[Any], faults: list[str]) -> list[Any]:
    verdicts = scorer.score(views, [{}] * len(views))
    if inspect.isawaitable(verdicts):
        if scorer.resource is not Resource.IO:
            faults.append("score() is async, so the resource must be 'io'")
        verdicts = asyncio.run(_await(verdicts))
    return list(verdicts)


def _within(seconds: float, run: Callable[[], list[Any]]) -> list[Any]:
    """What `run` returns or raises; ConformanceError when it does not end: its thread cannot be stopped, only left."""
    done: Future[list[Any]] = Future()

    def work() -> None:
        try:
            done.set_result(run())
        except BaseException as error:  # noqa: BLE001 - handed on to the caller
            done.set_exception(error)

    threading.Thread(target=work, name="rewarden-check", daemon=True).start()
    try:
        return done.result(seconds)
    except TimeoutError:
        if done.done():
            raise
        raise ConformanceError(f"score() has not ended after {seconds:g} s") from None


async def _await(pending: Any) -> Any:
    return await pending


def _plain(verdicts: Sequence[Verdict]) -> list[dict[str, Any]]:
    return [verdict.to_dict() for verdict in verdicts]


def _json(verdict: Verdict) -> Any:
    import orjson

    return orjson.loads(verdict.to_json())
