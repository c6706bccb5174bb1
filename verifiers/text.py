r"""Answers that are text: `exact` compares characters, `text` compares words.

Both look where an explicit marker points (a box, an answer tag, a statement, `####`). Where there is none, the policy
`lenient` takes the whole visible text: the last number of a sentence is no answer to a question about text.
Not covered: paraphrases, synonyms and spelling mistakes, which need a model; and "contains the reference", which a
list of every possible answer would satisfy.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

from ..core.extraction import Extraction, Policy, extract, unwrap_text, visible
from ..core.reasons import Reason
from ..core.verdict import Outcome, Verdict, correct, incorrect, no_answer
from .answer import AnswerScorer, BadReferenceError, accepted, check_choice, grade_answer
from .unicode import normal_form
from .words import Articles, words

_RESORTS = frozenset(["math_span", "last_number", "whole_text", "none"])
_SPACE = re.compile(r"\s+")


def find_text(completion: Any, policy: Policy) -> Extraction:
    r"""Where a text answer is: at the last marker, or else (`lenient`) the whole visible text.

    An answer that is nothing but `\text{...}` counts without that wrapper.
    """
    found = extract(completion, policy)
    if policy == "lenient" and found.method in _RESORTS and found.problem in (None, "not_found", "several_answers"):
        return Extraction(found.shown.text.strip(), "whole_text")
    if found.answer is not None:
        inner = unwrap_text(found.answer)
        if inner != found.answer:
            return replace(found, answer=inner or None, problem=None if inner else "empty")
    return found


class ExactScorer(AnswerScorer):
    """Right when the answer equals an accepted reference character by character (as Unicode NFC, ends stripped).

    `reference`: a text, a number (as JSON prints it) or a list of accepted ones. `extract`: False compares the whole
    visible text instead of the answer in it. `case` and `whitespace` say what may differ.
    """

    name = "exact"

    def __init__(
        self,
        *,
        extract: bool = True,
        policy: Policy = "lenient",
        case: Literal["keep", "fold"] = "keep",
        whitespace: Literal["strip", "collapse"] = "strip",
    ) -> None:
        check_choice("policy", policy, get_args(Policy))
        check_choice("case", case, ("keep", "fold"))
        check_choice("whitespace", whitespace, ("strip", "collapse"))
        self.extract = extract
        self.policy: Policy = policy
        self.case = case
        self.whitespace = whitespace

    def config(self) -> Mapping[str, Any]:
        """The options."""
        return {"extract": self.extract, "policy": self.policy, "case": self.case, "whitespace": self.whitespace}

    def read_reference(self, reference: Any) -> frozenset[str]:
        """The accepted texts in the form that is compared."""
        return frozenset(self._form(str(entry)) for entry in accepted(reference))

    def grade(self, completion: Any, reference: frozenset[str]) -> Verdict:
        """Compare the answer, or the whole visible text."""
        if self.extract:
            found = find_text(completion, self.policy)
        else:
            seen = visible(completion)
            found = Extraction(None if seen.problem else seen.text.strip(), "whole_text", problem=seen.problem)
        return grade_answer(found, lambda answer: correct() if self._form(answer) in reference else incorrect())

    def _form(self, text: str) -> str:
        text = normal_form(text, "NFC").strip()
        if self.whitespace == "collapse":
            text = _SPACE.sub(" ", text)
        return normal_form(text.casefold(), "NFC") if self.case == "fold" else text


class TextScorer(AnswerScorer):
    """Right when the answer has the words of an accepted reference (see `words`), or as right as their F1 says.

    `reference`: a text, a number or a list of accepted ones; the best one counts. `metric`: `exact` asks for the same
    words in the same order; `f1` is token F1 (Rajpurkar et al. 2016), which ignores order and is lowered by every word
    too many, so that a list of guesses does not pay. `threshold` makes an F1 at or above it right and others wrong.
    """

    name = "text"

    def __init__(
        self,
        *,
        metric: Literal["exact", "f1"] = "exact",
        threshold: float | None = None,
        articles: Articles = "leading",
        policy: Policy = "lenient",
    ) -> None:
        check_choice("metric", metric, ("exact", "f1"))
        check_choice("articles", articles, get_args(Articles))
        check_choice("policy", policy, get_args(Policy))
        if threshold is not None and (metric != "f1" or not 0 < threshold <= 1):
            raise ValueError(f"threshold goes with metric 'f1' and lies in (0, 1], not {threshold!r} with {metric!r}")
        self.metric = metric
        self.threshold = threshold
        self.articles: Articles = articles
        self.policy: Policy = policy

    def config(self) -> Mapping[str, Any]:
        """The options."""
        return {
            "metric": self.metric,
            "threshold": self.threshold,
            "articles": self.articles,
            "policy": self.policy,
        }

    def read_reference(self, reference: Any) -> list[list[str]]:
        """The words of each accepted text."""
        golds = []
        for entry in accepted(reference):
            gold = words(str(entry), self.articles)
            if not gold:
                raise BadReferenceError(
                    "an accepted answer is nothing but punctuation; grade such answers with `exact`"
                )
            golds.append(gold)
        return golds

    def grade(self, completion: Any, reference: list[list[str]]) -> Verdict:
        """Compare the words of the answer with those of each accepted text."""
        return grade_answer(find_text(completion, self.policy), lambda answer: self._compare(answer, reference))

    def _compare(self, answer: str, golds: list[list[str]]) -> Verdict:
        said = words(answer, self.articles)
        if not said:
            return no_answer(Reason.EMPTY, "the answer is nothing but punctuation")
        if self.metric == "exact":
            return correct() if said in golds else incorrect()
        score = max(token_f1(said, gold) for gold in golds)
        evidence = {"f1": score}
        if self.threshold is not None:
            right = score >= self.threshold
            return correct(evidence=evidence) if right else incorrect(evidence=evidence)
        outcome = Outcome.CORRECT if score == 1 else Outcome.PARTIAL if score > 0 else Outcome.INCORRECT
        return Verdict(outcome, score, evidence=evidence)


def token_f1(said: Sequence[str], gold: Sequence[str]) -> float:
    """Harmonic mean of precision and recall over words, counted with multiplicity; in [0, 1], and 0 for no words."""
    common = sum((Counter(said) & Counter(gold)).values())
    return 2 * common / (len(said) + len(gold)) if common else 0.0
