"""Equivalence of two shaped answers: structure against structure, scalars through `scalars`.

The result is a `scalars.Decision`: yes, no (with the layer and sometimes a reason), or unsettled.
"""

from __future__ import annotations

from flint import fmpq

from . import nodes, numeric, quantities, relations, scalars, sets
from .exact import UndefinedError, exact
from .forms import FALSE, argument_of, functions_of, is_function_name
from .nodes import Node, contains, replace, symbols
from .options import MathOptions
from .scalars import Decision

YES = Decision(True, "structure")
NO = Decision(False, "structure")
UNSETTLED = Decision(None, "structure", "too_complex")
MAX_PAIRS = 4_000
_FEW = 12
"""Pairs of members that are simply all compared."""


def compare(reference: Node, answer: Node, options: MathOptions) -> Decision:
    """Whether the answer states what the reference does."""
    if FALSE in (answer, reference):
        return NO
    if reference == answer:
        return YES
    if "named" in (reference.op, answer.op):
        return _named(reference, answer, options)
    if "equation" in (reference.op, answer.op):
        return _equations(reference, answer)
    if reference.op == "system" or answer.op == "system":
        return _systems(reference, answer, options)
    if reference.op in quantities.WRAPPERS or answer.op in quantities.WRAPPERS:
        return quantities.same(reference, answer, options, compare)
    if reference.op in nodes.STRUCTURES or answer.op in nodes.STRUCTURES:
        return _structures(reference, answer, options)
    return _scalars(reference, answer, options)


def _all(pairs: list[tuple[Node, Node]], options: MathOptions) -> Decision:
    if len(pairs) > MAX_PAIRS:
        return UNSETTLED
    unsettled = None
    last = YES
    for first, second in pairs:
        last = compare(first, second, options)
        if last.equal is False:
            return last
        if last.equal is None:
            unsettled = last
    return unsettled or Decision(True, last.layer)


# -- names ---------------------------------------------------------------------------------------------------------


def _named(reference: Node, answer: Node, options: MathOptions) -> Decision:
    if reference.op == answer.op == "named":
        return _two_named(reference, answer, options)
    named, other = (reference, answer) if reference.op == "named" else (answer, reference)
    if other.op == "equation":
        return _decided(relations.same_equation((named.args[1], named.args[2]), (other.args[0], other.args[1])))
    if sets.is_setlike(other) and other.op != "tuple":
        try:  # {x : x = 5} hardly ever, but "x = 5" is not "x <= 5"
            return _decided(sets.same(sets.pieces(other), sets.pieces(Node("set", (named.args[0],)))))
        except sets.NotASetError:
            return NO
    if options.assignment == "required":
        return NO
    value = named.args[0]
    return compare(value, other, options) if named is reference else compare(other, value, options)


def _two_named(reference: Node, answer: Node, options: MathOptions) -> Decision:
    a, b = reference.args[0], answer.args[0]
    if reference.value == answer.value:
        return compare(a, b, options)
    if functions_of(reference.args[1]) != functions_of(answer.args[1]):
        return NO  # |x| = 5 says something else than x = 5
    if "residue" in (a.op, b.op):
        return NO if reference.value in "xyz" and answer.value in "xyz" else compare(a, b, options)
    if is_function_name(reference.value) and is_function_name(answer.value):
        old, new = argument_of(answer.value), argument_of(reference.value)
        if old and new and old != new and new not in symbols(b):
            b = replace(b, lambda each: Node("sym", (), new) if each.op == "sym" and each.value == old else None)
        return compare(a, b, options)
    if symbols(a) or symbols(b) or (reference.value in "xyz" and answer.value in "xyz"):
        return _decided(
            relations.same_equation((reference.args[1], reference.args[2]), (answer.args[1], answer.args[2]))
        )
    return compare(a, b, options)


def _decided(verdict: bool | None) -> Decision:
    return UNSETTLED if verdict is None else Decision(verdict, "relation")


def _equations(reference: Node, answer: Node) -> Decision:
    if reference.op == answer.op == "equation":
        return _decided(
            relations.same_equation((reference.args[0], reference.args[1]), (answer.args[0], answer.args[1]))
        )
    return NO


def _systems(reference: Node, answer: Node, options: MathOptions) -> Decision:
    if reference.op == answer.op == "system":
        if set(reference.value) == set(answer.value):
            values = dict(zip(answer.value, answer.args, strict=True))
            return _all(
                [(value, values[name]) for name, value in zip(reference.value, reference.args, strict=True)], options
            )
        if len(reference.value) != len(answer.value) or not (_indexed(reference) and _indexed(answer)):
            return NO
        return _unordered(reference.args, answer.args, options)
    system, other = (reference, answer) if reference.op == "system" else (answer, reference)
    if other.op == "list" and "or" in other.value and not _indexed(system):
        return NO  # values of one name
    if other.op == "list" or (other.op == "tuple" and other.value in ("()", "<>", "[]")):
        if len(other.args) != len(system.args):
            return NO
        stated = system is reference and not set(system.value) <= {"x", "y", "z"}
        pairs = list(zip(system.args if stated else _in_order(system), other.args, strict=True))
        decision = _all(pairs if system is reference else [(b, a) for a, b in pairs], options)
        if decision.equal is not True and _indexed(system) and other.op == "list":
            return _unordered(reference.args, answer.args, options)
        return decision
    if other.op == "set" and _indexed(system):
        return _unordered(reference.args, answer.args, options)
    return NO


def _in_order(system: Node) -> tuple[Node, ...]:
    """The values as a pair without names has them: plain letters by the alphabet, other names as they were given."""
    if not all(len(name.split("_")[0]) == 1 for name in system.value):
        return system.args
    order = sorted(range(len(system.value)), key=lambda i: (system.value[i].split("_")[0], len(system.value[i]), i))
    return tuple(system.args[i] for i in order)


def _indexed(system: Node) -> bool:
    """`x_1 = ..., x_2 = ...`: one letter, numbered, in no order that matters."""
    return len({name.split("_")[0] for name in system.value}) == 1


# -- structures ----------------------------------------------------------------------------------------------------


def _structures(reference: Node, answer: Node, options: MathOptions) -> Decision:
    a, b = reference.op, answer.op
    if "text" in (a, b):
        return NO
    if "matrix" in (a, b):
        return _matrices(reference, answer, options)
    if "ratio" in (a, b):
        return _ratios(reference, answer)
    if "residue" in (a, b):
        return _residues(reference, answer)
    setlike = sets.is_setlike(reference), sets.is_setlike(answer)
    if any(setlike):
        return _sets(reference, answer, setlike, options)
    if a == b == "tuple":
        return _tuples(reference, answer, options)
    if {a, b} <= {"list", "set"}:
        return _collections(reference, answer, options)
    if {a, b} == {"list", "tuple"}:
        pair = reference if a == "tuple" else answer
        alternatives = "or" in (reference if a == "list" else answer).value
        if pair.value in ("()", "<>") and len(reference.args) == len(answer.args) and not alternatives:
            return _all(list(zip(reference.args, answer.args, strict=True)), options)
        return NO
    if a in ("list", "set") and len(reference.args) == 1:
        return compare(reference.args[0], answer, options)
    if b in ("list", "set") and len(answer.args) == 1:
        return compare(reference, answer.args[0], options)
    return NO


def _tuples(reference: Node, answer: Node, options: MathOptions) -> Decision:
    if len(reference.args) != len(answer.args):
        return NO
    brackets = {reference.value, answer.value}
    if len(brackets) > 1 and len(reference.args) == 2 and "<>" not in brackets:
        return NO  # (1, 2) and [1, 2] are different intervals
    return _all(list(zip(reference.args, answer.args, strict=True)), options)


def _collections(reference: Node, answer: Node, options: MathOptions) -> Decision:
    if options.list_order == "given" and reference.op == answer.op == "list":
        if len(reference.args) != len(answer.args):
            return NO
        return _all(list(zip(reference.args, answer.args, strict=True)), options)
    if any(arg.op == "text" for arg in reference.args + answer.args):  # 1, 2, ..., n: order carries the meaning
        if len(reference.args) != len(answer.args):
            return NO
        return _all(list(zip(reference.args, answer.args, strict=True)), options)
    return _unordered(reference.args, answer.args, options)


def _unordered(reference: tuple[Node, ...], answer: tuple[Node, ...], options: MathOptions) -> Decision:
    """Equality as sets: every member has a partner on the other side."""
    try:
        left, right = [exact(node) for node in reference], [exact(node) for node in answer]
    except UndefinedError:
        return NO
    if None not in left and None not in right:
        return Decision(set(left) == set(right), "rational")
    if len(reference) * len(answer) > MAX_PAIRS:
        return YES if set(reference) == set(answer) else UNSETTLED
    hints = [_hint(node) for node in answer] if len(reference) * len(answer) > _FEW else []
    met: set[int] = set()
    unsettled = False
    layer = "structure"
    for first in reference:
        found = False
        for i in _likely(first, hints) if hints else range(len(answer)):
            decision = compare(first, answer[i], options)
            if decision.equal:
                met.add(i)
                found, layer = True, decision.layer
                break
            unsettled = unsettled or decision.equal is None
        if not found:
            return UNSETTLED if unsettled else NO
    for i, second in enumerate(answer):
        if i not in met:
            decisions = [compare(first, second, options) for first in reference]
            if not any(decision.equal for decision in decisions):
                return UNSETTLED if any(decision.equal is None for decision in decisions) else NO
    return Decision(True, layer)


def _hint(node: Node) -> str | None:
    """Rounded digits of a scalar: where to look first for its partner."""
    return None if node.op in nodes.STRUCTURES else numeric.digits(node, 0)


def _likely(first: Node, hints: list[str | None]) -> list[int]:
    wanted = _hint(first)
    return sorted(range(len(hints)), key=lambda i: hints[i] != wanted)


def _sets(reference: Node, answer: Node, setlike: tuple[bool, bool], options: MathOptions) -> Decision:
    if not options.interval_inequality and {reference.op, answer.op} & {"chain"} and reference.op != answer.op:
        return NO
    if reference.op == answer.op == "in" and reference.args[0] != answer.args[0] and reference.args[0].op != "sym":
        return NO
    if reference.op == answer.op == "chain" and len(symbols(reference) | symbols(answer)) > 1:
        decision = _inequalities(reference, answer, options)
        if decision.equal:
            return decision
    first, second = _as_set(reference), _as_set(answer)
    if first is None or second is None:
        if reference.op == answer.op == "chain":
            return _inequalities(reference, answer, options)
        if reference.op == answer.op == "tuple":
            return _tuples(reference, answer, options)
        if reference.op == answer.op == "in":
            return compare(reference.args[1], answer.args[1], options)
        if reference.op == answer.op and reference.op in ("union", "inter", "minus", "domain"):
            return NO if first is not None or second is not None else UNSETTLED
        # a statement about several things against a number, a pair or a list says something else
        other = answer if setlike[0] else reference
        if not all(setlike) and other.op not in ("tuple", "set"):
            return NO
        return UNSETTLED if all(setlike) and first is second is None else NO
    verdict = sets.same(first, second)
    return UNSETTLED if verdict is None else Decision(verdict, "structure")


def _as_set(node: Node) -> sets.Pieces | None:
    if node.op == "list" and not any(arg.op in nodes.STRUCTURES for arg in node.args):
        node = Node("set", node.args)  # "x in {1, 2}" may be answered by "1, 2"
    try:
        return sets.pieces(node)
    except sets.NotASetError:
        return None


def _inequalities(reference: Node, answer: Node, options: MathOptions) -> Decision:
    verdict = relations.same_inequality(reference, answer)
    if verdict is not None:
        return Decision(verdict, "relation")
    for other in (answer, _mirrored(answer)):  # f(2) < f(1) < f(4)
        if reference.value == other.value and len(reference.args) == len(other.args):
            decision = _all(list(zip(reference.args, other.args, strict=True)), options)
            if decision.equal:
                return decision
    return NO if len(reference.value) > 1 or len(answer.value) > 1 else UNSETTLED


def _mirrored(chain: Node) -> Node:
    turned = tuple(sets.FLIPPED.get(relation, relation) for relation in reversed(chain.value))
    return Node("chain", tuple(reversed(chain.args)), turned)


def _matrices(reference: Node, answer: Node, options: MathOptions) -> Decision:
    for first, second in ((reference, answer), (answer, reference)):
        if (
            second.op in ("tuple", "list")
            and first.op == "matrix"
            and 1 in first.value
            and len(first.args) == len(second.args)
        ):
            return _all(list(zip(reference.args, answer.args, strict=True)), options)
    if reference.op != answer.op or reference.value != answer.value:
        return NO
    return _all(list(zip(reference.args, answer.args, strict=True)), options)


def _residues(reference: Node, answer: Node) -> Decision:
    """Classes are equal with their moduli; a number stands for a class that it is written for, or the least of."""
    if reference.op == answer.op:
        (a, m), (b, n) = reference.args, answer.args
        same = scalars.equal(m, n)
        return same if same.equal is not True else scalars.equal(Node("mod", (a, m)), Node("mod", (b, n)))
    (a, m), number = (reference.args, answer) if reference.op == "residue" else (answer.args, reference)
    if number.op in nodes.STRUCTURES or symbols(number):
        return NO
    return scalars.best([scalars.equal(a, number), scalars.equal(Node("mod", (a, m)), number)])


def _ratios(reference: Node, answer: Node) -> Decision:
    """Proportional sides, of which one at least is not zero; a number is its ratio to one where nothing is a symbol."""
    if reference.op != answer.op and (symbols(reference) or symbols(answer)):
        return NO
    left, right = (node.args if node.op == "ratio" else (node, nodes.ONE) for node in (reference, answer))
    if len(left) != len(right) or any(arg.op in nodes.STRUCTURES for arg in left + right):
        return NO
    zeros = [[scalars.equal(arg, nodes.ZERO).equal for arg in side] for side in (left, right)]
    if any(all(zero is True for zero in side) for side in zeros):
        raise UndefinedError
    pivot = next((i for i in range(len(left)) if zeros[0][i] is zeros[1][i] is False), None)
    if pivot is None:
        return UNSETTLED if None in zeros[0] + zeros[1] else NO
    decision = YES
    for i in range(len(left)):
        if i != pivot:
            decision = scalars.equal(nodes.mul(left[i], right[pivot]), nodes.mul(right[i], left[pivot]))
            if decision.equal is not True:
                return decision
    return Decision(True, decision.layer)


# -- scalars -------------------------------------------------------------------------------------------------------


def _scalars(reference: Node, answer: Node, options: MathOptions) -> Decision:
    decision = scalars.equal(reference, answer)
    if decision.equal:
        return decision
    if decision.layer == "rational":
        if decision.reason is None and answer.op == "num" and _close(reference, answer, options):
            return Decision(True, "tolerance")
        return decision
    if options.degrees != "radians" and (contains(reference, "degree") or contains(answer, "degree")):
        bare = [replace(node, _without_degrees) for node in (reference, answer)]
        second = scalars.equal(bare[0], bare[1])
        if second.equal:
            return second
    if options.constant_of_integration:
        renamed = _integration_constant(reference, answer)
        if renamed is not None:
            return scalars.equal(reference, renamed)
    if decision.equal is False and decision.reason is None and _close(reference, answer, options):
        return Decision(True, "tolerance")
    return decision


def _without_degrees(node: Node) -> Node | None:
    """Drop the degree sign where an angle is the answer; inside a function it stays a measure."""
    if node.op == "degree":
        return node.args[0]
    return node if node.op == "call" else None


def _integration_constant(reference: Node, answer: Node) -> Node | None:
    """The answer with its added constant named as in the reference."""
    if reference.op != "add" or answer.op != "add":
        return None
    ours = next((arg for arg in reference.args if arg.op == "sym" and arg.value in ("c", "C")), None)
    theirs = next((arg for arg in answer.args if arg.op == "sym" and arg.value in ("c", "C")), None)
    if ours is None or theirs is None or ours == theirs or theirs.value in symbols(reference):
        return None
    return replace(answer, lambda each: ours if each == theirs else None)


def _close(reference: Node, answer: Node, options: MathOptions) -> bool:
    """Printed floating point, and the tolerance that the options allow."""
    if answer.op != "num" or symbols(reference):
        return False
    number: fmpq = answer.value
    if options.relative_tolerance > 0:
        slack = fmpq(*options.relative_tolerance.as_integer_ratio())
        if _between(reference, number / (1 + slack), number / (1 - slack)):  # |number - reference| <= slack |reference|
            return True
    if options.float_digits is None or number == 0:
        return False
    places = decimal_places(number)
    if places is None or places == 0:
        return False
    own = exact(reference)
    if own is not None and decimal_places(own) is not None:
        return False  # the reference is a decimal itself: it says what it means
    digits = len(str(abs(number.p * fmpq(10) ** places / number.q)))
    if digits < options.float_digits:
        return False
    slack = max(fmpq(1, 10**places), abs(number) / 2**50)
    return _between(reference, number - slack, number + slack)


def _between(reference: Node, first: fmpq, second: fmpq) -> bool:
    low = scalars.order(reference, nodes.num(min(first, second)))
    high = scalars.order(reference, nodes.num(max(first, second)))
    return low is not None and high is not None and low >= 0 and high <= 0


def decimal_places(number: fmpq) -> int | None:
    """Digits after the point of a terminating decimal; None where it does not terminate or is very long."""
    lower, twos, fives = int(number.q), 0, 0
    if lower.bit_length() > 4_000:
        return None
    while lower % 2 == 0:
        lower, twos = lower // 2, twos + 1
    while lower % 5 == 0:
        lower, fives = lower // 5, fives + 1
    return max(twos, fives) if lower == 1 else None
