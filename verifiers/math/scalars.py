"""Equality of two scalar expressions: the cheap proofs first, each bounded in advance.

Order: same tree, exact rationals, residues of rational expressions, bounds of huge constants, balls.
"""

from __future__ import annotations

from typing import NamedTuple

from flint import fmpq

from . import bounds, numeric
from .exact import UndefinedError, exact
from .modular import fingerprint
from .nodes import Node, symbols


class Decision(NamedTuple):
    """`equal` is None where the layers could not settle it; `layer` names the one that spoke last."""

    equal: bool | None
    layer: str
    reason: str | None = None


def best(decisions: list[Decision]) -> Decision:
    """The first yes, else an unsettled one, else the last no."""
    for decision in decisions:
        if decision.equal:
            return decision
    return next((each for each in decisions if each.equal is None), decisions[-1])


def equal(first: Node, second: Node) -> Decision:
    """Compare two scalars. `reason` is `undefined`, `too_large` or `too_complex` where equality fails by it."""
    try:
        a = exact(first)
        b = exact(second)
        if a is not None and b is not None:
            return Decision(bool(a == b), "rational")
        if first == second:
            return Decision(True, "structure")
        if _infinite(first) or _infinite(second):
            return Decision(_same_infinity(first, second), "structure")
        return _beyond(first, second)
    except UndefinedError:
        return Decision(False, "rational", "undefined")


def _beyond(first: Node, second: Node) -> Decision:
    mark_a, mark_b = fingerprint(first), fingerprint(second)
    if mark_a is not None and mark_b is not None:
        if mark_a == mark_b:
            return Decision(True, "residue")
        too_large = not symbols(first) and not symbols(second) and bounds.apart(first, second)
        return Decision(
            False, "bounds" if too_large else "residue", "too_large" if too_large and _huge(second) else None
        )
    constant = not symbols(first) and not symbols(second)
    verdict = numeric.equal(first, second)
    if verdict is not None:
        return Decision(verdict, "numeric")
    if constant and bounds.apart(first, second):
        return Decision(False, "bounds", "too_large")
    return Decision(None, "numeric", "too_complex")


def _huge(node: Node) -> bool:
    try:
        return exact(node) is None
    except UndefinedError:
        return False


def _infinite(node: Node) -> bool:
    if node.op not in ("const", "add", "mul", "div"):
        return False
    return any(part == ("const", (), "inf") for part in (node, *node.args))


def _same_infinity(first: Node, second: Node) -> bool:
    """Only a bare, perhaps signed infinity equals itself."""
    return infinity_sign(first) is not None and infinity_sign(first) == infinity_sign(second)


def infinity_sign(node: Node) -> int | None:
    """+1 or -1 for a signed infinity, None for anything else."""
    if node == ("const", (), "inf"):
        return 1
    if node.op == "mul" and len(node.args) == 2 and node.args[1] == ("const", (), "inf") and node.args[0].op == "num":
        number: fmpq = node.args[0].value
        return None if number == 0 else (1 if number > 0 else -1)
    return None


def order(first: Node, second: Node) -> int | None:
    """-1, 0 or 1 for two real constants or infinities; None where the order is unknown."""
    left, right = infinity_sign(first), infinity_sign(second)
    if left or right:
        a, b = 2 * (left or 0), 2 * (right or 0)
        return (a > b) - (a < b)
    try:
        x, y = exact(first), exact(second)
    except UndefinedError:
        return None
    if x is not None and y is not None:
        return int(x > y) - int(x < y)
    if symbols(first) or symbols(second):
        return 0 if equal(first, second).equal else None
    return numeric.compare_reals(first, second)
