r"""Answers that are one number, with a tolerance and units.

Covered: what `quantity` reads, compared exactly or within an absolute and a relative tolerance, units converted.
Not covered: expressions, sets and intervals (the math verifier), several numbers at once, number words.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, Literal, get_args

from ..core.extraction import Extraction, Policy, extract, extract_reference
from ..core.reasons import Reason
from ..core.verdict import Outcome, Verdict, correct, incorrect
from .answer import AnswerScorer, BadReferenceError, accepted, check_choice, grade_answer, shown, with_evidence
from .quantity import MAX_LENGTH, Quantity, read_quantity
from .units import CURRENCY_SIGNS, Unit, convert, read_unit

_SIGN_BEFORE = re.compile(rf"(?:US|R|A|C)?[{CURRENCY_SIGNS}]")
_UNIT_BEHIND = re.compile(
    r"\}?(?:\$|\\\)|\\\])?[ \t]{0,2}(?:\*\*)?[ \t]?([^\s\d,;:!?()\[\]{}$]\S{0,19}(?:[ \t]\S{1,20}){0,2})"
)
_PROSE = frozenset("a am an are as at do has have in is it min. on or pm so to us".split())
"""Words of a sentence that are also spellings of units (`in` is the inch, `at` the attotonne)."""
_CHANGING = frozenset(
    """not no never nor neither wrong incorrect false except without minus plus times over under above below more less
    than squared cubed factorial gross or and to is are was be e pi i zero one two three four five six seven eight nine
    ten eleven twelve twenty thirty forty fifty sixty seventy eighty ninety""".split()
)
"""Words behind a number that make it another one, or deny it."""
_ORDINAL = (
    r"(?:third|(?:four|fif|six|seven|eigh|nin|ten|eleven|twelf|[a-z]{2,6}teen|[a-z]{3,5}tie|hundred|thousand"
    r"|[a-z]{1,8}illion)th)"
)
_MULTIPLE = r"(?:dozen|hundred|thousand|[a-z]{1,8}illion)s?"
_PART = re.compile(rf"{_ORDINAL}s?|half|halves|quarters?|{_MULTIPLE}|[a-z]{{2,6}}teen")
"""A part or a multiple of what was counted: English builds them by rule, `seventh`, `fortieths`, `quintillionth`."""
_PARTS_BEHIND = re.compile(
    rf"\W{{0,4}}(?:(?P<many>{_ORDINAL}s|halves|quarters|dozens?"
    rf"|and (?:a|an|one|two|three) (?:{_ORDINAL}s?|half|quarters?))"
    rf"|{_ORDINAL}|half|quarter)\b"
)
"""The same behind a number that was found alone; `5 fifth graders` has none, `1 fifth` has."""


class NumberScorer(AnswerScorer):
    """Right when the answer is a number within the tolerance of an accepted reference, in a unit that agrees.

    `reference`: a number, a text that holds one (`"12.5 km"`), or a list of accepted ones. An answer `a` meets the
    reference `r` when `|a - r| <= max(abs_tol, rel_tol * |r|)`, in the unit of `r`: exactly, by default. The tolerance
    is relative to the reference alone, so that no answer widens it. `units`: `optional` lets either side leave its
    unit out, two that are given must agree after conversion; `required` wants a unit exactly where the reference has
    one. `decimal`: `comma` reads `1.234,5`.
    """

    name = "number"

    def __init__(
        self,
        *,
        abs_tol: float = 0.0,
        rel_tol: float = 0.0,
        units: Literal["optional", "required"] = "optional",
        decimal: Literal["point", "comma"] = "point",
        policy: Policy = "lenient",
    ) -> None:
        check_choice("units", units, ("optional", "required"))
        check_choice("decimal", decimal, ("point", "comma"))
        check_choice("policy", policy, get_args(Policy))
        if not 0 <= rel_tol < 1:
            raise ValueError(f"rel_tol must lie in [0, 1), not {rel_tol!r}: from 1 on, 0 would meet every reference")
        if not (math.isfinite(abs_tol) and abs_tol >= 0):
            raise ValueError(f"abs_tol must be finite and at least 0, not {abs_tol!r}")
        self.abs_tol = float(abs_tol)
        self.rel_tol = float(rel_tol)
        self.units = units
        self.decimal = decimal
        self.policy: Policy = policy
        # As the decimals that were written: the float nearest to 0.1 is a little more.
        self._abs_tol = Fraction(repr(self.abs_tol))
        self._rel_tol = Fraction(repr(self.rel_tol))

    def config(self) -> Mapping[str, Any]:
        """The options."""
        return {
            "abs_tol": self.abs_tol,
            "rel_tol": self.rel_tol,
            "units": self.units,
            "decimal": self.decimal,
            "policy": self.policy,
        }

    def read_reference(self, reference: Any) -> list[Quantity]:
        """The accepted quantities."""
        golds: list[Quantity] = []
        for entry in accepted(reference):
            if isinstance(entry, str):
                found = extract_reference(entry)
                texts, comma = found.candidates or (found.answer or "",), self.decimal == "comma"
            else:
                texts, comma = (repr(entry),), False
            for text in texts:
                gold = read_quantity(text, decimal_comma=comma)
                if gold is None:
                    raise BadReferenceError(
                        f"the reference {shown(str(entry), 60)!r} is no number with an optional unit (decimal"
                        f" {self.decimal}); grade expressions with the scorer 'math'"
                    )
                if gold.value is None and (self._abs_tol or self._rel_tol):
                    raise BadReferenceError(f"the reference {shown(str(entry), 60)!r} is too large for a tolerance")
                golds.append(gold)
        return golds

    def grade(self, completion: Any, reference: list[Quantity]) -> Verdict:
        """Compare the number in the answer."""
        found = extract(completion, self.policy)
        around = _around(found)
        return grade_answer(found, lambda answer: self._compare(answer, reference, *around))

    def _compare(self, answer: str, golds: list[Quantity], before: str, behind: str) -> Verdict:
        if len(answer) > MAX_LENGTH:
            return incorrect(Reason.TOO_COMPLEX, f"the answer has {len(answer)} characters; {MAX_LENGTH} are read")
        said = read_quantity(answer, decimal_comma=self.decimal == "comma")
        if said is None:
            why = f"{shown(answer, 60)!r} is no number with an optional unit (decimal {self.decimal})"
            return incorrect(Reason.UNREADABLE_ANSWER, why)
        if said.unit is None:
            parts = _PARTS_BEHIND.match(behind.lower())
            if parts is not None and (parts["many"] or said.value == 1):
                why = f"{shown(answer, 60)!r} is another number with {shown(parts[0].strip(), 40)!r} behind it"
                return incorrect(Reason.UNREADABLE_ANSWER, why)
            text, unit = _surrounding_unit(before, behind)
            said = replace(said, unit=unit, text=text)
        verdicts = [self._against(said, gold) for gold in golds]
        best = next((verdict for verdict in verdicts if verdict.outcome is Outcome.CORRECT), verdicts[0])
        return with_evidence(best, {"unit": said.text}) if said.text else best

    def _against(self, said: Quantity, gold: Quantity) -> Verdict:
        if said.unit is None or gold.unit is None:
            if said.unit is not gold.unit and self.units == "required":
                return incorrect(explanation=f"the unit is {said.text or 'missing'}, not {gold.text or 'left out'}")
            if said.unit is not None and not _may_be_left_out(said):
                return incorrect(Reason.UNREADABLE_ANSWER, f"{shown(said.text, 40)!r} behind a number is no known unit")
            return self._with_ratios(said, gold)
        if said.unit == gold.unit:
            return self._values(said, gold)
        if said.value is None or gold.value is None:
            return incorrect(Reason.TOO_LARGE, "a number of this size is not converted to another unit")
        converted = convert(said.value, said.unit, gold.unit)
        if converted is None:
            return incorrect(explanation=f"the unit is {shown(said.text, 40)}, not {shown(gold.text, 40)}")
        return self._values(Quantity(converted, said.exact, None, gold.unit, said.text), gold)

    def _with_ratios(self, said: Quantity, gold: Quantity) -> Verdict:
        """One side has no unit: it is that of the other side, or where that is percent, the plain ratio."""
        verdict = self._values(said, gold)
        ratios = [quantity.unit.ratio if quantity.unit is not None else None for quantity in (said, gold)]
        if verdict.outcome is Outcome.CORRECT or ratios == [None, None] or said.value is None or gold.value is None:
            return verdict
        said_ratio, gold_ratio = (ratio or Fraction(1) for ratio in ratios)
        # In the scale of the reference, which the absolute tolerance is meant in.
        value = said.value * said_ratio / gold_ratio
        return self._values(Quantity(value, said.exact, None, gold.unit, said.text), gold)

    def _values(self, said: Quantity, gold: Quantity) -> Verdict:
        if said.digits is not None and said.digits == gold.digits:
            return correct()
        if gold.value is None:
            return incorrect()
        value = said.value
        if value is None:
            if said.magnitude > 0:
                return incorrect(Reason.TOO_LARGE, "the answer is larger than any number near the reference")
            if not self._abs_tol:
                return incorrect()
            value = Fraction(0)  # closer to it than any tolerance can tell
        slack = max(self._abs_tol, self._rel_tol * abs(gold.value))
        if slack == 0:
            return correct() if said.exact and gold.exact and value == gold.value else incorrect()
        return correct() if abs(value - gold.value) <= slack else incorrect()


def _may_be_left_out(said: Quantity) -> bool:
    """Whether the unit behind an answer may go with a reference that has none: not where it changes the number."""
    assert said.unit is not None
    words = said.text.casefold().replace("-", " ").split()
    return said.unit.kind != "thing" or not any(word in _CHANGING or _PART.fullmatch(word) for word in words)


def _around(found: Extraction) -> tuple[str, str]:
    """What stands at the beginning of an answer, or before it, and what behind it."""
    if found.span is None:
        return "", ""
    text, (start, end) = found.shown.text, found.span
    # The dollar sign of a math span is no currency.
    before = text[max(0, start - 4) : min(start + 4, end)] if found.method != "math_span" else ""
    return before, text[end : end + 80]


def _surrounding_unit(before: str, behind: str) -> tuple[str, Unit | None]:
    r"""The unit of a number that was found without one: "the speed is 20 m/s", "it costs $5", `\boxed{20}` km."""
    sign = _SIGN_BEFORE.search(before)
    if sign is not None:
        return sign[0], read_unit(sign[0])
    tail = _UNIT_BEHIND.match(behind)
    phrase = tail[1].split() if tail is not None else []
    for count in range(len(phrase), 0, -1):
        text = " ".join(phrase[:count]).strip(".*_\"'")
        unit = read_unit(text) if _PROSE.isdisjoint(text.lower().split()) else None
        if unit is not None and unit.kind != "thing":
            return text, unit
    return "", None
