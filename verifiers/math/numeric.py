r"""Rigorous real and complex values by ball arithmetic (python-flint's arb and acb).

A ball that excludes zero proves inequality. Equality is accepted when the difference of two balls contains zero and is
smaller than anything that the two expressions could hide: the precision covers the spread between the terms of every
sum, so `x + 10^{-30}` is not `x`. Expressions with symbols are compared at fixed points, positive ones first, then
mixed signs (where both sides are real), so `\log ab = \log a + \log b` holds and `\sqrt{x^2} = x` does not.

Every operation is on balls of bounded precision, whatever the size of the value, so the cost is bounded by the number
of nodes. flint's precision is process-wide: a lock keeps threads apart.
"""

from __future__ import annotations

import functools
import hashlib
import math
import threading
from collections.abc import Callable
from typing import Any

from flint import acb, arb, ctx, fmpq, fmpz

from . import fuel
from .exact import NotExactError, UndefinedError, exact
from .exact import integer as exact_integer
from .nodes import Node, symbols, walk

BASE_BITS = 192
MARGIN_BITS = 64
MAX_BITS = 8_192
POINTS = 7
"""Points at which expressions with symbols are compared: two positive ones, five of mixed sign."""

_POSITIVE = 2
_INTEGERS = 100
_INTEGER_NAMES = frozenset({"n", "k", "m"})
_INTEGER_POINTS = 6
_SPREAD = 100
"""Bits between the terms of sums beyond which rounded digits would hide a term."""

_LOCK = threading.RLock()


class NotNumericError(Exception):
    """No ball is known for an operator (an unevaluated integral, an unknown function)."""


class Evaluation:
    """Evaluates one tree at one point; notes how far apart the terms of its sums are."""

    def __init__(self, point: int, bits: int, *, real: bool) -> None:
        self.point = point
        self.real = real
        self.kind: Any = arb if real else acb
        self.spread = 0
        scale = bits / BASE_BITS
        self.step = 0.5 * scale
        self.work = 5.0 * scale**1.65  # gamma, the dearest function: 5 us at 192 bits, 2.5 ms at 8192

    def __call__(self, node: Node) -> Any:
        """An arb (or acb); raises `NotNumericError`."""
        op = node.op
        fuel.spend(self.step)
        if op == "num":
            return self.kind(node.value)
        if op == "add":
            return self._add(node)
        if op == "mul":
            total = self(node.args[0])
            for arg in node.args[1:]:
                total = total * self(arg)
            return total
        if op == "div":
            return self(node.args[0]) / self(node.args[1])
        if op == "sym":
            return self.kind(point_value(node.value, self.point))
        handler = _HANDLERS.get(op)
        if handler is None:
            raise NotNumericError(op)
        fuel.spend(self.work)
        return handler(self, node)

    def _add(self, node: Node) -> Any:
        total = None
        low = high = None
        for arg in node.args:
            term = self(arg)
            total = term if total is None else total + term
            size = _exponent(term)
            if size is not None:
                low = size if low is None or size < low else low
                high = size if high is None or size > high else high
        if low is not None and high is not None:
            self.spread += min(high - low, 1 << 40)
        return total


def _exponent(ball: Any) -> int | None:
    """Binary exponent of the middle of a ball; None for zero."""
    real = ball.real if isinstance(ball, acb) else ball
    if not real.is_finite():
        return None
    mantissa, exponent = real.mid().man_exp()
    if mantissa == 0:
        if isinstance(ball, acb):
            mantissa, exponent = ball.imag.mid().man_exp()
        if mantissa == 0:
            return None
    return int(exponent) + int(mantissa.bit_length())


@functools.lru_cache(maxsize=8192)
def point_value(name: str, point: int) -> fmpq:
    """The value of a symbol at a point: dyadic, between 0.4 and 2.9, of both signs among the mixed points.

    Points from 100 on are positive integers.
    """
    digest = hashlib.blake2b(f"{name}\x00{point}".encode(), digest_size=8).digest()
    number = int.from_bytes(digest, "big")
    if point >= _INTEGERS:
        return fmpq(3 + number % 40 * 2 + point % 2)
    size = fmpq(number % (5 << 40), 2 << 40) + fmpq(2, 5)
    return -size if point >= _POSITIVE and _signs(name) >> (point - _POSITIVE) & 1 else size


def _signs(name: str) -> int:
    """One bit for each mixed point, neither all clear nor all set."""
    mixed = (1 << (POINTS - _POSITIVE)) - 1
    return 1 + int.from_bytes(hashlib.blake2b(name.encode(), digest_size=4).digest(), "big") % (mixed - 1)


def _const(self: Evaluation, node: Node) -> Any:
    if node.value == "pi":
        return self.kind(arb.pi())
    if node.value == "e":
        return self.kind(arb.const_e())
    if node.value == "i" and not self.real:
        return acb(0, 1)
    raise NotNumericError(node.value)


def _pow(self: Evaluation, node: Node) -> Any:
    base = self(node.args[0])
    try:
        exponent = exact(node.args[1])
    except UndefinedError:
        raise NotNumericError("exponent") from None
    if exponent is not None:
        if exponent.q == 1:
            return base ** self.kind(exponent)
        if exponent.q == 2 and abs(exponent.p) < 1000:
            return base.sqrt() ** int(exponent.p)
        return base ** self.kind(exponent)
    return base ** self(node.args[1])


def _root(self: Evaluation, node: Node) -> Any:
    inner = self(node.args[0])
    try:
        degree = exact_integer(node.args[1])
    except NotExactError:
        return inner ** (self.kind(1) / self(node.args[1]))
    if degree == 2:
        return inner.sqrt()
    if not 1 <= degree < 10**6:
        raise NotNumericError("root")
    power = self.kind(fmpq(1, degree))
    if degree % 2 == 1:  # the real root of a negative number
        if self.real and inner < 0:
            return -((-inner) ** power)
        if not self.real and inner.imag.is_zero() and inner.real < 0:
            return -((-inner) ** power)
    return inner**power


def _fact(self: Evaluation, node: Node) -> Any:
    return (self(node.args[0]) + 1).gamma()


def _binom(self: Evaluation, node: Node) -> Any:
    n, k = self(node.args[0]), self(node.args[1])
    if self.real and n > 1000:
        return ((n + 1).lgamma() - (k + 1).lgamma() - (n - k + 1).lgamma()).exp()
    return (n + 1).gamma() * (k + 1).rgamma() * (n - k + 1).rgamma()


def _degree(self: Evaluation, node: Node) -> Any:
    return self(node.args[0]) * self.kind(arb.pi()) / 180


def _exact(self: Evaluation, node: Node) -> Any:
    try:
        number = exact(node)
    except UndefinedError:
        number = None
    if number is None:
        raise NotNumericError(node.op)
    return self.kind(number)


def _call(self: Evaluation, node: Node) -> Any:
    name = node.value
    if name == "log":
        inner = self(node.args[0]).log()
        return inner / self(node.args[1]).log() if len(node.args) == 2 else inner
    if name in _SIMPLE:
        inner = self(node.args[0])
        return getattr(inner, name)()
    if name in ("sin", "cos", "tan", "cot", "sec", "csc"):
        turns = _half_turns(node.args[0])
        if turns is not None:  # a rational multiple of pi: exact zeros and poles
            method = getattr(self.kind(turns), name + "_pi", None)
            if method is not None:
                return method()
        return getattr(self(node.args[0]), name)()
    if name in ("acot", "asec", "acsc"):
        return getattr(1 / self(node.args[0]), {"acot": "atan", "asec": "acos", "acsc": "asin"}[name])()
    if name == "abs":
        inner = self(node.args[0])
        return abs(inner) if self.real else acb(abs(inner))
    if name in ("re", "im", "arg") and not self.real:
        inner = self(node.args[0])
        return acb(inner.real if name == "re" else inner.imag if name == "im" else inner.arg())
    if name in ("floor", "ceil") and self.real:
        inner = self(node.args[0])
        rounded = getattr(inner, name)()
        if rounded.is_exact():
            return rounded
    if name in ("max", "min") and self.real:
        values = [self(arg) for arg in node.args]
        total = values[0]
        for each in values[1:]:
            total = getattr(total, name)(each)
        return total
    return _exact(self, node)


_SIMPLE = frozenset("exp sinh cosh tanh coth sech csch asin acos atan asinh acosh atanh gamma".split())


def _half_turns(node: Node) -> fmpq | None:
    """`q` where the node is `q * pi` or `q` half-turns in degrees."""
    if node.op == "degree":
        number = _rational(node.args[0])
        return None if number is None else number / 180
    if node.op == "const":
        return fmpq(1) if node.value == "pi" else None
    if node.op == "mul":
        total, found = fmpq(1), False
        for arg in node.args:
            part = _half_turns(arg)
            if part is not None and not found:
                found = True
            else:
                part = _rational(arg)
            if part is None:
                return None
            total *= part
        return total if found else None
    if node.op == "div":
        upper, lower = _half_turns(node.args[0]), _rational(node.args[1])
        return None if upper is None or lower is None or lower == 0 else upper / lower
    return None


def _rational(node: Node) -> fmpq | None:
    try:
        return exact(node)
    except UndefinedError:
        return None


_HANDLERS: dict[str, Callable[[Evaluation, Node], Any]] = {
    "const": _const, "pow": _pow, "root": _root, "fact": _fact, "binom": _binom, "degree": _degree, "call": _call,
    "based": _exact, "mod": _exact, "fact2": _exact, "big": _exact,
}  # fmt: skip


def _ball(node: Node, point: int, bits: int, *, real: bool) -> tuple[Any, int]:
    before = ctx.prec
    ctx.prec = bits
    try:
        evaluation = Evaluation(point, bits, real=real)
        ball = evaluation(node)
        return ball, evaluation.spread
    finally:
        ctx.prec = before


def _compare(first: Node, second: Node, point: int, max_bits: int, *, real: bool) -> bool | None:
    """Equality at one point; None where it cannot be settled there."""
    bits = BASE_BITS
    while True:
        a, spread_a = _ball(first, point, bits, real=real)
        b, spread_b = _ball(second, point, bits, real=real)
        if not (a.is_finite() and b.is_finite()):
            return None
        before = ctx.prec
        ctx.prec = bits
        try:
            difference = a - b
            if not difference.overlaps(arb(0) if real else acb(0)):
                return False
            need = MARGIN_BITS + spread_a + spread_b
            radius = _upper(difference)
            size = max(_upper(a), _upper(b))
        finally:
            ctx.prec = before
        if radius <= size - need or (size <= -need):
            return True
        wanted = max(2 * bits, need + MARGIN_BITS)
        if wanted > max_bits:
            return None
        bits = wanted


def _upper(ball: Any) -> float:
    """log2 of an upper bound of the absolute value."""
    upper = ball.abs_upper()
    if upper.is_zero():
        return -math.inf
    mantissa, exponent = upper.mid().man_exp()
    return float(int(exponent) + int(mantissa.bit_length()))


def equal(first: Node, second: Node, max_bits: int = MAX_BITS) -> bool | None:
    """Whether two scalar expressions have the same value; None where balls cannot tell.

    False is a proof for constants. With symbols, True means agreement at every usable point, and False means that
    they differ at one where both are real (or, if nowhere real, at a complex value).
    """
    names = symbols(first) | symbols(second)
    with _LOCK:
        try:
            if not names:
                return _constant(first, second, max_bits)
            return _at_points(first, second, max_bits)
        except (NotNumericError, OverflowError, ValueError, ZeroDivisionError):
            return None


def _constant(first: Node, second: Node, max_bits: int) -> bool | None:
    try:
        verdict = _compare(first, second, 0, max_bits, real=True)
        if verdict is not None:
            return verdict
    except NotNumericError:
        pass
    return _compare(first, second, 0, max_bits, real=False)


def _at_points(first: Node, second: Node, max_bits: int) -> bool | None:
    points = range(POINTS)
    if _means_integers(first, second):
        points = range(_INTEGERS, _INTEGERS + _INTEGER_POINTS)
    agreed = 0
    for point in points:
        try:
            verdict = _compare(first, second, point, max_bits, real=True)
        except NotNumericError:
            verdict = None
        if verdict is None and (point < _POSITIVE or point >= _INTEGERS):
            verdict = _compare(first, second, point, max_bits, real=False)
        if verdict is False:
            return False
        agreed += verdict is True
    return True if agreed >= _POSITIVE else None


def _means_integers(first: Node, second: Node) -> bool:
    """`(-1)^n`: a negative base raised to a symbol named as integers are."""
    return symbols(first) | symbols(second) <= _INTEGER_NAMES and any(
        each.op == "pow" and symbols(each.args[1]) and each.args[0].op == "num" and each.args[0].value < 0
        for node in (first, second)
        for each in walk(node)
    )


def digits(node: Node, point: int, places: int = 50) -> str | None:
    """The value at a point, rounded to `places` significant digits: equal values give equal strings."""
    with _LOCK:
        for real in (True, False):
            try:
                ball, spread = _ball(node, point, BASE_BITS + 64, real=real)
            except (NotNumericError, OverflowError, ValueError, ZeroDivisionError):
                continue
            if spread > _SPREAD:
                return None
            if ball.is_finite():
                return _rounded(ball, places)
    return None


def _rounded(ball: Any, places: int) -> str | None:
    if isinstance(ball, acb):
        real, imag = _rounded(ball.real, places), _rounded(ball.imag, places)
        if real is None or imag is None:
            return None
        return real if imag == "0" else f"{real}+{imag}i"
    size = _exponent(ball)
    if ball.contains(0):
        return "0" if _upper(ball) < -2 * MARGIN_BITS else None
    if size is None or _upper(arb(0, ball.rad())) > size - places * 3.33:
        return None
    mantissa, exponent = ball.mid().man_exp()
    shift = max(0, int(mantissa.bit_length()) - int(places * 3.32))
    rounded = (mantissa + (fmpz(1) << (shift - 1))) >> shift if shift else mantissa
    while rounded % 2 == 0:
        rounded, shift = rounded // 2, shift + 1
    return f"{rounded}p{int(exponent) + shift}"


def compare_reals(first: Node, second: Node, max_bits: int = MAX_BITS) -> int | None:
    """-1, 0 or 1 for the order of two real constants; None where that is unknown."""
    with _LOCK:
        try:
            a, _ = _ball(first, 0, BASE_BITS, real=True)
            b, _ = _ball(second, 0, BASE_BITS, real=True)
            if a.is_finite() and b.is_finite():
                if a < b:
                    return -1
                if a > b:
                    return 1
            return 0 if _compare(first, second, 0, max_bits, real=True) else None
        except (NotNumericError, OverflowError, ValueError, ZeroDivisionError):
            return None
