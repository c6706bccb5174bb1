"""Subsets of the real line: intervals, unions, inequalities, membership, set differences.

A set is a list of disjoint pieces in order; each piece has two ends (scalars or infinities) and whether they belong.
Inequalities become sets when they are linear in one symbol (or its absolute value); others are compared by
`relations`. Not covered: subsets of the integers, conditions on several symbols.
"""

from __future__ import annotations

from typing import NamedTuple

from . import nodes, polynomials, scalars
from .exact import UndefinedError, exact
from .nodes import INF, Node, div, neg, num, replace, sub, symbols

_NEGATIVE_INF = neg(INF)
MAX_PIECES = 60
FLIPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "!=": "!=", "=": "="}


class Piece(NamedTuple):
    """Everything between two ends, each with whether it belongs."""

    low: Node
    low_closed: bool
    high: Node
    high_closed: bool


Pieces = list[Piece]
_LINE = Piece(_NEGATIVE_INF, False, INF, False)


class NotASetError(Exception):
    """Not a set of real numbers, or one whose ends cannot be ordered."""


def pieces(node: Node) -> Pieces:
    """The set that a structure means, normalised; raises `NotASetError`."""
    found = _normal(_pieces(node))
    if len(found) > MAX_PIECES:
        raise NotASetError
    return found


def same(first: Pieces, second: Pieces) -> bool | None:
    """Equality of normalised sets; None where an end cannot be compared."""
    if len(first) != len(second):
        return False
    verdict: bool | None = True
    for a, b in zip(first, second, strict=True):
        if (a.low_closed, a.high_closed) != (b.low_closed, b.high_closed):
            return False
        for x, y in ((a.low, b.low), (a.high, b.high)):
            equal = scalars.equal(x, y).equal
            if equal is False:
                return False
            verdict = verdict if equal else None
    return verdict


def is_setlike(node: Node) -> bool:
    """Whether a structure can only be a set of reals (so not a pair, which may be a point)."""
    if node.op in ("union", "inter", "minus", "domain", "in"):
        return True
    if node.op == "chain":
        return any(relation not in ("=", "~") for relation in node.value)
    if node.op == "tuple" and len(node.args) == 2:
        return node.value in ("(]", "[)") or any(scalars.infinity_sign(arg) for arg in node.args)
    return node.op == "list" and bool(node.args) and all(is_setlike(arg) and arg.op != "tuple" for arg in node.args)


def _pieces(node: Node) -> Pieces:
    op = node.op
    if op == "tuple":
        return [_interval(node)]
    if op == "set":
        return [Piece(arg, True, arg, True) for arg in node.args if _scalar(arg)]
    if op == "union":
        return _pieces(node.args[0]) + _pieces(node.args[1])
    if op == "inter":
        return _intersection(pieces(node.args[0]), pieces(node.args[1]))
    if op == "minus":
        return _intersection(pieces(node.args[0]), _complement(pieces(node.args[1])))
    if op == "domain":
        signed = {
            "R": [_LINE],
            "R+": [Piece(nodes.ZERO, False, INF, False)],
            "R-": [Piece(_NEGATIVE_INF, False, nodes.ZERO, False)],
        }
        if node.value in signed:
            return signed[node.value]
        raise NotASetError
    if op == "in" and node.args[0].op == "sym":
        return _pieces(node.args[1])
    if op == "chain":
        return _inequality(node)
    if op == "list":
        return _several(node)
    raise NotASetError


def _scalar(node: Node) -> bool:
    if node.op in nodes.STRUCTURES:
        raise NotASetError
    return True


def _interval(node: Node) -> Piece:
    if len(node.args) != 2 or node.value == "<>":
        raise NotASetError
    low, high = node.args
    _scalar(low)
    _scalar(high)
    if scalars.infinity_sign(low) == 1 or scalars.infinity_sign(high) == -1:
        raise NotASetError
    closed = (
        node.value[0] == "[" and not scalars.infinity_sign(low),
        node.value[1] == "]" and not scalars.infinity_sign(high),
    )
    return Piece(low, closed[0], high, closed[1])


def _several(node: Node) -> Pieces:
    parts = [pieces(arg) for arg in node.args]
    if "or" in node.value:
        return [piece for part in parts for piece in part]
    met = parts[0]
    for part in parts[1:]:
        met = _intersection(met, part)
    if not met and "and" not in node.value:  # "x < 1, x > 3" lists the branches
        return [piece for part in parts for piece in part]
    return met


def _inequality(node: Node) -> Pieces:
    relations = node.value
    if len(relations) == 1:
        return _simple(node.args[0], relations[0], node.args[1])
    if len(relations) == 2 and "=" not in relations:
        low, middle, high = node.args
        return _intersection(
            _normal(_simple(middle, FLIPPED.get(relations[0], "?"), low)), _normal(_simple(middle, relations[1], high))
        )
    raise NotASetError


def _simple(left: Node, relation: str, right: Node) -> Pieces:
    if relation not in FLIPPED:
        raise NotASetError
    if left.op == "sym" and not symbols(right):
        return _half_line(relation, right)
    if right.op == "sym" and not symbols(left):
        return _half_line(FLIPPED[relation], left)
    if left.op == "call" and left.value == "abs" and not symbols(right):
        return _absolute(relation, left.args[0], right)
    if right.op == "call" and right.value == "abs" and not symbols(left):
        return _absolute(FLIPPED[relation], right.args[0], left)
    names = symbols(left) | symbols(right)
    if len(names) != 1:
        if left.op == "sym" and left.value not in symbols(right):
            return _half_line(relation, right)
        if right.op == "sym" and right.value not in symbols(left):
            return _half_line(FLIPPED[relation], left)
        raise NotASetError
    name = next(iter(names))
    line = linear(sub(left, right), name)
    if line is None:
        return _polynomial(sub(left, right), relation, name)
    slope, offset = line
    sign = scalars.order(slope, nodes.ZERO)
    if not sign:
        raise NotASetError
    return _half_line(relation if sign > 0 else FLIPPED[relation], div(neg(offset), slope))


def _polynomial(node: Node, relation: str, name: str) -> Pieces:
    """Where a polynomial of higher degree satisfies `relation 0`: it changes sign at roots of odd multiplicity."""
    try:
        sign, factors = polynomials.factored(node, name)
    except polynomials.NotPolynomialError:
        raise NotASetError from None
    roots: list[tuple[Node, int]] = []
    for factor in factors:
        found = polynomials.real_roots(factor)
        if found is None:
            raise NotASetError
        for root in found:
            index = len(roots)
            while index and _compare(root, roots[index - 1][0]) < 0:
                index -= 1
            roots.insert(index, (root, factor.multiplicity))
    wanted = {"<": -1, "<=": -1, ">": 1, ">=": 1}.get(relation, 0)
    parts: Pieces = []
    high = INF
    for root, multiplicity in [*reversed(roots), (_NEGATIVE_INF, 0)]:
        if sign == wanted or relation == "!=":
            parts.append(Piece(root, False, high, False))
        if multiplicity and relation in ("<=", ">=", "="):
            parts.append(Piece(root, True, root, True))
        sign *= -1 if multiplicity % 2 else 1
        high = root
    return parts


def at(node: Node, name: str, value: Node) -> Node:
    """The expression with a symbol set to a value."""
    return replace(node, lambda each: value if each.op == "sym" and each.value == name else None)


def linear(node: Node, name: str) -> tuple[Node, Node] | None:
    """`(slope, offset)` where the expression is linear in the symbol, tested at three points."""
    zero, one, two = (at(node, name, num(k)) for k in (0, 1, 2))
    try:
        slope = sub(one, zero)
        if (
            scalars.equal(sub(two, zero), nodes.mul(num(2), slope)).equal
            and scalars.equal(slope, nodes.ZERO).equal is False
        ):
            # three points cannot rule out a polynomial that vanishes at 0, 1 and 2: a fourth, odd one
            odd = num(7919)
            if scalars.equal(sub(at(node, name, odd), zero), nodes.mul(odd, slope)).equal:
                return _folded(slope), _folded(zero)
    except UndefinedError:
        pass
    return None


def _folded(node: Node) -> Node:
    number = exact(node)
    return node if number is None else num(number)


def _half_line(relation: str, end: Node) -> Pieces:
    _scalar(end)
    if scalars.infinity_sign(end):
        end_closed = False
    else:
        end_closed = relation in ("<=", ">=", "=")
    if relation in ("<", "<="):
        return [Piece(_NEGATIVE_INF, False, end, end_closed)]
    if relation in (">", ">="):
        return [Piece(end, end_closed, INF, False)]
    if relation == "=":
        return [Piece(end, True, end, True)]
    return [Piece(_NEGATIVE_INF, False, end, False), Piece(end, False, INF, False)]


def _absolute(relation: str, inner: Node, size: Node) -> Pieces:
    """`|x| < a`, `|2x - 1| >= a` and their like."""
    if inner.op != "sym":
        if relation not in ("<", "<=", ">", ">=") or scalars.order(size, nodes.ZERO) in (None, -1):
            raise NotASetError
        above = _normal(_simple(inner, relation, size))
        below = _normal(_simple(inner, FLIPPED[relation], neg(size)))
        return _intersection(above, below) if relation in ("<", "<=") else above + below
    positive = Piece(nodes.ZERO, True, INF, False)
    right = _intersection(_normal(_half_line(relation, size)), [positive])
    mirrored = [Piece(neg(p.high), p.high_closed, neg(p.low), p.low_closed) for p in right]
    return mirrored + right


def _compare(first: Node, second: Node) -> int:
    order = scalars.order(first, second)
    if order is None:
        raise NotASetError
    return order


def _normal(parts: Pieces) -> Pieces:
    """Sorted, merged, without empty pieces."""
    kept: Pieces = []
    for piece in parts:
        if len(parts) == 1 and (symbols(piece.low) or symbols(piece.high)):
            return parts
        order = _compare(piece.low, piece.high)
        if order < 0 or (order == 0 and piece.low_closed and piece.high_closed):
            kept.append(piece)
        elif order > 0 and len(parts) == 1:
            raise NotASetError  # a pair written downwards is not an interval
    ordered: Pieces = []
    for piece in kept:
        index = len(ordered)
        while index and (_compare(piece.low, ordered[index - 1].low), not piece.low_closed) < (
            0,
            not ordered[index - 1].low_closed,
        ):
            index -= 1
        ordered.insert(index, piece)
    merged: Pieces = []
    for piece in ordered:
        if merged:
            last = merged[-1]
            touch = _compare(last.high, piece.low)
            if touch > 0 or (touch == 0 and (last.high_closed or piece.low_closed)):
                further = _compare(piece.high, last.high)
                if further > 0:
                    merged[-1] = Piece(last.low, last.low_closed, piece.high, piece.high_closed)
                elif further == 0:
                    merged[-1] = Piece(last.low, last.low_closed, last.high, last.high_closed or piece.high_closed)
                continue
        merged.append(piece)
    return merged


def _complement(parts: Pieces) -> Pieces:
    gaps: Pieces = []
    low, low_closed = _NEGATIVE_INF, False
    for piece in parts:
        gaps.append(Piece(low, low_closed, piece.low, not piece.low_closed and not scalars.infinity_sign(piece.low)))
        low, low_closed = piece.high, not piece.high_closed and not scalars.infinity_sign(piece.high)
    gaps.append(Piece(low, low_closed, INF, False))
    return _normal([gap for gap in gaps if _nonempty(gap)])


def _nonempty(piece: Piece) -> bool:
    order = _compare(piece.low, piece.high)
    return order < 0 or (order == 0 and piece.low_closed and piece.high_closed)


def _intersection(first: Pieces, second: Pieces) -> Pieces:
    met: Pieces = []
    for a in first:
        for b in second:
            low = _compare(a.low, b.low)
            high = _compare(a.high, b.high)
            piece = Piece(
                a.low if low >= 0 else b.low,
                a.low_closed and b.low_closed if low == 0 else (a.low_closed if low > 0 else b.low_closed),
                a.high if high <= 0 else b.high,
                a.high_closed and b.high_closed if high == 0 else (a.high_closed if high < 0 else b.high_closed),
            )
            if _nonempty(piece):
                met.append(piece)
    return met
