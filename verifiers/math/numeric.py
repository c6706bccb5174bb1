r"""Rigorous real and complex values by ball arithmetic (python-flint's arb and acb).

Disjoint balls prove inequality. Equality is claimed only when the balls are small beside the value itself and beside
all that the two expressions could hide: the spread between the terms of every sum, the size of every literal, of every
argument of a function, power and root, and one bit for each node. A second evaluation at a far higher precision must
agree. A wide ball is never a yes. Expressions with symbols are compared at the points of `points`, so
`\log ab = \log a + \log b` holds and `\sqrt{x^2} = x` does not.

Every operation is on balls of bounded precision, whatever the size of the value, so the cost is bounded by the number
of nodes. flint's precision is process-wide: a lock keeps threads apart.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from flint import acb, arb, ctx, fmpq, fmpz

from . import fuel, points
from .exact import NotExactError, UndefinedError, exact
from .exact import integer as exact_integer
from .nodes import Node, num, symbols
from .points import INTEGER_POINTS, INTEGERS, POINTS, POSITIVE, Point

BASE_BITS = 192
MARGIN_BITS = 64
CONFIRM_BITS = 768
"""Precision of the second evaluation, or twice the first where that was higher."""

MAX_BITS = 8_192
_SPREAD = 100
"""Hidden bits beyond which rounded digits could be those of another value."""

_FAR = 4_096
"""Size of an argument (its binary exponent) beyond which no precision would do."""

_FREE = 4
_LITERAL = 16
"""Bits that the size of an argument, and of a literal, may have before it counts: the margin covers them."""

_LOCK = threading.RLock()


class NotNumericError(Exception):
    """No ball is known for an operator (an unevaluated integral, an unknown function)."""


class Evaluation:
    """Evaluates one tree at one point; notes how many bits of its value the tree may hide (`hidden`)."""

    def __init__(self, point: Point, bits: int, *, real: bool) -> None:
        self.point = point
        self.bits = bits
        self.real = real
        self.kind: Any = arb if real else acb
        self.hidden = 0
        scale = bits / BASE_BITS
        self.step = 0.5 * scale
        self.work = 5.0 * scale**1.65  # gamma, the dearest function: 5 us at 192 bits, 2.5 ms at 8192

    def __call__(self, node: Node) -> Any:
        """An arb (or acb); raises `NotNumericError`."""
        op = node.op
        fuel.spend(self.step)
        self.hidden += 1
        if op == "num":
            self.hidden += max(0, int(node.value.height_bits()) - _LITERAL)
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
            return self.kind(points.value(node.value, self.point))
        handler = _HANDLERS.get(op)
        if handler is None:
            raise NotNumericError(op)
        fuel.spend(self.work)
        return handler(self, node)

    def _add(self, node: Node) -> Any:
        total = None
        low = high = faint = None
        for arg in node.args:
            term = self(arg)
            total = term if total is None else total + term
            size = _exponent(term)
            if size is None:
                continue
            if term != 0:
                low = size if low is None or size < low else low
                high = size if high is None or size > high else high
            else:
                faint = size if faint is None or size < faint else faint
        if low is not None and high is not None:
            self.hidden += high - low
            if faint is not None:
                self.hidden += self._faint(high - faint)
        return total

    def _faint(self, below: int) -> int:
        """Bits hidden by a ball around zero: none where terms cancelled to the last digit, else its smallness."""
        return max(0, below - 2 * self.bits)

    def argument(self, ball: Any, *, grows: bool = False, sized: bool = True) -> Any:
        """Note what a function may hide of its argument.

        `grows`: as much as the exponential of it would (`tanh`); not `sized`: nothing, whatever its size (`log`).
        """
        size = _exponent(ball)
        excludes_zero = ball != 0
        if size is not None and not excludes_zero:
            self.hidden += self._faint(-size)
        elif size is not None and sized:
            self.hidden += 2 * max(0, abs(size) - _FREE)
            if grows and size > 0:
                self.hidden += 3 << min(size, _FAR)
        return ball


def _exponent(ball: Any) -> int | None:
    """Binary exponent of a ball's middle, or of its upper bound where it may be zero; None for zero and infinity."""
    if not ball.is_finite():
        return None
    middle = ball.mid() if ball != 0 else ball.abs_upper()
    if isinstance(middle, acb):
        middle = middle.abs_upper()
    mantissa, exponent = middle.mid().man_exp()
    return None if mantissa == 0 else int(exponent) + int(mantissa.bit_length())


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
        self.hidden += max(0, int(exponent.height_bits()) - _FREE)
        if exponent.q == 1:
            return base ** self.kind(exponent)
        if exponent.q == 2 and abs(exponent.p) < 1000:
            return base.sqrt() ** int(exponent.p)
        return base ** self.kind(exponent)
    return base ** self.argument(self(node.args[1]))


def _root(self: Evaluation, node: Node) -> Any:
    inner = self(node.args[0])
    try:
        degree = exact_integer(node.args[1])
    except NotExactError:
        return inner ** (self.kind(1) / self.argument(self(node.args[1])))
    self.hidden += int(degree.bit_length())
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
    return (self.argument(self(node.args[0])) + 1).gamma()


def _binom(self: Evaluation, node: Node) -> Any:
    n, k = self.argument(self(node.args[0])), self.argument(self(node.args[1]))
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
    self.hidden += max(0, int(number.height_bits()) - _LITERAL)
    return self.kind(number)


def _call(self: Evaluation, node: Node) -> Any:
    name = node.value
    if name == "log":
        inner = self.argument(self(node.args[0]), sized=False).log()
        return inner / self.argument(self(node.args[1]), sized=False).log() if len(node.args) == 2 else inner
    if name in _SIMPLE:
        return getattr(self.argument(self(node.args[0]), grows=name in _GROWING), name)()
    if name in _TURNING:
        turns = _half_turns(node.args[0])
        if turns is not None:  # a rational multiple of pi: exact zeros and poles
            method = getattr(self.kind(turns), name + "_pi", None)
            if method is not None:
                self.hidden += max(0, int(turns.height_bits()) - _LITERAL)
                return method()
        return getattr(self.argument(self(node.args[0]), grows=not self.real), name)()
    if name in ("acot", "asec", "acsc"):
        inner = self.argument(self(node.args[0]))
        return getattr(1 / inner, {"acot": "atan", "asec": "acos", "acsc": "asin"}[name])()
    if name == "abs":
        inner = self(node.args[0])
        return abs(inner) if self.real else acb(abs(inner))
    if name in ("re", "im", "arg") and not self.real:
        inner = self(node.args[0])
        return acb(inner.real if name == "re" else inner.imag if name == "im" else inner.arg())
    if name in ("floor", "ceil") and self.real:
        return _rounded_to_integer(self, node)
    if name in ("max", "min") and self.real:
        values = [self(arg) for arg in node.args]
        total = values[0]
        for each in values[1:]:
            total = getattr(total, name)(each)
        return total
    return _exact(self, node)


_GROWING = frozenset("sinh cosh tanh coth sech csch".split())
_TURNING = frozenset("sin cos tan cot sec csc".split())
_SIMPLE = frozenset("exp sinh cosh tanh coth sech csch asin acos atan asinh acosh atanh gamma".split())


def _rounded_to_integer(self: Evaluation, node: Node) -> Any:
    """`floor` and `ceil`: what lies on an integer as far as the ball tells is compared with that integer."""
    inner, bits = self(node.args[0]), self.bits
    if inner.is_finite() and inner.contains_integer() and inner.rad() < fmpq(1, 4):
        nearest = num((inner.mid() + fmpq(1, 2)).floor().unique_fmpz())
        if _compare(node.args[0], nearest, self.point, MAX_BITS, real=True):
            return self.kind(nearest.value)
    while True:
        rounded = getattr(inner, node.value)()
        if rounded.is_exact():
            return rounded
        bits *= 2
        if bits > MAX_BITS:
            raise NotNumericError(node.value)
        inner, _ = _ball(node.args[0], self.point, bits, real=True)


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


def _ball(node: Node, point: Point, bits: int, *, real: bool) -> tuple[Any, int]:
    before = ctx.prec
    ctx.prec = bits
    try:
        evaluation = Evaluation(point, bits, real=real)
        ball = evaluation(node)
        return ball, evaluation.hidden
    finally:
        ctx.prec = before


def _compare(
    first: Node, second: Node, point: Point, max_bits: int, *, real: bool, confirm: bool = True
) -> bool | None:
    """Equality at one point; None where it cannot be settled there."""
    bits, agreed = BASE_BITS, False
    while True:
        a, hidden_a = _ball(first, point, bits, real=real)
        b, hidden_b = _ball(second, point, bits, real=real)
        need = MARGIN_BITS + hidden_a + hidden_b
        verdict = _settled(a, b, need, bits)
        if verdict is False:
            return False
        if verdict is None and not (a.is_finite() and b.is_finite()) and need < bits:
            return None
        if verdict and (agreed or not confirm or bits >= max_bits):
            return True
        agreed = verdict is True
        wanted = max(2 * bits, CONFIRM_BITS) if agreed else max(2 * bits, need + MARGIN_BITS)
        if wanted > max_bits:
            return verdict
        bits = wanted


def _settled(a: Any, b: Any, need: int, bits: int) -> bool | None:
    """What two balls say: disjoint ones differ; equal are those that both are small beside their value."""
    if not (a.is_finite() and b.is_finite()):
        return None
    before = ctx.prec
    ctx.prec = bits
    try:
        difference = a - b
        if difference != 0:
            return False
        radius, size_a, size_b = (_exponent(ball) for ball in (difference, a, b))
    finally:
        ctx.prec = before
    if radius is None:
        return True  # two equal numbers without a radius
    if a != 0 and b != 0:
        assert size_a is not None
        assert size_b is not None
        return True if radius <= min(size_a, size_b) - need else None
    if a != 0 or b != 0:
        return None
    # Both may be zero: terms that cancelled leave a radius of about the precision, a tiny value leaves far less.
    smallest = min(size for size in (size_a, size_b) if size is not None)
    return True if -2 * bits - need <= smallest and radius <= -need else None


def equal(first: Node, second: Node, max_bits: int = MAX_BITS) -> bool | None:
    """Whether two scalar expressions have the same value; None where balls cannot tell.

    False is a proof for constants. With symbols, True means agreement at every usable point, and False means that
    they differ at one where both are real (or, if nowhere real, at a complex value).
    """
    names = frozenset(symbols(first) | symbols(second))
    with _LOCK:
        try:
            if not names:
                return _constant(first, second, max_bits)
            return _at_points(first, second, names, max_bits)
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


def _at_points(first: Node, second: Node, names: frozenset[str], max_bits: int) -> bool | None:
    whole = points.means_integers(first, second, names)
    agreed = 0
    for point in range(INTEGERS, INTEGERS + INTEGER_POINTS) if whole else range(POINTS):
        confirm = point in (0, POINTS - 1, INTEGERS)
        try:
            verdict = _compare(first, second, point, max_bits, real=True, confirm=confirm)
        except NotNumericError:
            verdict = None
        if verdict is None and (point < POSITIVE or whole):
            verdict = _compare(first, second, point, max_bits, real=False, confirm=confirm)
        if verdict is False:
            return False
        agreed += verdict is True
    if agreed < POSITIVE:
        return None
    for turn in points.around(first, second, approximate):
        try:
            if _compare(first, second, turn, max_bits, real=True, confirm=False) is False:
                return False
        except (NotNumericError, OverflowError, ValueError, ZeroDivisionError):
            continue
    return True


def approximate(node: Node) -> fmpq | None:
    """A constant to some digits."""
    try:
        ball, _ = _ball(node, 0, MARGIN_BITS, real=True)
    except (NotNumericError, OverflowError, ValueError, ZeroDivisionError):
        return None
    size = _exponent(ball)
    if size is None or abs(size) > BASE_BITS or ball == 0:
        return None
    mantissa, exponent = ball.mid().man_exp()
    return fmpq(mantissa) * fmpq(2) ** int(exponent)


def digits(node: Node, point: Point, places: int = 50) -> str | None:
    """The value at a point, rounded to `places` significant digits: equal values give equal strings."""
    with _LOCK:
        for real in (True, False):
            try:
                ball, hidden = _ball(node, point, BASE_BITS + 64, real=real)
            except (NotNumericError, OverflowError, ValueError, ZeroDivisionError):
                continue
            if hidden > _SPREAD:
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
    if size is None:
        return "0"
    if ball.contains(0):
        return "0" if -3 * BASE_BITS < size < -2 * MARGIN_BITS else None
    radius = _exponent(arb(0, ball.rad()))
    if radius is not None and radius > size - places * 3.33:
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
