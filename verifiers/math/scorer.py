"""The math verifier as a scorer: find the answer, compare it with the reference, say how it was decided.

What the bounded layers settle never leaves the caller (`quick`); the rest goes to a worker that may be killed. Who is
to blame for a kill is known by the stage that the worker was in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from functools import lru_cache, partial
from typing import Any, get_args

from ...core.budget import Budget
from ...core.extraction import Extraction, Policy, choice_letter, extract, extract_reference, reference_letter
from ...core.pool import Fault, Report, stage
from ...core.reasons import Reason
from ...core.scorer import Prior, Resource, Scorer
from ...core.verdict import Verdict, correct, incorrect, no_answer, ungraded
from ..answer import BadReferenceError, accepted, refusal, shown_extraction
from .compare import IN_PROCESS, Match, any_of, compare, quick
from .options import MathOptions

_BUDGET = Budget(cpu_s=1.0, wall_s=20.0)
"""Real answers that need algebra take 10 to 100 ms; what takes a second would take a minute. Algebra never sleeps, so
the clock only has to catch a machine that gives no CPU."""

_WRONG = {
    "too_large": Reason.TOO_LARGE,
    "too_complex": Reason.TOO_COMPLEX,
    "unreadable": Reason.UNREADABLE_ANSWER,
    "undefined": Reason.UNREADABLE_ANSWER,
}

CompareOne = Callable[[str, str, MathOptions], Match | None]


_MARKED = frozenset(["boxed", "answer_tag", "final_answer", "hash_marker"])
"""A marked answer is compared as it stands; elsewhere a reference that is an option's letter may be met in prose."""


class _UndecidedError(Exception):
    """The layers that run in the caller cannot tell."""


class MathScorer(Scorer):
    """Right when the answer is mathematically the reference, or one of several accepted ones.

    `reference`: LaTeX or plain text of the answer, a number, a whole solution that ends in its answer, or a list of
    accepted ones. `policy` says where an answer may stand (`strict`, `last_boxed`, `lenient`); the other options are
    those of `MathOptions`, with their reasons in docs/reference/math.md.
    """

    name = "math"
    version = "1"
    resource = Resource.CPU
    reads = ("completion", "reference")
    libraries = ("python-flint", "sympy", "math-verify", "latex2sympy2_extended")
    preload = (f"{__package__}.warmed",)

    def __init__(self, policy: Policy = "lenient", **options: Any) -> None:
        if policy not in get_args(Policy):
            raise ValueError(f"policy must be one of {', '.join(get_args(Policy))}, not {policy!r}")
        unknown = sorted(set(options) - {field.name for field in fields(MathOptions)})
        if unknown:
            raise ValueError(f"unknown options {unknown}; docs/reference/math.md lists them")
        self.policy: Policy = policy
        self.options = MathOptions(**options)

    def config(self) -> Mapping[str, Any]:
        return {"policy": self.policy, **asdict(self.options)}

    def budget(self, rollout: Any) -> Budget:
        return _BUDGET

    def quick(self, rollout: Any) -> Verdict | None:
        """The verdict of the layers that are bounded in microseconds to a few milliseconds, or None."""
        try:
            return self._grade(rollout, quick)
        except _UndecidedError:
            return None

    def score(self, rollouts: Sequence[Any], prior: Sequence[Prior]) -> Sequence[Verdict]:
        """One verdict for each, by all layers. May take long: it belongs in a worker that can be killed."""
        return [self._grade(rollout, partial(compare, stage=stage)) for rollout in rollouts]

    def on_fault(self, rollout: Any, report: Report) -> Verdict:
        """A completion that costs too much is wrong; a reference that does so on its own is unusable."""
        if report.fault in (Fault.CPU, Fault.MEMORY):
            if report.stage == "reference":
                return ungraded(Reason.BAD_REFERENCE, f"the reference alone is too dear: {report.detail}")
            found = extract(rollout.completion, self.policy)
            return incorrect(
                Reason.TOO_COMPLEX, report.detail, evidence={**shown_extraction(found), "layer": "symbolic"}
            )
        return super().on_fault(rollout, report)

    def _grade(self, rollout: Any, compare_one: CompareOne) -> Verdict:
        reference = rollout.reference
        try:
            references = _read(reference) if type(reference) is str else _texts(reference)
        except BadReferenceError as fault:
            return ungraded(Reason.BAD_REFERENCE, str(fault))
        found = extract(rollout.completion, self.policy)
        if self.policy == "lenient" and found.method not in _MARKED:
            letter = reference_letter(references[0])
            if letter is not None:
                found, references = choice_letter(rollout.completion), (letter,)
        if found.answer is not None:
            return _verdict(self._match(references, found.answer, compare_one), found)
        if found.candidates:
            return self._alternatives(references, found, compare_one)
        # A broken reference is reported whatever the completion says: else it would hide behind poor completions.
        match = self._match(references, "0", compare_one)
        return _verdict(match, found) if match.equal is None else refusal(found)

    def _match(self, references: Sequence[str], answer: str, compare_one: CompareOne) -> Match:
        def decided(reference: str) -> Match:
            match = compare_one(reference, answer, self.options)
            if match is None:
                raise _UndecidedError
            return match

        return decided(references[0]) if len(references) == 1 else any_of(references, decided)

    def _alternatives(self, references: Sequence[str], found: Extraction, compare_one: CompareOne) -> Verdict:
        """Several answers at once: right only as the several values of the reference, or as several forms of one."""
        joined = " or ".join(found.candidates)
        if compare_one is quick and len(joined) > IN_PROCESS:
            raise _UndecidedError
        matches = (self._match(references, each, compare_one) for each in found.candidates)
        if all(match.equal for match in matches):
            return _verdict(self._match(references, found.candidates[0], compare_one), found)
        whole = self._match(references, joined, compare_one)
        return _verdict(whole, found) if whole.equal is not False else refusal(found)


def _verdict(match: Match, found: Extraction) -> Verdict:
    evidence = shown_extraction(found)
    evidence["layer"] = match.layer
    if match.equal:
        return correct(explanation=match.detail, evidence=evidence)
    if match.equal is None:
        return ungraded(Reason.BAD_REFERENCE, match.detail, evidence=evidence)
    if match.reason == "no_answer":
        return no_answer(Reason.EMPTY, match.detail, evidence=evidence)
    return incorrect(_WRONG.get(match.reason or ""), match.detail, evidence=evidence)


@lru_cache(maxsize=16_384)
def _read(reference: str) -> tuple[str, ...]:
    """The answer in a reference text, which may be a whole solution."""
    if not reference.strip():
        raise BadReferenceError("the reference is empty")
    found = extract_reference(reference)
    if found.answer is None:
        raise BadReferenceError("the reference is a text without an answer in it; give the answer alone")
    return (found.answer,)


def _texts(reference: Any) -> tuple[str, ...]:
    """The texts of all accepted answers."""
    return tuple(text for entry in accepted(reference) for text in _read(entry if type(entry) is str else repr(entry)))
