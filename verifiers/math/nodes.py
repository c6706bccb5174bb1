r"""The expression tree that the parser builds and every comparing layer reads.

One node type with a string operator, so that a tree is hashable, comparable and cheap to build.

Operators, with their arguments and value:

* scalars: `num` (value: fmpq), `sym` (value: name), `const` (value: `pi`, `e`, `i`, `inf`), `add`,
  `mul`, `div`, `pow`, `root` (radicand, degree), `call` (value: function name), `fact`, `fact2`,
  `binom`, `mod`, `degree`, `pm` (value: +1 for `\pm`, -1 for `\mp`), `based` (value: digits and base),
  `big` (value: sum, prod, int, lim: kept whole);
* structures: `tuple` (value: the two brackets), `set`, `list` (value: separators), `matrix` (value: rows and
  columns), `union`, `inter`, `minus`, `domain` (value: R, Z, ...), `ratio`, `residue` (a class: number, modulus);
* statements: `chain` (value: the relations between its arguments; a member that shows working is wrapped in
  `worked`), `in`;
* wrappers: `percent`, `unit` (value: phrase), `money` (value: currency), `text` (value: words).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from flint import fmpq, fmpz

from . import fuel


class Node(NamedTuple):
    """One operator with its arguments; `value` holds what is not a node (a number, a name, brackets)."""

    op: str
    args: tuple[Node, ...] = ()
    value: Any = None


def num(value: int | fmpz | fmpq) -> Node:
    """A number literal."""
    return Node("num", (), fmpq(value))


ONE = num(1)
MINUS_ONE = num(-1)
ZERO = num(0)
PI = Node("const", (), "pi")
E = Node("const", (), "e")
I = Node("const", (), "i")  # noqa: E741 - the imaginary unit
INF = Node("const", (), "inf")
EMPTY = Node("set")

_STEP = 0.3
"""Work counted for a node that is rebuilt."""

MAX_SIZE = 5_000
"""Nodes of a tree in which parts are repeated."""

_FOLD_BITS = 2_000
"""Literals up to this size are folded while parsing; larger arithmetic belongs to the bounded layers."""


def _small(node: Node) -> bool:
    return node.op == "num" and int(node.value.height_bits()) < _FOLD_BITS


def add(terms: list[Node]) -> Node:
    """Sum; literals are folded into one."""
    if len(terms) == 1:
        return terms[0]
    total, rest = fmpq(0), []
    for term in terms:
        if _small(term):
            total += term.value
        else:
            rest.append(term)
    if not rest:
        return Node("num", (), total)
    if total != 0:
        rest.append(Node("num", (), total))
    return rest[0] if len(rest) == 1 else Node("add", tuple(rest))


def mul(left: Node, right: Node) -> Node:
    """Product; two literals fold, and products on the left stay flat so that a long one is not deep."""
    if _small(left):
        if _small(right):
            return Node("num", (), left.value * right.value)
        if left.value == 1:
            return right
    if left.op == "mul" and len(left.args) < 64:
        return Node("mul", (*left.args, right))
    return Node("mul", (left, right))


def neg(node: Node) -> Node:
    """The node with its sign changed."""
    return Node("num", (), -node.value) if node.op == "num" else Node("mul", (MINUS_ONE, node))


def div(left: Node, right: Node) -> Node:
    """Quotient; a zero divisor is kept, for the evaluation to refuse."""
    if _small(left) and _small(right) and right.value != 0:
        return Node("num", (), left.value / right.value)
    return Node("div", (left, right))


def sub(left: Node, right: Node) -> Node:
    """Difference."""
    return add([left, neg(right)])


def walk(node: Node) -> Iterator[Node]:
    """Every node of the tree, parents first, without recursion."""
    stack = [node]
    while stack:
        top = stack.pop()
        yield top
        stack.extend(reversed(top.args))


def depth(node: Node) -> int:
    """Longest path to a leaf, without recursion."""
    deepest, level = 0, [node]
    while level:
        deepest += 1
        level = [arg for each in level for arg in each.args]
    return deepest


def bounded(node: Node) -> Node:
    """The node itself; raises `ExhaustedError` where its tree has grown beyond what any layer should walk.

    Whatever puts a part into its result several times (a determinant, a product of matrices) passes through here.
    """
    size = sum(1 for _ in itertools.islice(walk(node), MAX_SIZE + 1))
    fuel.spend(size)
    if size > MAX_SIZE:
        raise fuel.ExhaustedError
    return node


def contains(node: Node, op: str) -> bool:
    """Whether an operator occurs anywhere in the tree."""
    return any(each.op == op for each in walk(node))


def symbols(node: Node) -> set[str]:
    """Names of the free symbols."""
    return {each.value for each in walk(node) if each.op == "sym"}


def replace(node: Node, rewrite: Callable[[Node], Node | None]) -> Node:
    """Rebuild the tree; `rewrite` gives a node's replacement, or None to descend."""
    fuel.spend(_STEP)
    new = rewrite(node)
    if new is not None:
        return new
    if not node.args:
        return node
    return Node(node.op, tuple(replace(arg, rewrite) for arg in node.args), node.value)


STRUCTURES = frozenset(
    "tuple set list matrix union inter minus domain chain in text unit money percent ratio residue".split()
)
"""Operators that are not scalars."""
