"""Every exception that Rewarden raises on purpose.

One root, `RewardenError`; each category also inherits the standard type that a caller would expect, pickles, and says
what to do next in its message. Faults of a *rollout* are never exceptions: they are verdicts (see `verdict.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .verdict import Verdict

_SHOWN = 1000


def describe(error: BaseException) -> str:
    """One exception as one short text, whatever its `__str__` does; lone surrogates become question marks."""
    name = type(error).__name__
    try:
        text = str(error)
    except BaseException as again:  # noqa: BLE001 - a broken __str__ is its author's fault, not ours
        return f"{name} (its text cannot be shown: {type(again).__name__})"
    text = text[:_SHOWN].encode("utf-8", "replace").decode()
    return f"{name}: {text}" if text else name


class RewardenError(Exception):
    """The root of all errors of this package."""


class RecipeError(RewardenError, ValueError):
    """A recipe cannot be read, names something unknown, or contradicts itself."""


class UnknownScorerError(RewardenError, LookupError):
    """No scorer of that name (or that pinned version) is registered."""


class PinError(RewardenError, LookupError):
    """A scorer or recipe is pinned to another version than the one that is here."""


class ScorerError(RewardenError, TypeError):
    """A scorer breaks the protocol: wrong attributes, or a result that is no verdict."""


class RolloutError(RewardenError, ValueError):
    """A row is not a rollout: a field is missing or has the wrong type."""


class DumpError(RewardenError, ValueError):
    """A rollout file cannot be read or written as asked."""


class PoolError(RewardenError, RuntimeError):
    """The worker pool cannot start, or was used after it was closed."""


class ServiceError(RewardenError, RuntimeError):
    """A service refused a request, or cannot be started as asked."""


class UngradedError(RewardenError, RuntimeError):
    """Rollouts came back ungraded, and the caller wants to hear of it rather than to mask them.

    `verdicts` are all that came back with them.
    """

    def __init__(self, message: str, verdicts: Sequence[Verdict] = ()) -> None:
        super().__init__(message)
        self.verdicts = list(verdicts)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.verdicts)
