"""Polynomials in one symbol with rational coefficients: where they vanish and where they are positive.

Factoring over the rationals (flint) decides whether two polynomial equations or inequalities have the same solutions,
and gives the ends of the solution set where every real root is rational or quadratic. Degree and coefficients are
bounded before anything is factored.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from flint import fmpq, fmpq_poly, fmpz_poly

from . import fuel, nodes
from .exact import NotExactError, UndefinedError, exact, integer
from .nodes import Node

MAX_DEGREE = 24
MAX_BITS = 400


class NotPolynomialError(Exception):
    """Not a polynomial in the symbol with rational coefficients, or too large to factor."""


class Factor(NamedTuple):
    """An irreducible factor as its integer coefficients, lowest first; the leading one is positive."""

    coefficients: tuple[int, ...]
    multiplicity: int

    @property
    def degree(self) -> int:
        return len(self.coefficients) - 1


class Factored(NamedTuple):
    """`sign` of the leading coefficient, and the factors."""

    sign: int
    factors: tuple[Factor, ...]


def factored(node: Node, name: str) -> Factored:
    """Factor an expression; raises `NotPolynomialError`."""
    polynomial = _polynomial(node, name)
    if polynomial.degree() < 0 or polynomial.degree() > MAX_DEGREE:
        raise NotPolynomialError
    numerator = polynomial.numer()
    if any(int(c.bit_length()) > MAX_BITS for c in numerator.coeffs()):
        raise NotPolynomialError
    fuel.spend(20 * polynomial.degree())
    content, parts = numerator.factor()
    sign, factors = (1 if content > 0 else -1), []
    for part, multiplicity in parts:
        coefficients = [int(c) for c in part.coeffs()]
        if coefficients[-1] < 0:
            coefficients = [-c for c in coefficients]
            sign *= -1 if multiplicity % 2 else 1
        factors.append(Factor(tuple(coefficients), int(multiplicity)))
    return Factored(sign, tuple(sorted(factors)))


def _polynomial(node: Node, name: str) -> fmpq_poly:
    fuel.spend(1)
    op = node.op
    if op == "sym" and node.value == name:
        return fmpq_poly([0, 1])
    if op == "add":
        total = fmpq_poly([0])
        for arg in node.args:
            total += _polynomial(arg, name)
        return total
    if op == "mul":
        total = fmpq_poly([1])
        for arg in node.args:
            total *= _polynomial(arg, name)
            if total.degree() > MAX_DEGREE:
                raise NotPolynomialError
        return total
    if op == "div":
        divisor = _number(node.args[1])
        if divisor == 0:
            raise NotPolynomialError
        return _polynomial(node.args[0], name) / divisor
    if op == "pow":
        base = _polynomial(node.args[0], name)
        try:
            exponent = integer(node.args[1])
        except NotExactError:
            raise NotPolynomialError from None
        if exponent < 0 or exponent * max(base.degree(), 1) > MAX_DEGREE:
            raise NotPolynomialError
        return base ** int(exponent)
    return fmpq_poly([_number(node)])


def _number(node: Node) -> fmpq:
    try:
        number = exact(node)
    except UndefinedError:
        number = None
    if number is None or (number == 0 and node.op != "num") or number.height_bits() > MAX_BITS:
        raise NotPolynomialError
    return number


def real_roots(factor: Factor) -> list[Node] | None:
    """The real roots of an irreducible factor as expressions; None where they are not rational or quadratic."""
    if factor.degree == 1:
        c0, c1 = factor.coefficients
        return [nodes.num(fmpq(-c0, c1))]
    if factor.degree == 2:
        c, b, a = factor.coefficients
        square = b * b - 4 * a * c
        if square < 0:
            return []
        root = Node("root", (nodes.num(square), nodes.num(2)))
        return [nodes.div(nodes.add([nodes.num(-b), nodes.mul(nodes.num(s), root)]), nodes.num(2 * a)) for s in (-1, 1)]
    return None if has_real_root(factor) else []


def has_real_root(factor: Factor) -> bool:
    """Whether an irreducible factor vanishes anywhere on the real line."""
    if factor.degree % 2:
        return True
    roots: Any = fmpz_poly(list(factor.coefficients)).complex_roots()
    return any(root.imag.is_zero() for root, _ in roots)


def signature(node: Node, relation: str, name: str) -> tuple[object, ...]:
    """What determines the real solutions of `node relation 0`: equal signatures, equal solutions, and conversely."""
    sign, factors = factored(node, name)
    if relation in ("<", "<="):
        sign, relation = -sign, {"<": ">", "<=": ">="}[relation]
    real = [factor for factor in factors if has_real_root(factor)]
    if relation in ("=", "!="):
        return (relation, frozenset(factor.coefficients for factor in real))
    odd = frozenset(factor.coefficients for factor in real if factor.multiplicity % 2)
    even = frozenset(factor.coefficients for factor in real if factor.multiplicity % 2 == 0)
    return (relation, sign, odd, even)


def zeros(node: Node, name: str) -> frozenset[tuple[int, ...]]:
    """The irreducible factors: two polynomials have the same complex roots exactly when these agree."""
    return frozenset(factor.coefficients for factor in factored(node, name).factors)
