"""Equations up to scaling, and inequalities that are not intervals.

Two equations are the same when one side-difference is a constant multiple of the other, or when both are linear in a
symbol and give it the same value (`y = 1/x` and `xy = 1`). An identity is the same as another only when it restates
the same expression. Not covered: equations with equal solutions that are not multiples (`x^2 = 4` and `|x| = 2`).
"""

from __future__ import annotations

from . import polynomials, scalars
from .exact import UndefinedError
from .modular import fingerprint
from .nodes import ZERO, Node, div, mul, neg, num, replace, sub, symbols
from .points import value as point_value
from .sets import FLIPPED, linear

_POINTS = (3, 4)


def _at_point(node: Node, point: int) -> Node:
    return replace(node, lambda each: num(point_value(each.value, point)) if each.op == "sym" else None)


def _multiple(first: Node, second: Node) -> tuple[bool | None, int]:
    """Whether `first = c * second` for a constant, and the sign of `c`."""
    for point in _POINTS:
        f, g = _at_point(first, point), _at_point(second, point)
        if scalars.equal(f, ZERO).equal is not False or scalars.equal(g, ZERO).equal is not False:
            continue
        verdict = scalars.equal(mul(g, first), mul(f, second)).equal
        sign = 0
        if verdict:
            left, right = scalars.order(f, ZERO), scalars.order(g, ZERO)
            sign = (left or 0) * (right or 0)
        return verdict, sign
    return None, 0


def same_equation(first: tuple[Node, Node], second: tuple[Node, Node]) -> bool | None:
    """Whether two equations, each given by its sides, have the same solutions; None where that is not settled."""
    try:
        identities = [scalars.equal(*sides).equal for sides in (first, second)]
        if any(identities):
            return all(identities) and any(scalars.equal(first[0], side).equal is True for side in second)
        if symbols(first[0]) | symbols(first[1]) != symbols(second[0]) | symbols(second[1]):
            return False
        f, g = sub(*first), sub(*second)
        names = symbols(f)
        if len(names) == 1:
            try:
                name = next(iter(names))
                return polynomials.zeros(f, name) == polynomials.zeros(g, name)
            except polynomials.NotPolynomialError:
                pass
        verdict, _ = _multiple(f, g)
        if verdict:
            return True
        for name in sorted(symbols(f)):
            a, b = linear(f, name), linear(g, name)
            if a and b:
                return scalars.equal(div(neg(a[1]), a[0]), div(neg(b[1]), b[0])).equal
        if fingerprint(f) is not None and fingerprint(g) is not None:
            return False
    except UndefinedError:
        return False
    return None


def same_inequality(first: Node, second: Node) -> bool | None:
    """Whether two single inequalities are one, up to sides swapped and a positive factor."""
    if len(first.value) != 1 or len(second.value) != 1:
        return None
    try:
        (f, f_relation), (g, g_relation) = _directed(first), _directed(second)
        if (f_relation == "!=") != (g_relation == "!="):
            return False
        names = symbols(f) | symbols(g)
        if len(names) == 1:
            try:
                name = next(iter(names))
                return polynomials.signature(f, f_relation, name) == polynomials.signature(g, g_relation, name)
            except polynomials.NotPolynomialError:
                pass
        verdict, sign = _multiple(f, g)
    except (UndefinedError, KeyError):
        return None
    if verdict is None:
        return None
    if not verdict:
        return (
            False
            if fingerprint(f) is not None and fingerprint(g) is not None and len(symbols(f) | symbols(g)) > 1
            else None
        )
    if f_relation == "!=":
        return True
    if sign == 0:
        return None
    return f_relation == (g_relation if sign > 0 else FLIPPED[g_relation])


def _directed(node: Node) -> tuple[Node, str]:
    relation = node.value[0]
    if relation not in FLIPPED:
        raise KeyError(relation)
    return sub(node.args[0], node.args[1]), relation
