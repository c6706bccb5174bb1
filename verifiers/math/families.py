r"""Families of answers (`k\pi, k \in \mathbb{Z}`): the condition found, the parameter under one name.

A condition may stand after a comma or in parentheses after the last factor. Not covered: parameters whose range is not
a named set (`k = 0, 1, 2`), and families that are the same set by other formulas.
"""

from __future__ import annotations

from .nodes import Node, add, replace, symbols
from .vocabulary import DOMAINS

_NAMES = ("k", "m", "n")
"""What parameters are called here: the layers take these letters for integers where that matters."""


def membership(node: Node) -> Node:
    r"""`k \in Z` with its plain letter read as the named set."""
    member, container = node.args
    if member.op == container.op == "sym" and container.value in DOMAINS:
        return Node("in", (member, Node("domain", (), DOMAINS[container.value])))
    return node


def conditioned(node: Node) -> tuple[Node, Node] | None:
    r"""The expression and the condition of `k\pi (k \in Z)`; None where there is no condition in that place."""
    if node.op == "mul" and node.args[-1].op == "in":
        rest = node.args[:-1]
        return (rest[0] if len(rest) == 1 else Node("mul", rest)), node.args[-1]
    if node.op == "add":
        for i, arg in enumerate(node.args):
            found = conditioned(arg)
            if found is not None:
                return add([*node.args[:i], found[0], *node.args[i + 1 :]]), found[1]
    return None


def renamed(items: list[Node]) -> list[Node]:
    """The members of a list with their parameters called by `_NAMES`, in the order of their conditions."""
    bound = [each.args[0].value for each in items if each.op == "in" and each.args[1].op == "domain"]
    used = {name for each in items if each.op != "in" for name in symbols(each)}
    parameters = [name for name in bound if name in used]
    names = dict(zip(parameters, (name for name in _NAMES if name not in used - set(parameters)), strict=False))
    if not parameters or len(names) < len(parameters):
        return items
    return [replace(each, lambda one: _under(one, names)) for each in items]


def _under(node: Node, names: dict[str, str]) -> Node | None:
    return Node("sym", (), names.get(node.value, node.value)) if node.op == "sym" else None
