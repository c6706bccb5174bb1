r"""A key for an answer, equal for equivalent answers as far as the layers without computer algebra can tell.

Votes over samples need it. Law: equal keys imply that `compare.compare` says equal. The converse holds for
numbers, rational expressions, constants, lists, tuples, sets, intervals, matrices of them and words. Marks that may be
left out are left out of the key (`x =`, `\$`, `%`, the degree sign, counted things), so `20\%` and `\$20`
share the key of the `20` that each equals; a dimensioned unit stays (`12 cm` and `12` have two keys, though each
meets the other).
"""

from __future__ import annotations

import hashlib
from fractions import Fraction

from flint import fmpq

from . import fuel, nodes, numeric, points, scalars, sets, units
from .compare import IN_PROCESS
from .exact import UndefinedError, exact
from .forms import functions_of, is_function_name
from .modular import PRIMES, Field, NotModularError, VanishesError, fingerprint
from .nodes import Node, symbols
from .options import DEFAULT, MathOptions
from .quantities import is_share
from .reading import read
from .words import is_product, is_symbols, key, squeezed

_LONG = 200
_FAR = 400
_DENOMINATOR = 10**6


def canonical(answer: str, options: MathOptions = DEFAULT) -> str:
    """The key of one answer, empty for an empty one: deterministic across processes, bounded in cost, never raises."""
    answer = answer.strip()
    if len(answer) > IN_PROCESS:  # too long to be read in the caller: equal only to itself
        return _short("x:" + answer)
    reading = read(answer, options)
    if reading.reason == "empty":
        return ""
    if reading.node is None or (
        reading.words and not (is_product(reading.text) or reading.node.op not in ("sym", "mul"))
    ):
        return _short("t:" + _words(reading.text) if reading.words else "x:" + squeezed(reading.text))
    fuel.refill()
    try:
        return _short(_key(reading.node, options))
    except (UndefinedError, RecursionError, fuel.ExhaustedError):
        return _short("x:" + squeezed(reading.text))


def _words(text: str) -> str:
    return squeezed(text) if is_symbols(text) else key(text)


def _short(text: str) -> str:
    if len(text) <= _LONG:
        return text
    return text[:40] + "#" + hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=20).hexdigest()


def _key(node: Node, options: MathOptions) -> str:
    op = node.op
    if op == "false":  # no two contradictions are the same answer
        raise UndefinedError
    if op in ("list", "set"):
        if sets.is_setlike(node):
            return _set(node)
        if len(node.args) == 1:
            return _key(node.args[0], options)
        if any(arg.op == "text" for arg in node.args) or (options.list_order == "given" and op == "list"):
            return "[" + ";".join(_key(arg, options) for arg in node.args) + "]"
        return "{" + ";".join(sorted({_key(arg, options) for arg in node.args})) + "}"
    if op == "tuple":
        if sets.is_setlike(node):
            return _set(node)
        brackets = node.value if len(node.args) == 2 and node.value != "<>" else "()"
        return brackets[0] + ";".join(_key(arg, options) for arg in node.args) + brackets[1]
    if op == "matrix":
        return f"M{node.value[0]}x{node.value[1]}[" + ";".join(_key(arg, options) for arg in node.args) + "]"
    if op == "named":
        return _named(node, options)
    if op == "equation":
        return _equation(node.args[0], node.args[1])
    if op == "system":
        return (
            "S{"
            + ";".join(sorted(f"{name}={_key(arg, options)}" for name, arg in zip(node.value, node.args, strict=True)))
            + "}"
        )
    if op in ("unit", "money", "percent", "degree"):
        return _quantity(node, options)
    if op == "ratio":
        return "R(" + ";".join(_scalar(nodes.div(arg, node.args[-1])) for arg in node.args[:-1]) + ")"
    if sets.is_setlike(node):
        return _set(node)
    return _opaque(node) if op in nodes.STRUCTURES else _scalar(node)


def _opaque(node: Node) -> str:
    return "s:" + spell(node)


def spell(node: Node) -> str:
    """The tree as text."""
    inside = ",".join(spell(arg) for arg in node.args)
    shown = "" if node.value is None else f"<{node.value}>"
    return f"{node.op}{shown}({inside})" if inside else f"{node.op}{shown}"


def _scalar(node: Node) -> str:
    number = exact(node)
    if number is not None:
        return f"q:{number}"
    sign = scalars.infinity_sign(node)
    if sign is not None:
        return "q:+inf" if sign > 0 else "q:-inf"
    names = symbols(node)
    if not names:
        value = numeric.digits(node, 0)
        if value is not None:
            return _rational(value) or f"n:{value}"
    mark = fingerprint(node)
    if mark is not None:
        return "r:" + ",".join(map(str, mark))
    if not names:
        return _opaque(node)
    values = [numeric.digits(node, point) for point in range(points.POINTS)]
    if None in values[:2]:
        return _opaque(node)
    values += [numeric.digits(node, point) for point in points.around(node, node, numeric.approximate)]
    return "n:" + ",".join(value or "-" for value in values)


def _rational(value: str) -> str | None:
    r"""The key of the simple rational that a constant's digits agree with to the last (`\log_8 2` is 1/3)."""
    mantissa, _, exponent = value.partition("p")
    if "i" in value or not -_FAR < int(exponent or 0) < _FAR:
        return None
    given = Fraction(int(mantissa)) * Fraction(2) ** int(exponent or 0)
    simple = given.limit_denominator(_DENOMINATOR)
    if abs(given - simple) > abs(given) / 2**150:
        return None
    return f"q:{simple}"


def _quantity(node: Node, options: MathOptions) -> str:
    inner = node.args[0]
    if node.op == "percent":
        if options.percent == "required" or is_share(inner):
            return (
                _key(nodes.div(inner, nodes.num(100)), options) if inner.op not in nodes.STRUCTURES else _opaque(node)
            )
        return _key(inner, options)
    if node.op == "degree":
        return _key(inner, options) if options.degrees != "radians" else _scalar(node)
    if node.op == "money" and node.value == "dollar" and options.units == "optional":
        return _key(inner, options)
    if node.op == "money":
        return f"u:{node.value}:1|" + _key(inner, options)
    if node.value.startswith("?"):
        return f"u:{node.value.casefold()}|" + _key(inner, options)
    unit = units.measure(node.value)
    if unit is None:
        return (
            _key(inner, options)
            if options.units == "optional" and node.value not in ("am", "pm")
            else f"u:{node.value}|" + _key(inner, options)
        )
    if inner.op in nodes.STRUCTURES:
        return _opaque(node)
    return f"u:{unit.dimension}|" + _scalar(
        nodes.mul(nodes.num(fmpq(unit.factor.numerator, unit.factor.denominator)), inner)
    )


def _named(node: Node, options: MathOptions) -> str:
    value, left, right = node.args
    if functions_of(left):
        return f"{node.value}=" + _key(value, options)
    if (
        options.assignment == "optional"
        and node.value not in ("y", "z")
        and (is_function_name(node.value) or not symbols(value))
    ):
        return _key(value, options)
    if value.op in nodes.STRUCTURES:
        return f"{node.value}=" + _key(value, options)
    return _equation(left, right)


def _equation(left: Node, right: Node) -> str:
    """An equation up to a constant factor: its side-difference divided by the value at a fixed point."""
    difference = nodes.sub(left, right)
    marks = []
    for p in PRIMES:
        try:
            values = [Field(p, salt)(difference) for salt in range(4)]
        except (NotModularError, VanishesError):
            return _opaque(Node("equation", (left, right)))
        if values[0] == 0:
            return _opaque(Node("equation", (left, right)))
        scale = pow(values[0], -1, p)
        marks.append(",".join(str(value * scale % p) for value in values[1:]))
    return "e:" + "|".join(marks)


def _set(node: Node) -> str:
    try:
        parts = sets.pieces(node)
    except sets.NotASetError:
        return _opaque(node)
    return "I" + "u".join(
        f"{'[' if p.low_closed else '('}{_scalar(p.low)};{_scalar(p.high)}{']' if p.high_closed else ')'}"
        for p in parts
    )
