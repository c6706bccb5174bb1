r"""Where expressions with symbols are compared: fixed values for each symbol, the same in every process.

Two positive points, then five of mixed signs, all between 0.4 and 2.9 in size: enough for analytic expressions,
which agree everywhere when they agree on an open set. Functions with pieces (`|x-5|`, `\max(x,5)`, roots) may agree on
one piece alone, so they are compared on both sides of zero, between and beyond all constants that they mention too.
Not covered: pieces whose ends lie closer together than the constants that are written.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
from collections.abc import Callable, Iterator
from typing import NamedTuple

from flint import fmpq

from . import fuel
from .exact import UndefinedError, exact
from .nodes import Node, walk

POINTS = 7
POSITIVE = 2
INTEGERS = 100
"""Points from here on are positive integers."""

INTEGER_POINTS = 6
_MAX_KNOTS = 12
_MAX_BITS = 400
_PIECES = frozenset("abs max min floor ceil sign re im arg asin acos atan acot asec acsc acosh atanh asinh".split())


class Turn(NamedTuple):
    """A point of `around`: each symbol takes another of the values, and every value in its turn."""

    values: tuple[fmpq, ...]
    turn: int


Point = int | Turn


def value(name: str, point: Point) -> fmpq:
    """The value of a symbol at a point."""
    if isinstance(point, Turn):
        return point.values[(point.turn + _digest(name, 0)) % len(point.values)]
    return _fixed(name, point)


@functools.lru_cache(maxsize=8192)
def _fixed(name: str, point: int) -> fmpq:
    number = _digest(name, point)
    if point >= INTEGERS:
        return fmpq(3 + number % 40 * 2 + point % 2)
    size = fmpq(number % (5 << 40), 2 << 40) + fmpq(2, 5)
    return -size if point >= POSITIVE and _signs(name) >> (point - POSITIVE) & 1 else size


@functools.lru_cache(maxsize=8192)
def _digest(name: str, point: int) -> int:
    text = f"{name}\x00{point}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")


@functools.lru_cache(maxsize=4096)
def _signs(name: str) -> int:
    """One bit for each mixed point, neither all clear nor all set."""
    mixed = (1 << (POINTS - POSITIVE)) - 1
    return 1 + _digest(name, -1) % (mixed - 1)


def around(first: Node, second: Node, evaluate: Callable[[Node], fmpq | None]) -> Iterator[Turn]:
    """Points between and beyond the constants of two expressions where either has pieces; else none.

    `evaluate` gives an approximate value of a constant, None where it has none.
    """
    knots: set[fmpq] = set()
    pieces = False
    for node in (first, second):
        _, has_pieces = _constants(node, knots, evaluate)
        pieces = pieces or has_pieces
    if pieces:
        values = _between(knots)
        for turn in range(len(values)):
            yield Turn(values, turn)


def _constants(node: Node, knots: set[fmpq], evaluate: Callable[[Node], fmpq | None]) -> tuple[bool, bool]:
    """Collect the sizes of the constants in a tree; whether it holds a symbol, and a function with pieces."""
    fuel.spend(1)
    if node.op == "sym":
        return True, False
    found = [_constants(arg, knots, evaluate) for arg in node.args]
    moving, pieces = any(each[0] for each in found), any(each[1] for each in found)
    if not moving:
        if not found or node.op != "num":
            number = node.value if node.op == "num" else evaluate(node)
            if number is not None and number != 0 and number.height_bits() < _MAX_BITS:
                knots.add(abs(number))
        return False, False
    return True, pieces or _has_pieces(node, found[0][0])


def _has_pieces(node: Node, moving: bool) -> bool:
    """Whether a node whose first argument has symbols (`moving`) is given by several formulas."""
    if node.op == "root":
        return moving
    if node.op == "pow":
        try:
            exponent = exact(node.args[1])
        except UndefinedError:
            return False
        return moving and (exponent is None or exponent.q != 1)
    return node.op == "call" and node.value in _PIECES


def _between(knots: set[fmpq]) -> tuple[fmpq, ...]:
    """One value within each gap of the knots and their negatives, and some beyond, none of them round."""
    kept = sorted(knots | {fmpq(1)})
    product = fmpq(1)
    for knot in kept:
        product *= max(knot, 1 / knot) if product.height_bits() < _MAX_BITS else 1
    while len(kept) > _MAX_KNOTS:  # the least and the greatest stay
        del kept[1:-1:2]
    ends = [fmpq(0), *kept, kept[-1] * 2, kept[-1] * 40, product * 60]
    gaps = [(low, high) for low, high in itertools.pairwise(ends) if low < high]
    inner = [low + (high - low) * fmpq(311 + 37 * (i % 5), 761) for i, (low, high) in enumerate(gaps)]
    near = fmpq(311, 761) / product
    return (*inner, *(-size for size in reversed(inner)), near)


def means_integers(first: Node, second: Node, names: frozenset[str]) -> bool:
    """`(-1)^n`: a negative base raised to a symbol named as integers are."""
    return names <= {"n", "k", "m"} and any(
        each.op == "pow"
        and each.args[0].op == "num"
        and each.args[0].value < 0
        and any(part.op == "sym" for part in walk(each.args[1]))
        for node in (first, second)
        for each in walk(node)
    )
