"""What a scorer says about one rollout.

A `Verdict` is a pure function of its inputs. Times, cache hits, attempts and hosts are not part of it: they live in the
`Trace` beside it, so that the verdicts of two runs can be compared byte by byte.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from enum import StrEnum
from typing import Any

import orjson

from .reasons import UNGRADED_REASONS, Reason


class Outcome(StrEnum):
    """What happened, in one word."""

    CORRECT = "correct"
    """Graded: right."""
    INCORRECT = "incorrect"
    """Graded: wrong."""
    PARTIAL = "partial"
    """Graded: between right and wrong."""
    SCORED = "scored"
    """Graded on a scale that has no right and wrong."""
    NO_ANSWER = "no_answer"
    """Graded: the completion holds no answer, which is the model's own fault."""
    UNGRADED = "ungraded"
    """Not graded: `reward` is None and `reason` says why."""


@dataclass(frozen=True, slots=True)
class ScorerStamp:
    """Which scorer spoke: a client may pin it, and a cache key starts with `digest`."""

    name: str
    version: str
    digest: str
    """Of name, version, configuration and the versions of the libraries that decide (16 hex digits)."""


@dataclass(frozen=True, slots=True)
class Span:
    """A token-level reward as a range of characters; the client maps it to token ids."""

    message: int
    """Index of the message in a chat completion; 0 for a text completion."""
    start: int
    end: int
    """Characters, end exclusive."""
    reward: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of grading one rollout. The engine fills `id` and `scorer`; scorers leave them out.

    Raises ValueError for a verdict that would lie: a reward that is not finite, an ungraded one with a reward or
    without a reason, a graded one without a reward or with a reason that only an ungraded one can have.
    """

    outcome: Outcome
    reward: float | None
    """1 for right, 0 for wrong unless a recipe scales it; None exactly when `outcome` is ungraded."""
    reason: Reason | None = None
    explanation: str = ""
    """One line for a person."""
    advantage: float | Sequence[float] | None = None
    """Set where the method defines the advantage itself, and a trainer must not normalise again."""
    components: Mapping[str, float | None] | None = None
    """Reward of each part of a recipe or criterion of a rubric."""
    spans: Sequence[Span] | None = None
    step_rewards: Sequence[float | None] | None = None
    """One for each message of a chat completion."""
    evidence: Mapping[str, Any] | None = None
    """JSON values that let a person check the verdict: extracted answer, votes, per-test results..."""
    id: str = ""
    scorer: ScorerStamp | None = None

    def __post_init__(self) -> None:
        reward = self.reward
        if not isinstance(self.outcome, Outcome) or not (self.reason is None or isinstance(self.reason, Reason)):
            raise TypeError(
                f"outcome and reason are members of Outcome and Reason, not {self.outcome!r}, {self.reason!r}"
            )
        if reward is not None and type(reward) is not float:
            if isinstance(reward, bool) or not isinstance(reward, (int, float)):
                raise TypeError(f"a reward is a number, not {reward!r}")
            reward = float(reward)
            object.__setattr__(self, "reward", reward)
        if reward is None:
            if self.outcome is not Outcome.UNGRADED:
                raise ValueError(f"a verdict without a reward must be ungraded, not {self.outcome}")
            if self.reason is None:
                raise ValueError("an ungraded verdict must give its reason")
        elif not math.isfinite(reward):
            raise ValueError(f"a reward must be a finite number, not {reward!r}; what cannot be graded is ungraded")
        elif self.outcome is Outcome.UNGRADED:
            raise ValueError(f"an ungraded verdict has reward None, not {reward!r}")
        if self.reason is not None and (self.reason in UNGRADED_REASONS) is not (reward is None):
            raise ValueError(f"reason {self.reason} does not go with outcome {self.outcome}")
        if self.advantage is not None:
            values = self.advantage if isinstance(self.advantage, Sequence) else (self.advantage,)
            if not all(math.isfinite(value) for value in values):
                raise ValueError("an advantage must be finite")

    @property
    def graded(self) -> bool:
        """Whether there is a reward to learn from."""
        return self.reward is not None

    def stamped(self, id: str, scorer: ScorerStamp | None) -> Verdict:
        """This verdict for the rollout `id`, as said by `scorer`; nothing that needs checking changes."""
        new = object.__new__(Verdict)
        set_field = object.__setattr__
        set_field(new, "outcome", self.outcome)
        set_field(new, "reward", self.reward)
        set_field(new, "reason", self.reason)
        set_field(new, "explanation", self.explanation)
        set_field(new, "advantage", self.advantage)
        set_field(new, "components", self.components)
        set_field(new, "spans", self.spans)
        set_field(new, "step_rewards", self.step_rewards)
        set_field(new, "evidence", self.evidence)
        set_field(new, "id", id)
        set_field(new, "scorer", scorer)
        return new

    def with_reward(self, reward: float) -> Verdict:
        """The same verdict with another reward (a recipe's scale)."""
        return replace(self, reward=reward)

    def to_dict(self) -> dict[str, Any]:
        """As JSON values, without the fields that are empty; `reward` is always there."""
        out: dict[str, Any] = {"id": self.id, "reward": self.reward, "outcome": self.outcome.value}
        for name in _OPTIONAL:
            value = getattr(self, name)
            if value is not None and value != "":
                out[name] = value
        if self.scorer is not None:
            out["scorer"] = {"name": self.scorer.name, "version": self.scorer.version, "digest": self.scorer.digest}
        if self.spans is not None:
            out["spans"] = [asdict(span) for span in self.spans]
        return out

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Verdict:
        """The inverse of `to_dict` after a trip through JSON. Unknown keys are ignored: a newer writer may add some."""
        known = {key: value for key, value in data.items() if key in _FIELDS}
        known["outcome"] = Outcome(known["outcome"])
        if known.get("reason") is not None:
            known["reason"] = Reason(known["reason"])
        if known.get("scorer") is not None:
            known["scorer"] = ScorerStamp(**known["scorer"])
        if known.get("spans") is not None:
            known["spans"] = [Span(**span) for span in known["spans"]]
        return cls(**known)

    def to_json(self) -> bytes:
        """`to_dict` as JSON. Non-string keys and non-JSON evidence raise TypeError: a scorer must give JSON values."""
        return orjson.dumps(self.to_dict())


_FIELDS = frozenset(field.name for field in fields(Verdict))
_OPTIONAL = tuple(f.name for f in fields(Verdict) if f.name not in ("id", "reward", "outcome"))


def correct(reward: float = 1.0, **rest: Any) -> Verdict:
    """Right, with reward 1."""
    return Verdict(Outcome.CORRECT, reward, **rest)


def incorrect(reason: Reason | None = None, explanation: str = "", reward: float = 0.0, **rest: Any) -> Verdict:
    """Graded and wrong, with reward 0: never for what could not be graded."""
    return Verdict(Outcome.INCORRECT, reward, reason, explanation, **rest)


def no_answer(reason: Reason, explanation: str = "", reward: float = 0.0, **rest: Any) -> Verdict:
    """The completion has no answer: the model's own fault, so it has the reward of a wrong one."""
    return Verdict(Outcome.NO_ANSWER, reward, reason, explanation, **rest)


def scored(reward: float, **rest: Any) -> Verdict:
    """Graded on a scale without right and wrong."""
    return Verdict(Outcome.SCORED, reward, **rest)


def ungraded(reason: Reason, explanation: str, **rest: Any) -> Verdict:
    """Not graded: no reward, and `explanation` says what to do about it."""
    return Verdict(Outcome.UNGRADED, None, reason, explanation, **rest)


@dataclass(slots=True)
class Trace:
    """How a verdict came about: for run logs, never part of the verdict."""

    seconds: float = 0.0
    """Time spent on this rollout by the scorers, without waiting in queues."""
    cached: bool = False
    pooled: bool = False
    """Whether it went to the worker pool."""
    attempts: int = 1


@dataclass(frozen=True, slots=True)
class Graded:
    """A verdict and how it came about."""

    verdict: Verdict
    trace: Trace
