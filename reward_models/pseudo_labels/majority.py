r"""Majority vote: the answer that most members of a group give is the label, and agreeing with it is right.

Test-time reinforcement learning (TTRL; Zuo et al. 2025, arXiv 2504.16084): for N answers to one prompt,

    label = argmax_a #{i : a_i = a}        reward_i = 1 if a_i = label else 0

Where the paper is silent this file decides, so that no reward is made up: a tie has no label (taking the first of the
tied answers would let the order of rollouts decide), and neither has a group whose largest class is too small. Answers
vote as classes of equal value, not as strings. One that cannot be made into a class is its author's fault and does not
vote; a whole group beyond its budget is nobody's known fault, and ungraded. Not covered: weights of votes, and labels
over several models.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

from ...core.budget import Budget
from ...core.errors import RecipeError
from ...core.extraction import Extraction, Policy, extract
from ...core.reasons import Reason
from ...core.scorer import Prior, Resource, Scorer, Unit
from ...core.verdict import Verdict, correct, incorrect, no_answer, ungraded
from ...verifiers.answer import check_choice, refusal, shown, shown_extraction, with_evidence
from ...verifiers.text import find_text
from ...verifiers.words import words

if TYPE_CHECKING:
    from ...verifiers.math.scorer import MathScorer

Equivalence = Literal["math", "text"]

_MAX_SHOWN = 10
_BUDGET = Budget(cpu_s=0.25, wall_s=5.0)
"""For each member: the dearest of 2,800 answers, hostile ones among them, took 0.02 s."""


class MajorityScorer(Scorer):
    """Reward 1 for the members that give the group's most frequent answer, 0 for the others.

    Members without an answer, with a cut one, or with several at once do not vote; they count in `share`, which is the
    support of the label over all members, as in the paper. The whole group is `ungraded: no_consensus` when two answers
    are equally frequent, fewer than `min_support` members agree, or their share is below `min_share`. `equivalence`:
    `math` merges answers of equal value (needs the extra `math`), `text` those of equal words.
    """

    name = "majority"
    kind = "pseudo-label"
    unit = Unit.GROUP
    resource = Resource.CPU
    reads = ("completion",)

    def __init__(
        self,
        *,
        equivalence: Equivalence = "math",
        min_support: int = 2,
        min_share: float = 0.0,
        policy: Policy = "lenient",
    ) -> None:
        check_choice("equivalence", equivalence, get_args(Equivalence))
        check_choice("policy", policy, get_args(Policy))
        if isinstance(min_support, bool) or not isinstance(min_support, int) or min_support < 2:
            raise ValueError(
                f"min_support must be an integer of at least 2, not {min_support!r}: one vote is no majority"
            )
        if not 0 <= min_share <= 1:
            raise ValueError(f"min_share must lie in [0, 1], not {min_share!r}")
        self.equivalence: Equivalence = equivalence
        self.min_support = min_support
        self.min_share = float(min_share)
        self.policy: Policy = policy
        self._keys_version = ""
        if equivalence == "math":
            math = _math_scorer()
            self._keys_version = math.version
            # Words need neither: what a scorer depends on is part of its configuration here.
            self.libraries = math.libraries
            self.preload = (math.__module__.rpartition(".")[0],)

    def config(self) -> Mapping[str, Any]:
        """The options, and the version of the math verifier where it makes the classes."""
        return {
            "equivalence": self.equivalence,
            "min_support": self.min_support,
            "min_share": self.min_share,
            "policy": self.policy,
            "math": self._keys_version,
        }

    def budget(self, rollout: Any) -> Budget:
        """The share of one member."""
        return _BUDGET

    def score(self, rollouts: Sequence[Any], prior: Sequence[Prior]) -> Sequence[Verdict]:
        """The verdicts of one group."""
        find = extract if self.equivalence == "math" else find_text
        found = [find(rollout.completion, self.policy) for rollout in rollouts]
        keyed = _keyed(
            {text for each in found for text in (*each.candidates, each.answer) if text is not None}, self.equivalence
        )
        ballots = [_ballot(each, keyed) for each in found]
        keys = [key for key, _ in ballots]
        votes = Counter(key for key in keys if key)
        ranked = sorted(votes.values(), reverse=True)
        support = ranked[0] if ranked else 0
        table = _table(keys, found, votes)
        vote: dict[str, Any] = {"support": support, "share": support / max(1, len(rollouts)), "votes": table}
        why = self._no_consensus(ranked, len(rollouts))
        if why is not None:
            return [ungraded(Reason.NO_CONSENSUS, why, evidence=shown_extraction(each) | vote) for each in found]
        vote["label"] = table[0]["answer"]
        verdicts = []
        for each, (key, fault) in zip(found, ballots, strict=True):
            verdict = fault or (correct() if votes[key] == support else incorrect())
            verdicts.append(with_evidence(verdict, shown_extraction(each) | vote))
        return verdicts

    def _no_consensus(self, ranked: Sequence[int], members: int) -> str | None:
        """Why the votes (largest first) give no label, or None when they do."""
        support = ranked[0] if ranked else 0
        if support < self.min_support:
            return f"the most frequent answer of {members} rollouts has {support} votes; {self.min_support} are needed"
        if len(ranked) > 1 and ranked[1] == support:
            return f"{ranked.count(support)} answers have {support} votes each"
        if support / members < self.min_share:
            return f"the most frequent answer has {support} of {members} votes; a share of {self.min_share:g} is needed"
        return None


def _math_scorer() -> type[MathScorer]:
    try:
        from ...verifiers.math.scorer import MathScorer
    except ImportError:
        raise RecipeError(
            "the scorer 'majority' needs the extra 'math' to merge equal answers: pip install 'rewarden[math]', or set"
            " equivalence = 'text'"
        ) from None
    return MathScorer


def _keyed(answers: Iterable[str], equivalence: Equivalence) -> dict[str, str | None]:
    """Answers to keys, equal for equal answers; empty where one says nothing, None where no key can be made."""
    if equivalence == "text":
        return {answer: " ".join(words(answer, "leading")) for answer in answers}
    from ...verifiers.math import canonical

    keyed: dict[str, str | None] = {}
    for answer in answers:
        try:
            keyed[answer] = canonical(answer)
        except Exception:  # noqa: BLE001 - whatever it is, no other member did it
            keyed[answer] = None
    return keyed


def _ballot(found: Extraction, keyed: Mapping[str, str | None]) -> tuple[str, Verdict | None]:
    """The class that a member votes for; or an empty one, and the member's own fault.

    One value in two forms is one vote; two values are none.
    """
    if found.answer is None:
        classes = {keyed[candidate] for candidate in found.candidates}
        key = classes.pop() if len(classes) == 1 else None
        return (key, None) if key else ("", refusal(found))
    key = keyed[found.answer]
    if key is None:
        return "", incorrect(Reason.TOO_COMPLEX, "the answer cannot be brought into a form that compares")
    return (key, None) if key else ("", no_answer(Reason.EMPTY, "the answer is nothing but punctuation"))


def _table(keys: Sequence[str], found: Sequence[Extraction], votes: Mapping[str, int]) -> list[dict[str, Any]]:
    """The most frequent answers with their votes, each class shown by its most frequent and shortest form."""
    forms: dict[str, Counter[str]] = {key: Counter() for key in votes}
    for key, each in zip(keys, found, strict=True):
        if key:
            forms[key][each.answer or each.candidates[0]] += 1
    named = [
        (-votes[key], shown(min(some, key=lambda form: (-some[form], len(form), form)))) for key, some in forms.items()
    ]
    return [{"answer": answer, "votes": -count} for count, answer in sorted(named)[:_MAX_SHOWN]]
