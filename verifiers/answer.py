r"""What the small verifiers share: references that may be broken, and answers that may be missing or several.

`AnswerScorer` reads the reference first, so that a broken one is never graded, whatever the completion says.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..core.errors import RewardenError
from ..core.extraction import Extraction
from ..core.reasons import Reason
from ..core.scorer import Prior, Scorer
from ..core.verdict import Outcome, Verdict, correct, incorrect, no_answer, ungraded

SHOWN = 200
"""Characters of an answer that evidence and explanations show."""

_MAX_BITS = 13_000
"""Python refuses to print integers beyond 4,300 digits."""

_REASONS = {
    "empty": (Reason.EMPTY, "there is no answer: nothing was written, or an empty marker"),
    "unclosed_thinking": (Reason.UNFINISHED_THINKING, "the completion ends inside its thinking"),
    "truncated": (Reason.TRUNCATED, "the completion ends inside its answer"),
    "placeholder": (Reason.NO_ANSWER_FOUND, "the answer is residue of a template"),
}
_NOT_FOUND = (Reason.NO_ANSWER_FOUND, "the text holds no answer in any place that the policy accepts")


class BadReferenceError(RewardenError, ValueError):
    """A reference cannot be used; the text says why. It becomes `ungraded: bad_reference`."""


class AnswerScorer(Scorer):
    """A scorer of one answer against one reference: `read_reference`, then `grade`."""

    kind = "text"

    @abstractmethod
    def read_reference(self, reference: Any) -> Any:
        """The reference in the form that `grade` takes. Raises BadReferenceError."""

    @abstractmethod
    def grade(self, completion: Any, reference: Any) -> Verdict:
        """The verdict on a completion (text or chat messages). Raises BadReferenceError where that is to blame."""

    def score(self, rollouts: Sequence[Any], prior: Sequence[Prior]) -> Sequence[Verdict]:
        """One verdict for each rollout."""
        return [self._verdict(rollout) for rollout in rollouts]

    def _verdict(self, rollout: Any) -> Verdict:
        try:
            return self.grade(rollout.completion, self.read_reference(rollout.reference))
        except BadReferenceError as fault:
            return ungraded(Reason.BAD_REFERENCE, str(fault))


def grade_answer(found: Extraction, compare: Callable[[str], Verdict]) -> Verdict:
    """`compare` on the answer that was found, or the verdict on there being none.

    Where different answers were offered at once, each of them must be correct: two forms of one value are, and so are
    two of several accepted references. Otherwise nothing is rewarded, because picking the right one rewards guessing.
    """
    if found.answer is not None:
        return with_evidence(compare(found.answer), shown_extraction(found))
    if found.candidates and all(compare(candidate).outcome is Outcome.CORRECT for candidate in found.candidates):
        return correct(evidence=shown_extraction(found))
    return refusal(found)


def refusal(found: Extraction) -> Verdict:
    """The verdict on an extraction that gave no single answer."""
    if found.problem == "several_answers":
        offered = ", ".join(shown(candidate, 40) for candidate in found.candidates[:5])
        why = f"{len(found.candidates)} different answers are offered at once: {offered}"
        return incorrect(Reason.SEVERAL_ANSWERS, why, evidence=shown_extraction(found))
    reason, why = _REASONS.get(found.problem or "", _NOT_FOUND)
    return no_answer(reason, why, evidence=shown_extraction(found))


def shown_extraction(found: Extraction) -> dict[str, Any]:
    """What was extracted and how, as evidence."""
    evidence: dict[str, Any] = {"method": found.method}
    if found.answer is not None:
        evidence["extracted"] = shown(found.answer)
    if found.candidates:
        evidence["candidates"] = [shown(candidate) for candidate in found.candidates[:10]]
    return evidence


def with_evidence(verdict: Verdict, evidence: Mapping[str, Any]) -> Verdict:
    """The verdict with more evidence beside its own."""
    return replace(verdict, evidence={**evidence, **(verdict.evidence or {})})


def shown(text: str, most: int = SHOWN) -> str:
    """The beginning of a text, fit for JSON: lone surrogates, which no UTF-8 can hold, become question marks."""
    cut = text if len(text) <= most else text[: most - 1] + "…"
    return cut.encode("utf-8", "replace").decode()


def check_choice(name: str, value: Any, known: Sequence[str]) -> None:
    """Raise ValueError unless a configured value is one of those known."""
    if value not in known:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}, not {value!r}")


def accepted(reference: Any) -> list[Any]:
    """The accepted answers of a reference: itself, or the entries of a list, each a text or a finite number.

    Raises BadReferenceError for anything else: one entry that cannot be used makes the whole reference suspect.
    """
    if reference is None:
        raise BadReferenceError("the reference is missing")
    entries = list(reference) if isinstance(reference, (list, tuple)) else [reference]
    if not entries:
        raise BadReferenceError("the reference is an empty list")
    for entry in entries:
        if isinstance(entry, str):
            if not entry.strip():
                raise BadReferenceError(
                    "the reference is empty" if entry is reference else "an accepted answer is empty"
                )
        elif isinstance(entry, bool) or not isinstance(entry, (int, float)):
            kind = "that is an object" if isinstance(entry, Mapping) else f"of type {type(entry).__name__}"
            raise BadReferenceError(f"the reference must be a text, a number or a list of these, and holds one {kind}")
        elif isinstance(entry, int) and entry.bit_length() > _MAX_BITS:
            raise BadReferenceError("the reference is an integer of more than 4,000 digits; write it as a text")
        elif isinstance(entry, float) and not math.isfinite(entry):
            raise BadReferenceError(f"the reference is {entry}, which no answer can equal")
    return entries
