"""Bounds on the size of constants that are too large to evaluate: power towers, factorials of factorials.

A magnitude is an interval of *levels*: `(h, m)` stands for `2^(2^(...^m))` with `h` twos, so a tower of any
height is two floats. Every step widens the interval by one part in 10^9, more than its rounding; the bounds serve to
prove inequality only. Not covered: complex values, and sums whose terms nearly cancel.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from flint import fmpz

from . import fuel
from .exact import UndefinedError, exact
from .nodes import Node

Level = tuple[int, float]
"""`(h, m)`: `h` times `2^` applied to `m`; normalised so that `m < 1000` (and `m >= 9.9` when h > 0)."""

_STEP = 3.0
"""Work counted for a node."""

_TOP = 1000.0
_BOTTOM = math.log2(_TOP)


class Bounds(NamedTuple):
    """`sign` (+1 or -1) times a value between `low` and `high`, both >= 0."""

    sign: int
    low: Level
    high: Level


class UnboundedError(Exception):
    """No bound is known for this expression."""


def level(x: float) -> Level:
    """A positive float as a level."""
    return (0, x) if x < _TOP else (1, math.log2(x))


def _normal(h: int, m: float) -> Level:
    while m >= _TOP:
        h, m = h + 1, math.log2(m)
    while h and m < _BOTTOM:
        h, m = h - 1, 2.0**m
    return (h, m)


def _log2(x: Level) -> float | Level:
    """Base-2 logarithm; a float where that is small (it may be negative)."""
    h, m = x
    if h == 0:
        return math.log2(m) if m > 0 else -math.inf
    return m if h == 1 else (h - 1, m)


def _exp2(x: float | Level) -> Level:
    if isinstance(x, tuple):
        return _normal(x[0] + 1, x[1])
    return level(2.0**x) if x < _BOTTOM else _normal(1, x)


def _scale(x: float | Level, up: bool) -> float | Level:
    """Widen a logarithm by rounding slack."""
    slack = 1e-9
    if isinstance(x, tuple):
        return (x[0], x[1] * (1 + slack if up else 1 - slack))
    return x + (abs(x) * slack + slack) * (1 if up else -1)


def _plus(a: float | Level, b: float | Level) -> float | Level:
    """Sum of two logarithms; levels absorb floats."""
    if not isinstance(a, tuple) and not isinstance(b, tuple):
        return a + b
    big, small = (a, b) if _key(a) >= _key(b) else (b, a)
    assert isinstance(big, tuple)
    if not isinstance(small, tuple):
        small = level(max(small, 0.0)) if small > 0 else (0, 0.0)
    return _add_levels(big, small)


def _add_levels(big: Level, small: Level) -> Level:
    """Upper end of a sum of two positive levels, exact enough for one more logarithm."""
    if big[0] == 0:
        return level(big[1] + small[1])
    if big[0] == 1 and small[0] <= 1:
        x = big[1]
        y = small[1] if small[0] == 1 else (math.log2(small[1]) if small[1] > 0 else -math.inf)
        return _normal(1, x + math.log2(1 + 2.0 ** (y - x)) if y > -math.inf else x)
    return big if big != small else _normal(big[0], big[1] * (1 + 1e-9))


def _key(x: float | Level) -> Level:
    return x if isinstance(x, tuple) else level(max(x, 0.0))


def _power(base: Level, exponent: Level) -> Level:
    """`base ** exponent` for base >= 1: two logarithms down, a product is a sum."""
    inner = _log2(base)  # log2 of the base
    if not isinstance(inner, tuple) and inner <= 0:
        return (0, 1.0)
    return _exp2(_times(inner, exponent))


def _times(a: float | Level, b: Level) -> float | Level:
    """Product of a positive logarithm and a level."""
    first = a if isinstance(a, tuple) else level(a)
    if first[0] == 0 and b[0] == 0:
        return first[1] * b[1]
    return _exp2(_plus(_log2(first), _log2(b)))


def bounds(node: Node) -> Bounds:
    """Bounds of a real constant; raises `UnboundedError`."""
    fuel.spend(_STEP)
    number = exact(node)
    if number is not None:
        if number == 0:
            return Bounds(1, (0, 0.0), (0, 0.0))
        size = abs(number)
        bits = _log2_of(size.p) - _log2_of(size.q)
        return Bounds(1 if number > 0 else -1, _exp2(_scale(bits, up=False)), _exp2(_scale(bits, up=True)))
    if node.op == "add":
        return _sum([bounds(arg) for arg in node.args])
    if node.op == "mul":
        return _product([bounds(arg) for arg in node.args])
    if node.op == "div":
        upper, lower = bounds(node.args[0]), bounds(node.args[1])
        if lower.low[0] == 0 and lower.low[1] <= 0:
            raise UnboundedError
        return Bounds(
            upper.sign * lower.sign, _ratio(upper.low, lower.high, up=False), _ratio(upper.high, lower.low, up=True)
        )
    if node.op == "pow":
        base, exponent = bounds(node.args[0]), bounds(node.args[1])
        if base.sign < 0 or exponent.sign < 0 or base.low < (0, 1.0):
            raise UnboundedError
        return Bounds(
            1, _widen(_power(base.low, exponent.low), up=False), _widen(_power(base.high, exponent.high), up=True)
        )
    if node.op == "root":
        inner = bounds(node.args[0])
        degree = exact(node.args[1])
        if inner.sign < 0 or degree is None or degree < 1:
            raise UnboundedError
        low, high = _log2(inner.low), _log2(inner.high)
        return Bounds(
            1,
            _exp2(_scale(_shrink(low, float(degree)), up=False)),
            _exp2(_scale(_shrink(high, float(degree)), up=True)),
        )
    if node.op == "fact":
        inner = bounds(node.args[0])
        if inner.sign < 0 or inner.low < (0, 4.0):
            raise UnboundedError
        # (n/e)^n < n! < n^n
        shrunk = _exp2(_scale(_plus_float(_log2(inner.low), -1.5), up=False))
        return Bounds(1, _widen(_power(shrunk, inner.low), up=False), _widen(_power(inner.high, inner.high), up=True))
    if node.op == "call" and node.value in ("sin", "cos") and not any(arg.op == "sym" for arg in node.args):
        return Bounds(1, (0, 0.0), (0, 1.0))
    if node.op == "call" and node.value == "log":
        return _logarithm(node)
    raise UnboundedError


def _log2_of(number: fmpz) -> float:
    shift = max(0, int(number.bit_length()) - 60)
    return math.log2(int(number >> shift)) + shift


def _plus_float(x: float | Level, y: float) -> float | Level:
    return x + y if not isinstance(x, tuple) else x


def _shrink(x: float | Level, divisor: float) -> float | Level:
    if not isinstance(x, tuple):
        return x / divisor
    h, m = x
    return (h, m - math.log2(divisor) if h == 1 else m) if h else m / divisor


def _widen(x: Level, *, up: bool) -> Level:
    return _normal(x[0], x[1] * (1 + 1e-9 if up else 1 - 1e-9))


def _ratio(a: Level, b: Level, *, up: bool) -> Level:
    first, second = _log2(a), _log2(b)
    if isinstance(first, tuple):
        if isinstance(second, tuple):
            if first <= second:
                return (0, 0.0) if not up else (0, 1.0) if first < second else a
            return a if up else (first if first[0] > second[0] or first[1] > second[1] * 1.01 else (0, 0.0))
        return _exp2(_scale(first, up=up))
    if isinstance(second, tuple):
        return (0, 1.0) if up else (0, 0.0)
    return _exp2(_scale(first - second, up=up))


def _product(parts: list[Bounds]) -> Bounds:
    sign, low, high = 1, parts[0].low, parts[0].high
    for part in parts:
        sign *= part.sign
    for part in parts[1:]:
        if (0, 0.0) in (low, part.low):
            low = (0, 0.0)
        else:
            low = _exp2(_scale(_plus_signed(_log2(low), _log2(part.low)), up=False))
        high = (
            _exp2(_scale(_plus_signed(_log2(high), _log2(part.high)), up=True))
            if (0, 0.0) not in (high, part.high)
            else (0, 0.0)
        )
    return Bounds(sign, low, high)


def _plus_signed(a: float | Level, b: float | Level) -> float | Level:
    if not isinstance(a, tuple) and not isinstance(b, tuple):
        return a + b
    if isinstance(a, tuple) and isinstance(b, tuple):
        return _plus(a, b)
    return a if isinstance(a, tuple) else b


def _sum(parts: list[Bounds]) -> Bounds:
    """One term that outweighs the others by far decides; terms of one sign add up."""
    largest = max(parts, key=lambda part: part.low)
    rest = [part for part in parts if part is not largest]
    others = (0, 0.0)
    for part in rest:
        others = _exp2(_plus_signed(1.0, _log2(max(others, part.high)))) if others != (0, 0.0) else part.high
    same = all(part.sign == largest.sign for part in rest)
    if not same and _log_of(others) >= _log_of(largest.low):
        raise UnboundedError
    # |largest| >= 2 * the others together: half to double of it
    low = largest.low if same else _exp2(_minus_one(_log2(largest.low)))
    high = _exp2(_plus_signed(1.0, _log2(max(largest.high, others))))
    return Bounds(largest.sign, low, high)


def _minus_one(x: float | Level) -> float | Level:
    return x - 1.0 if not isinstance(x, tuple) else (x[0], x[1] * (1 - 1e-9))


def _log_of(x: Level) -> Level:
    """A key that is at least one doubling apart for values that differ by a factor of two."""
    h, m = x
    return (h, m + 1.0) if h == 1 else (h, m * 2) if h == 0 else (h, m * (1 + 1e-6))


def _logarithm(node: Node) -> Bounds:
    inner = bounds(node.args[0])
    if inner.sign < 0 or inner.low < (0, 2.0):
        raise UnboundedError
    low, high = _log2(inner.low), _log2(inner.high)
    low_level = low if isinstance(low, tuple) else level(low)
    high_level = high if isinstance(high, tuple) else level(high)
    base_low = base_high = math.e
    if len(node.args) == 2:
        number = exact(node.args[1])
        if number is None or not 1 < number < 10**9:
            raise UnboundedError
        base_low = base_high = float(number.p) / float(number.q)
    low_level = _ratio(low_level, level(math.log2(base_high) + 1e-9), up=False) if low_level[1] > 0 else (0, 0.0)
    return Bounds(1, low_level, _ratio(high_level, level(max(math.log2(base_low) - 1e-9, 1e-9)), up=True))


def apart(first: Node, second: Node) -> bool:
    """Whether a bound proves that two constants differ, one of them being huge. Never raises, costs microseconds."""
    try:
        a, b = bounds(first), bounds(second)
    except (UnboundedError, UndefinedError, OverflowError, ZeroDivisionError, ValueError):
        return False
    if a.sign != b.sign and (a.low > (0, 0.0) or b.low > (0, 0.0)):
        return True
    return a.low > b.high or b.low > a.high
