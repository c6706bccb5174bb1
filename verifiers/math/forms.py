r"""What an answer states: the parsed tree with its statements resolved.

`x = 5` becomes a named value, `2 \pm \sqrt 3` a list of two, `n = 2, 3, 4` a list, `p=5, q=2; p=7, q=2` a list
of tuples, matrix arithmetic a matrix. New operators: `named` (one value; value: the name), `equation` (two sides),
`false` (a statement that contradicts itself), `system` (value: the names).
"""

from __future__ import annotations

from fractions import Fraction

from flint import fmpq

from . import families, nodes, scalars
from .atoms import UnreadableError
from .nodes import Node, add, div, mul, neg, replace
from .units import measure

FALSE = Node("false")
_NOT_IN_SCALARS = nodes.STRUCTURES - {"matrix", "chain", "list"} | {"worked"}
"""What has no place inside an expression (`C(5, 2)` is a product with a pair); the bounds of a sum are statements."""

_FUNCTION_LETTERS = frozenset("fghFGHPQWTSVRUvuwpq")


def shape(node: Node, chain: str = "stated") -> Node:
    """Resolve the statements of a parsed tree. `chain`: see `options.MathOptions`."""
    op = node.op
    if op == "num":
        return node
    if op == "sym":
        return _segment(node)
    if op == "in":
        return families.membership(node)
    if op == "chain":
        family = families.conditioned(node.args[-1])
        if family is None:
            return _chain(node, chain)
        stated = Node("chain", (*node.args[:-1], family[0]), node.value)
        return _list(Node("list", (stated, family[1]), (",",)), chain)
    if op == "list":
        return _list(node, chain)
    if op in ("set", "tuple"):
        items: list[Node] = []
        for arg in node.args:
            item = shape(arg, chain)
            items.extend(item.args if op == "set" and item.op == "list" and item.value == "pm" else (item,))
        return _rows(Node(op, tuple(items), node.value))
    if op in ("unit", "money", "percent"):
        if op == "percent" and node.args[0].op == "ratio":
            raise UnreadableError(op)
        return Node(op, (shape(node.args[0], chain),), node.value)
    if not node.args or op == "matrix":
        return node
    inside = {each.op for each in nodes.walk(node)}
    family = families.conditioned(node) if "in" in inside else None
    if family is not None:
        return _list(Node("list", family, (",",)), chain)
    if op not in nodes.STRUCTURES and inside & _NOT_IN_SCALARS:
        raise UnreadableError(op)
    if "pm" in inside:
        return _both_signs(node)
    return _matrix(node) if "matrix" in inside else node


def _segment(node: Node) -> Node:
    r"""`\overline{AB}`, where it is all that is stated, is the segment `AB`."""
    ends = node.value.removeprefix("bar ")
    if ends == node.value or len(ends) != 2 or not ends.isupper():
        return node
    return Node("mul", tuple(Node("sym", (), end) for end in ends))


def _rows(node: Node) -> Node:
    """`[[1, 2], [3, 4]]` is the matrix with these rows."""
    rows = node.args
    if node.value != "[]" or not all(row.op == "tuple" and row.value == "[]" for row in rows):
        return node
    if len({len(row.args) for row in rows}) != 1:
        return node
    return Node("matrix", tuple(cell for row in rows for cell in row.args), (len(rows), len(rows[0].args)))


def _both_signs(node: Node) -> Node:
    variants = tuple(replace(node, lambda each, sign=sign: _signed(each, sign)) for sign in (1, -1))  # type: ignore[misc]
    return Node("list", variants, "pm")


def _signed(node: Node, sign: int) -> Node | None:
    if node.op != "pm":
        return None
    inner = replace(node.args[0], lambda each: _signed(each, sign))
    return inner if node.value * sign > 0 else neg(inner)


# -- statements ----------------------------------------------------------------------------------------------------


def name_of(node: Node) -> str | None:
    r"""The spelling of a plain name (`x`, `f(x)`, `AB`, `|z|`, `\frac{NO}{BO}`, `(x, y)`); None otherwise.

    Numbers and sums make an expression, not a name: `2x = 6` does not say 6.
    """
    op = node.op
    if op == "sym":
        return str(node.value)
    if op in ("mul", "div", "ratio", "tuple", "call") and not (op == "call" and node.value == "log"):
        if op == "tuple" and node.value != "()":
            return None
        parts = [name_of(arg) for arg in node.args]
        if all(part is not None for part in parts):
            mark = {"mul": "", "div": "/", "ratio": ":", "tuple": ",", "call": f"{node.value} "}[op]
            joined = mark.join(part for part in parts if part)
            return f"({joined})" if op == "tuple" else f"{mark}{joined}" if op == "call" else joined
    if (
        op == "pow"
        and node.args[0].op == "sym"
        and node.args[1] == nodes.MINUS_ONE
        and node.args[0].value[0] in _FUNCTION_LETTERS
    ):
        return f"{node.args[0].value}^-1"
    if op == "const" and node.value == "e":
        return "e"
    return None


def functions_of(name: Node) -> list[str]:
    """The functions in a name, but for the length of a segment (`|AB|`)."""
    calls = [each for each in nodes.walk(name) if each.op == "call"]
    return [
        each.value
        for each in calls
        if each.value != "abs" or not all(name[0].isupper() for name in nodes.symbols(each))
    ]


def is_function_name(name: str) -> bool:
    """`f(x)`, `W(n)` (read as a product of two letters), or `y`: whatever a formula is given for."""
    name = name.replace("'", "")
    return "(" in name[1:] or name == "y" or (len(name) == 2 and name[0] in _FUNCTION_LETTERS)


def argument_of(name: str) -> str | None:
    """`x` of `f(x)` or of `fx`."""
    name = name.replace("'", "")
    if name.endswith(")") and "(" in name[1:]:
        inner = name[name.index("(", 1) + 1 : -1]
        return inner if inner.isalpha() else None
    return name[1] if len(name) == 2 and name[0] in _FUNCTION_LETTERS else None


def _chain(node: Node, policy: str) -> Node:
    if any(relation not in ("=", "~") for relation in node.value):
        if node.value == ("==",) and node.args[1].op == "residue" and name_of(node.args[0]) is not None:
            return Node("named", (node.args[1], node.args[0], node.args[1]), name_of(node.args[0]))
        if any(part.op == "ratio" for part in node.args):
            raise UnreadableError("a ratio has no order")
        return node
    relations, parts = list(node.value), [_plain(part) for part in node.args]
    parts[:-1] = [Node("mod", part.args) if part.op == "residue" else part for part in parts[:-1]]
    worked = {_plain(part) for part in node.args if part.op == "worked"}
    first = name_of(parts[0])
    if "~" in relations:
        cut = relations.index("~")
        if cut == 0 and first is not None:
            relations[0] = "="
            cut = relations.index("~") if "~" in relations else len(relations)
        if first is None and not all(_rounds(parts[cut], each) for each in parts[cut + 1 :]):
            return FALSE
        relations, parts = relations[:cut], parts[: cut + 1]
        if not relations:
            return shape(parts[0], policy)
    values = parts[1:] if first is not None else parts
    if first is not None:
        if len(values) > 1 and not _consistent(values, worked, policy):
            return FALSE
        value = shape(values[-1], policy)
        if value.op in ("false", "named", "chain"):
            return FALSE
        formula = is_function_name(first) and nodes.contains(parts[1], "call")  # f(x) = sin x
        if len(parts) == 2 and name_of(parts[1]) is not None and not formula:
            return Node("equation", tuple(parts))
        return Node("named", (value, parts[0], values[-1]), first)
    last = name_of(parts[-1])
    if len(parts) == 2 and last is not None:
        return Node("named", (shape(parts[0], policy), parts[1], parts[0]), last)
    if any(nodes.symbols(part) for part in parts):
        return Node("equation", tuple(parts)) if len(parts) == 2 else _long_chain(parts, policy)
    if all(_agree(part, parts[-1]) for part in parts[:-1]):
        return shape(parts[-1], policy)
    return FALSE


def _plain(part: Node) -> Node:
    return part.args[0] if part.op == "worked" else part


def _consistent(values: list[Node], worked: set[Node], policy: str) -> bool:
    """Whether the members after a name may stand before the last one."""
    others = [each for each in values[:-1] if name_of(each) is None]
    if policy == "stated":
        if others and _agree(others[0], values[-1]):
            return True
        others = [each for each in others if _bare(each).op == "num" and each not in worked]
    return all(_agree(each, values[-1]) for each in others)


def _long_chain(parts: list[Node], policy: str) -> Node:
    if all(_agree(part, parts[-1]) for part in parts[:-1]):
        return shape(parts[-1], policy)
    return Node("chain", tuple(parts), ("=",) * (len(parts) - 1))


def _agree(first: Node, second: Node) -> bool:
    first, second = _bare(first), _bare(second)
    if first.op in nodes.STRUCTURES or second.op in nodes.STRUCTURES:
        return first == second
    return first == second or scalars.equal(first, second).equal is True


def _rounds(value: Node, rounded: Node) -> bool:
    """Whether what follows an approximation sign agrees with the value before it, to its own last digit."""
    value, rounded = _bare(value), _bare(rounded)
    if rounded.op != "num":
        return _agree(value, rounded)
    number: fmpq = rounded.value
    ten, unit = fmpq(10), fmpq(1)
    while (number / unit).q != 1 and unit.q.bit_length() < 200:
        unit /= ten
    while unit >= 1 and number != 0 and (number / (unit * ten)).q == 1:
        unit *= ten
    if (number / unit).q != 1:  # not a decimal
        unit = fmpq(1, number.q)
    cut = number + (unit if number >= 0 else -unit)
    low, high, exact, last = (
        scalars.order(value, Node("num", (), bound)) for bound in (number - unit / 2, number + unit / 2, number, cut)
    )
    rounded_so = low in (0, 1) and high in (0, -1)
    return rounded_so or {exact, last} == {1, -1}  # the other is cut off


def _bare(node: Node) -> Node:
    while node.op in ("unit", "money", "percent", "degree"):
        node = node.args[0]
    return node


# -- lists ---------------------------------------------------------------------------------------------------------


def _list(node: Node, policy: str) -> Node:
    if node.value == ("+",):
        return _compound(node)
    items: list[Node] = []
    for arg in node.args:
        item = shape(arg, policy)
        if item.op == "list" and item.value == "pm":
            items.extend(item.args)
        else:
            items.append(item)
    items = families.renamed(items)
    if any(item.op == "named" for item in items):
        return _named_list(items, node.value)
    return Node("list", tuple(items), node.value)


def _named_list(items: list[Node], separators: tuple[str, ...]) -> Node:
    if all(item.op == "named" for item in items):
        names = [item.value for item in items]
        period = names.index(names[0], 1) if names[0] in names[1:] else len(names)
        if (period == 1 and len(set(names)) == 1) or (all(is_function_name(name) for name in names) and period == 1):
            return Node("list", tuple(value for item in items for value in _values(item)), separators)
        if period < len(names) and len(names) % period == 0 and names == names[:period] * (len(names) // period):
            rows = [items[i : i + period] for i in range(0, len(items), period)]
            return Node("list", tuple(Node("tuple", tuple(item.args[0] for item in row), "()") for row in rows), ";")
        if len(set(names)) == len(names) and "or" not in separators:
            return Node("system", tuple(item.args[0] for item in items), tuple(names))
        return Node("list", tuple(items), separators)
    if items[0].op == "named" and all(item.op not in ("named", "equation", "chain") for item in items[1:]):
        values = (*_values(items[0]), *items[1:])  # "n = 2, 3, 4"
        return Node("list", values, separators)
    return Node("list", tuple(items), separators)


def _values(item: Node) -> tuple[Node, ...]:
    value = item.args[0]
    return value.args if value.op == "list" and value.value == "pm" else (value,)


def _compound(node: Node) -> Node:
    """`3 hours 20 minutes` in the smaller unit."""
    total, last = fmpq(0), None
    for part in node.args:
        unit, number = measure(part.value), part.args[0]
        if unit is None or number.op != "num" or (last is not None and unit.dimension != last.dimension):
            return node
        total += number.value * _fmpq(unit.factor)
        last = unit
    assert last is not None
    return Node("unit", (Node("num", (), total / _fmpq(last.factor)),), node.args[-1].value)


def _fmpq(value: Fraction) -> fmpq:
    return fmpq(value.numerator, value.denominator)


# -- matrices ------------------------------------------------------------------------------------------------------


def _matrix(node: Node) -> Node:
    """Sums, multiples and products of matrices, worked out; anything else stays as it is."""
    if node.op == "matrix":
        return node
    if node.op in ("add", "mul"):
        parts = [_matrix(arg) for arg in node.args]
        total = parts[0]
        for part in parts[1:]:
            combined = _sum(total, part) if node.op == "add" else _product(total, part)
            if combined is None:
                return node
            total = nodes.bounded(combined)
        return total
    if node.op == "div":
        upper = _matrix(node.args[0])
        if upper.op == "matrix":
            return Node("matrix", tuple(div(cell, node.args[1]) for cell in upper.args), upper.value)
    return node


def _sum(first: Node, second: Node) -> Node | None:
    if first.op == second.op == "matrix":
        if first.value != second.value:
            return None
        return Node("matrix", tuple(add([a, b]) for a, b in zip(first.args, second.args, strict=True)), first.value)
    return None if "matrix" in (first.op, second.op) else add([first, second])


def _product(first: Node, second: Node) -> Node | None:
    if first.op == second.op == "matrix":
        (rows, inner), (height, columns) = first.value, second.value
        if inner != height or rows * columns * inner > 512:
            return None
        cells = tuple(
            add([mul(first.args[i * inner + k], second.args[k * columns + j]) for k in range(inner)])
            for i in range(rows)
            for j in range(columns)
        )
        return Node("matrix", cells, (rows, columns))
    if "matrix" in (first.op, second.op):
        scalar, matrix = (second, first) if first.op == "matrix" else (first, second)
        return Node("matrix", tuple(mul(scalar, cell) for cell in matrix.args), matrix.value)
    return mul(first, second)
