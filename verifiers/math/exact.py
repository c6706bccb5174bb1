"""Exact rational values: integers, decimals, fractions, bounded powers, factorials, binomials, gcd, mod.

Every operation is refused before it is done when its result would pass `MAX_BITS`, so the cost of a value is
bounded whatever was written; huge integers under `mod` and `gcd` go through modular arithmetic. Irrational,
complex and symbolic values are for other layers.
"""

from __future__ import annotations

from collections.abc import Callable

from flint import fmpq, fmpz

from . import fuel
from .nodes import Node, contains, num, replace, walk

MAX_BITS = 1 << 15
MAX_FACTORIAL = 3_000
MAX_TERMS = 500
MAX_WORK = 5_000
"""Nodes that a finite sum or product may evaluate in all."""

_STEP = 0.5
"""Work counted for a node: a value may be asked for at every level of a tree."""


class NotExactError(Exception):
    """Not a rational number, or not one of bounded size."""


class UndefinedError(Exception):
    """The expression has no value: `1/0`, `0^0`."""


def exact(node: Node) -> fmpq | None:
    """The rational value, or None where it is not rational or too large. Raises `UndefinedError` for `1/0`."""
    try:
        return value(node)
    except NotExactError:
        return None


def value(node: Node) -> fmpq:
    """As `exact`, raising `NotExactError`."""
    if node.op == "num":
        number: fmpq = node.value
        return number
    handler = _HANDLERS.get(node.op)
    if handler is None:
        raise NotExactError
    fuel.spend(_STEP)
    return handler(node)


def integer(node: Node) -> fmpz:
    """An exact integer value, or `NotExactError`."""
    number = value(node)
    if number.q != 1:
        raise NotExactError
    return number.p


def _bounded(number: fmpq) -> fmpq:
    bits = int(number.height_bits())
    if bits > 64:
        fuel.spend(1 + (bits / 1000) ** 1.5)
        if bits > MAX_BITS:
            raise NotExactError
    return number


def _add(node: Node) -> fmpq:
    total = fmpq(0)
    for arg in node.args:
        total = _bounded(total + value(arg))
    return total


def _mul(node: Node) -> fmpq:
    total = fmpq(1)
    for arg in node.args:
        total = _bounded(total * value(arg))
    return total


def _div(node: Node) -> fmpq:
    upper, lower = value(node.args[0]), value(node.args[1])
    if lower == 0:
        raise UndefinedError
    return _bounded(upper / lower)


def power(base: fmpq, exponent: fmpq) -> fmpq:
    """`base ** exponent` where that is rational and bounded."""
    if exponent.q != 1:
        return power(rational_root(base, exponent.q), fmpq(exponent.p))
    if base == 0:
        if exponent <= 0:
            raise UndefinedError
        return base
    if base == 1 or exponent == 0:
        return fmpq(1)
    if base == -1:
        return fmpq(1) if exponent.p % 2 == 0 else base
    if abs(exponent) > MAX_BITS or abs(exponent.p) * base.height_bits() > MAX_BITS:
        raise NotExactError
    return _bounded(base ** int(exponent.p))


def rational_root(number: fmpq, degree: fmpz) -> fmpq:
    r"""The exact real root (`\sqrt[3]{-8}` is -2), or `NotExactError`."""
    if not 2 <= degree <= 1000:
        raise NotExactError
    n, negative = int(degree), number < 0
    if negative and n % 2 == 0:
        raise NotExactError
    upper, lower = abs(number.p), number.q
    top, bottom = upper.root(n), lower.root(n)
    if top**n != upper or bottom**n != lower:
        raise NotExactError
    return fmpq(-top if negative else top, bottom)


def _pow(node: Node) -> fmpq:
    base, exponent = node.args
    power_value = value(exponent)
    base_value = value(base)
    if base_value < 0 and power_value.q != 1:
        raise NotExactError  # the principal value is complex
    return power(base_value, power_value)


def _root(node: Node) -> fmpq:
    return rational_root(value(node.args[0]), integer(node.args[1]))


def _fact(node: Node) -> fmpq:
    n = integer(node.args[0])
    if n < 0:
        raise UndefinedError
    if n > MAX_FACTORIAL:
        raise NotExactError
    return _bounded(fmpq(fmpz.fac_ui(n)))


def _fact2(node: Node) -> fmpq:
    n = integer(node.args[0])
    if n < 0:
        raise UndefinedError
    if n > MAX_TERMS:
        raise NotExactError
    total = fmpz(1)
    for k in range(int(n), 1, -2):
        total *= k
    return fmpq(total)


def _binom(node: Node) -> fmpq:
    n, k = integer(node.args[0]), integer(node.args[1])
    if not 0 <= n <= MAX_FACTORIAL or k < 0:
        raise NotExactError
    return _bounded(fmpq(fmpz.bin_uiui(int(n), int(k)))) if k <= n else fmpq(0)


def _mod(node: Node) -> fmpq:
    from .modular import residue

    modulus = integer(node.args[1])
    if modulus <= 0:
        raise UndefinedError
    number = exact(node.args[0])
    if number is not None and number.q == 1:
        return fmpq(number.p % modulus)
    found = residue(node.args[0], modulus)
    if found is None:
        raise NotExactError
    return fmpq(found)


def _gcd(node: Node) -> fmpq:
    from .modular import residue

    numbers = [exact(arg) for arg in node.args]
    known = [number for number in numbers if number is not None and number.q == 1]
    if not known or all(number == 0 for number in known):
        raise NotExactError
    total = fmpz(0)
    for number in known:
        total = total.gcd(number.p)
    for arg, plain in zip(node.args, numbers, strict=True):
        if plain is None:
            found = residue(arg, total)
            if found is None:
                raise NotExactError
            total = total.gcd(found)
    return fmpq(total)


def _lcm(node: Node) -> fmpq:
    total = fmpz(1)
    for arg in node.args:
        total = total.lcm(integer(arg))
        _bounded(fmpq(total))
    return fmpq(total)


def _call(node: Node) -> fmpq:
    name = node.value
    if name == "gcd":
        return _gcd(node)
    if name == "lcm":
        return _lcm(node)
    if name in ("max", "min"):
        return (max if name == "max" else min)(value(arg) for arg in node.args)
    if name in ("abs", "floor", "ceil", "sign"):
        number = value(node.args[0])
        if name == "abs":
            return abs(number)
        if name == "sign":
            return fmpq((number > 0) - (number < 0))
        return fmpq(number.floor() if name == "floor" else number.ceil())
    if name == "gamma":
        return _fact(Node("fact", (Node("num", (), value(node.args[0]) - 1),)))
    raise NotExactError


def _based(node: Node) -> fmpq:
    digits, base = node.value
    whole, _, decimals = digits.partition(".")
    if len(digits) > 5_000:
        raise NotExactError
    fuel.spend(len(digits) / 4)
    total = fmpz(0)
    for digit in whole + decimals:
        if int(digit, 36) >= base:
            raise UndefinedError
        total = total * base + int(digit, 36)
    return fmpq(total, fmpz(base) ** len(decimals))


def _big(node: Node) -> fmpq:
    """Finite sums and products over a short integer range."""
    lower, upper, body = node.args
    if node.value not in ("sum", "prod") or lower.op != "chain" or lower.value != ("=",) or lower.args[0].op != "sym":
        raise NotExactError
    first, last = integer(lower.args[1]), integer(upper)
    size = sum(1 for _ in walk(body))
    if not 0 <= last - first < MAX_TERMS or size * (last - first) > MAX_WORK or contains(body, "big"):
        raise NotExactError
    name, total = lower.args[0].value, fmpq(0 if node.value == "sum" else 1)
    for k in range(int(first), int(last) + 1):
        term = value(_at(body, name, num(k)))
        total = _bounded(total + term if node.value == "sum" else total * term)
    return total


def _at(node: Node, name: str, index: Node) -> Node:
    return replace(node, lambda each: index if each.op == "sym" and each.value == name else None)


_HANDLERS: dict[str, Callable[[Node], fmpq]] = {
    "add": _add, "mul": _mul, "div": _div, "pow": _pow, "root": _root, "fact": _fact, "fact2": _fact2, "binom": _binom,
    "mod": _mod, "call": _call, "based": _based, "big": _big,
}  # fmt: skip
