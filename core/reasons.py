"""Why a verdict is what it is, beyond right and wrong: one closed vocabulary.

Trainers, dashboards and queues branch on these names, so they are only ever added to. Who is at fault decides the
outcome a reason may go with: the completion's own faults come with a graded outcome, all others with `ungraded`.
"""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """A machine-readable cause. Members below `ungraded causes` always go with `reward = None`."""

    # The completion's own doing: graded.
    EMPTY = "empty"
    """Nothing was written, or only white space, an empty box or an empty tag."""
    NO_ANSWER_FOUND = "no_answer_found"
    """There is text, but no place in it that the extraction policy accepts as an answer."""
    UNFINISHED_THINKING = "unfinished_thinking"
    """The completion ended inside its thinking."""
    TRUNCATED = "truncated"
    """The completion ended inside the answer."""
    SEVERAL_ANSWERS = "several_answers"
    """Different answers were offered at once; picking the right one for the model would reward guessing."""
    UNREADABLE_ANSWER = "unreadable_answer"
    """An answer was found but is not of a form that could equal the reference."""
    TOO_COMPLEX = "too_complex"
    """The answer cannot be settled within the deterministic budget."""
    TOO_LARGE = "too_large"
    """A bound on its size proves that the answer differs from the reference."""
    INVALID_FORMAT = "invalid_format"
    """The answer is not of the format asked for (not JSON, not valid under the schema)."""

    # Ungraded causes: the reference, a backend, a machine, or the scorer itself.
    BAD_ROLLOUT = "bad_rollout"
    """What was sent is no rollout: a field is missing or has the wrong type."""
    BAD_REFERENCE = "bad_reference"
    """The reference is missing, empty or cannot be understood."""
    DEADLINE = "deadline"
    """The wall-clock deadline passed before the budget of CPU was used: a starved machine or a slow backend."""
    OVER_BUDGET = "over_budget"
    """It took more CPU or memory than its budget, and the scorer does not say whose doing that was."""
    WORKER_LOST = "worker_lost"
    """The worker died while this item ran alone, more than once."""
    SCORER_ERROR = "scorer_error"
    """The scorer raised, or returned something that is no verdict."""
    SANDBOX_ERROR = "sandbox_error"
    """The sandbox failed, not the program in it."""
    JUDGE_FAILED = "judge_failed"
    """The judge gave no usable verdict."""
    BACKEND_UNAVAILABLE = "backend_unavailable"
    """A remote service that the scorer needs did not answer."""
    CANCELLED = "cancelled"
    """The caller withdrew the work."""
    NO_CONSENSUS = "no_consensus"
    """A group agrees on no label."""
    INCOMPLETE_GROUP = "incomplete_group"
    """Members of the group are missing and the recipe does not score parts of groups."""
    NO_ROUTE = "no_route"
    """No route of the recipe accepts this rollout."""


UNGRADED_REASONS = frozenset(
    {
        Reason.BAD_ROLLOUT,
        Reason.BAD_REFERENCE,
        Reason.DEADLINE,
        Reason.OVER_BUDGET,
        Reason.WORKER_LOST,
        Reason.SCORER_ERROR,
        Reason.SANDBOX_ERROR,
        Reason.JUDGE_FAILED,
        Reason.BACKEND_UNAVAILABLE,
        Reason.CANCELLED,
        Reason.NO_CONSENSUS,
        Reason.INCOMPLETE_GROUP,
        Reason.NO_ROUTE,
    }
)
"""The reasons that go with `ungraded`, and with nothing else."""

RETRYABLE_REASONS = frozenset(
    {
        Reason.DEADLINE,
        Reason.WORKER_LOST,
        Reason.SANDBOX_ERROR,
        Reason.JUDGE_FAILED,
        Reason.BACKEND_UNAVAILABLE,
    }
)
"""The ungraded reasons that another try may cure: a machine or a backend was at fault, not what was sent."""
