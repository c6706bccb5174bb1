r"""Numbers with a percent sign, a degree sign, a currency, a unit or the name of what was counted.

A mark that only one side carries may be missing (the options say which); two marks must agree, after conversion. A
single letter outside `\text{}` is a variable, except against a quantity of the dimension that the letter measures.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from flint import fmpq

from . import nodes, scalars, units
from .exact import exact
from .nodes import Node
from .options import MathOptions
from .scalars import Decision, best

NO = Decision(False, "structure")
WRAPPERS = frozenset({"unit", "money", "percent", "degree"})
_ANGLE = "angle:1"

Compare = Callable[[Node, Node, MathOptions], Decision]


def same(reference: Node, answer: Node, options: MathOptions, compare: Compare) -> Decision:
    """Whether two quantities, or a quantity and a number, agree; `compare` compares what is inside."""
    if "percent" in (reference.op, answer.op):
        return _percent(reference, answer, options, compare)
    if "degree" in (reference.op, answer.op):
        return _degrees(reference, answer, options, compare)
    reference, answer = _with_unit(reference, answer), _with_unit(answer, reference)
    left, right = _mark(reference), _mark(answer)
    if left is None or right is None:  # one has a unit
        phrase = left or right or ""
        if options.units == "required" or (phrase.startswith("?") and not (left and units.is_thing(phrase[1:]))):
            return NO
        return compare(reference.args[0] if left else reference, answer.args[0] if right else answer, options)
    a, b = reference.args[0], answer.args[0]
    if left.casefold() == right.casefold():
        return compare(a, b, options)
    first, second = _measure(left), _measure(right)
    if first and second:
        if first.dimension != second.dimension:
            return NO
        ratio = second.factor / first.factor
        return compare(a, nodes.mul(nodes.num(fmpq(ratio.numerator, ratio.denominator)), b), options)
    return compare(a, b, options) if units.same_thing(left, right) else NO


def _mark(node: Node) -> str | None:
    """The unit phrase, `$` and the currency, or None for a bare number."""
    if node.op == "money":
        return f"${node.value}"
    return str(node.value) if node.op == "unit" else None


def _measure(phrase: str) -> units.Unit | None:
    if phrase.startswith("$"):
        return units.Unit(phrase[1:] + ":1", Fraction(1))
    return units.measure(phrase)


def _with_unit(node: Node, other: Node) -> Node:
    r"""`20 g` as a quantity where the other side is one of that dimension (`20\text{ g}`); else as it is."""
    wanted = units.measure(other.value) if other.op == "unit" else None
    if wanted is None or node.op in nodes.STRUCTURES:
        return node
    letters: dict[str, int] = {}
    amount = _amount(node, 1, letters)
    phrase = " ".join(f"{name} ^{power}" for name, power in letters.items())
    found = units.measure(phrase) if amount is not None and letters else None
    return Node("unit", (amount,), phrase) if amount and found and found.dimension == wanted.dimension else node


def _amount(node: Node, sign: int, letters: dict[str, int]) -> Node | None:
    """The number before letters that may be units, which are added to `letters` with their powers; None for others."""
    if node.op == "sym":
        letters[node.value] = letters.get(node.value, 0) + sign
        return nodes.ONE
    if node.op == "pow" and node.args[0].op == "sym":
        power = exact(node.args[1])
        if power is None or power.q != 1 or abs(power) > 9:
            return None
        letters[node.args[0].value] = letters.get(node.args[0].value, 0) + sign * int(power)
        return nodes.ONE
    if not nodes.symbols(node):
        return node
    if node.op not in ("mul", "div"):
        return None
    total = nodes.ONE
    for i, arg in enumerate(node.args):
        inverse = node.op == "div" and i == 1
        part = _amount(arg, -sign if inverse else sign, letters)
        if part is None:
            return None
        total = nodes.div(total, part) if inverse else nodes.mul(total, part)
    return total


def _percent(reference: Node, answer: Node, options: MathOptions, compare: Compare) -> Decision:
    if reference.op == answer.op:
        return compare(reference.args[0], answer.args[0], options)
    percent, other = (reference, answer) if reference.op == "percent" else (answer, reference)
    if other.op in ("unit", "money", "degree"):
        return NO
    ratio = nodes.div(percent.args[0], nodes.num(100))
    share = other is reference and is_share(reference)
    forms = [ratio] if options.percent == "required" or share else [percent.args[0], ratio]
    return best(
        [compare(form, other, options) if percent is reference else compare(other, form, options) for form in forms]
    )


def is_share(node: Node) -> bool:
    """Whether a number without a sign is a share of one, so that its percentage is a hundred times as much."""
    return scalars.order(node, nodes.ONE) in (-1, 0) and scalars.order(node, nodes.MINUS_ONE) in (1, 0)


def _degrees(reference: Node, answer: Node, options: MathOptions, compare: Compare) -> Decision:
    for first, second in ((reference, answer), (answer, reference)):
        if second.op in WRAPPERS - {"degree"}:
            if second.op == "unit" and second.args[0].op == "degree" and second.value.lower() in units.TEMPERATURES:
                return compare(reference.args[0], answer.args[0], options)
            unit = _measure(str(second.value)) if second.op == "unit" else None
            if unit is None or unit.dimension != _ANGLE:
                return NO
            turned = [_radians(node) if node is first else node.args[0] for node in (reference, answer)]
            return compare(turned[0], turned[1], options)
    decisions = []
    if options.degrees in ("either", "degrees"):
        bare = [node.args[0] if node.op == "degree" else node for node in (reference, answer)]
        decisions.append(compare(bare[0], bare[1], options))
    if options.degrees in ("either", "radians") and reference.op != answer.op:
        turned = [_radians(node) for node in (reference, answer)]
        decisions.append(compare(turned[0], turned[1], options))
    if options.degrees == "radians" and reference.op == answer.op:
        decisions.append(compare(reference.args[0], answer.args[0], options))
    return best(decisions)


def _radians(node: Node) -> Node:
    return nodes.mul(node.args[0], Node("div", (nodes.PI, nodes.num(180)))) if node.op == "degree" else node
