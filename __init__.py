r"""Rewarden grades what a language model wrote, so that a trainer can learn from it.

```python
import rewarden

with rewarden.Engine("math") as engine:
    verdicts = engine.score([rewarden.Rollout(completion=r"... \boxed{42}", reference="42")])
```
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .core.budget import Budget
from .core.engine import Engine
from .core.errors import (
    DumpError,
    PinError,
    PoolError,
    RecipeError,
    RewardenError,
    RolloutError,
    ScorerError,
    ServiceError,
    UngradedError,
    UnknownScorerError,
)
from .core.extraction import extract, visible
from .core.reasons import Reason
from .core.recipe import Recipe
from .core.registry import register
from .core.rollout import Message, Rollout, Tokens
from .core.scorer import Resource, Scorer, Unit, scorer
from .core.verdict import (
    Graded,
    Outcome,
    Span,
    Trace,
    Verdict,
    correct,
    incorrect,
    no_answer,
    scored,
    ungraded,
)

if TYPE_CHECKING:
    from .client import AsyncRewardClient, RewardClient

__version__ = "0.1.0"

__all__ = [
    "AsyncRewardClient",
    "Budget",
    "DumpError",
    "Engine",
    "Graded",
    "Message",
    "Outcome",
    "PinError",
    "PoolError",
    "Reason",
    "Recipe",
    "RecipeError",
    "Resource",
    "RewardClient",
    "RewardenError",
    "Rollout",
    "RolloutError",
    "Scorer",
    "ScorerError",
    "ServiceError",
    "Span",
    "Tokens",
    "Trace",
    "UngradedError",
    "Unit",
    "UnknownScorerError",
    "Verdict",
    "correct",
    "extract",
    "incorrect",
    "no_answer",
    "register",
    "scored",
    "scorer",
    "ungraded",
    "visible",
]


def __getattr__(name: str) -> Any:
    # The client is imported when it is first asked for.
    if name in ("AsyncRewardClient", "RewardClient"):
        from . import client

        return getattr(client, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
