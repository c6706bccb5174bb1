"""Values modulo a prime: polynomial identity testing, and integers too large to write down.

A rational expression is evaluated in the integers modulo two fixed 61-bit primes, with a fixed residue for each symbol
(Schwartz-Zippel). Different residues prove that two expressions differ; equal ones leave a chance of about
degree / 2^61 for each prime that they do. `i` is a square root of -1 in the field; `pi` is a symbol (it is
transcendental). Exponents of any size are reduced through Euler's theorem, so `9^{9^{9^9}}` costs microseconds.
Roots, `e` and functions are for the numeric layer.
"""

from __future__ import annotations

import functools
import hashlib

from flint import fmpq, fmpz

from . import fuel
from .exact import NotExactError, UndefinedError, exact, integer
from .nodes import Node

_STEP = 0.5
"""Work counted for a node."""


class NotModularError(Exception):
    """Not a rational expression."""


class VanishesError(Exception):
    """A denominator is zero modulo the prime."""


def _prime(start: int) -> int:
    """The first prime of the form 4k+1 from `start`: -1 is a square modulo it."""
    candidate = start - start % 4 + 1
    while not fmpz(candidate).is_prime():
        candidate += 4
    return candidate


PRIMES = (_prime(0x1C6B_5E8F_3A91_7D21), _prime(0x1A35_97D1_0C4E_6F39))


@functools.lru_cache(maxsize=4096)
def _unit_root(p: int) -> int:
    """A square root of -1 modulo `p`."""
    base = 2
    while pow(base, (p - 1) // 2, p) != p - 1:
        base += 1
    return pow(base, (p - 1) // 4, p)


@functools.lru_cache(maxsize=1024)
def symbol_value(name: str, salt: int, p: int) -> int:
    """A fixed residue for a symbol: the same in every process."""
    digest = hashlib.blake2b(f"{name}\x00{salt}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") % p


@functools.lru_cache(maxsize=1024)
def _totient(modulus: int) -> int:
    """Euler's function; factoring 62 bits takes up to a millisecond."""
    return int(fmpz(modulus).euler_phi())


def residue(node: Node, modulus: fmpz | int) -> fmpz | None:
    """The residue of an integer expression, however large; None where it is not integer, or not of bounded cost."""
    if modulus <= 0 or modulus >= 1 << 62:
        return None
    try:
        return fmpz(_integer_mod(node, int(modulus)))
    except (NotExactError, UndefinedError):
        return None


def _integer_mod(node: Node, modulus: int) -> int:
    fuel.spend(2)
    if modulus == 1:
        return 0
    number = exact(node)
    if number is not None:
        if number.q != 1:
            raise NotExactError
        return int(number.p % modulus)
    if node.op == "add":
        return sum(_integer_mod(arg, modulus) for arg in node.args) % modulus
    if node.op == "mul":
        total = 1
        for arg in node.args:
            total = total * _integer_mod(arg, modulus) % modulus
        return total
    if node.op == "pow":
        base, exponent = node.args
        integer_base = _integer_mod(base, modulus)
        size = exact(exponent)
        if size is not None:
            if size.q != 1 or size < 0:
                raise NotExactError
            return pow(integer_base, int(size.p), modulus)
        if not _positive_integer(exponent):
            raise NotExactError
        # a huge exponent may be reduced modulo the totient once it is known to exceed log2 of the modulus
        fuel.spend(300)
        phi = _totient(modulus)
        return pow(integer_base, _integer_mod(exponent, phi) + phi, modulus)
    if node.op == "fact":
        n = exact(node.args[0])
        if n is not None and n.q == 1 and n >= modulus:
            return 0
    raise NotExactError


def _positive_integer(node: Node) -> bool:
    """Whether an expression too large to evaluate is surely a positive integer of at least 64."""
    if node.op == "num":
        return bool(node.value.q == 1 and node.value > 0)
    if node.op in ("mul", "add"):
        return all(_positive_integer(arg) for arg in node.args)
    if node.op == "pow":
        return all(_positive_integer(arg) for arg in node.args)
    return node.op == "fact" and _positive_integer(node.args[0])


class Field:
    """Evaluation modulo one prime with one choice of residues for the symbols."""

    def __init__(self, p: int, salt: int = 0, fixed: dict[str, int] | None = None) -> None:
        self.p = p
        self.salt = salt
        self.fixed = fixed or {}

    def __call__(self, node: Node) -> int:
        """The residue; raises `NotModularError` or `VanishesError`."""
        fuel.spend(_STEP)
        p, op = self.p, node.op
        if op == "num":
            number: fmpq = node.value
            if number.q == 1:
                return int(number.p % p)
            lower = int(number.q % p)
            if lower == 0:
                raise VanishesError
            return int(number.p % p) * pow(lower, -1, p) % p
        if op == "sym":
            found = self.fixed.get(node.value)
            return symbol_value(node.value, self.salt, p) if found is None else found
        if op == "mul":
            total = 1
            for arg in node.args:
                total = total * self(arg) % p
            return total
        if op == "add":
            return sum(self(arg) for arg in node.args) % p
        if op == "div":
            lower = self(node.args[1])
            if lower == 0:
                raise VanishesError
            return self(node.args[0]) * pow(lower, -1, p) % p
        if op == "pow":
            return self._power(node)
        if op == "const":
            if node.value == "i":
                return _unit_root(p)
            if node.value == "pi":
                return symbol_value("\\pi", self.salt, p)
        return self._number(node)

    def _power(self, node: Node) -> int:
        base, exponent = node.args
        residue_of_base = self(base)
        try:
            n = integer(exponent)
        except NotExactError:
            if not _positive_integer(exponent):
                raise NotModularError from None
            try:
                return pow(residue_of_base, _integer_mod(exponent, self.p - 1), self.p)
            except NotExactError:
                raise NotModularError from None
        if residue_of_base == 0 and n <= 0:
            raise VanishesError
        return pow(residue_of_base, int(n % (self.p - 1)) if abs(n) > 1 << 64 else int(n), self.p)

    def _number(self, node: Node) -> int:
        """Whole numbers in other clothes: factorials, binomials, based digits."""
        if node.op in ("fact", "binom", "based", "mod", "fact2", "root", "call", "big"):
            number = exact(node)
            if number is not None:
                return self(Node("num", (), number))
        raise NotModularError


FIELDS = tuple(Field(p, salt) for salt, p in enumerate(PRIMES))


def fingerprint(node: Node) -> tuple[int, ...] | None:
    """Residues of a rational expression in the fixed fields; None for anything else.

    Equal expressions have equal fingerprints; unequal fingerprints prove inequality.
    """
    try:
        return tuple(field(node) for field in FIELDS)
    except (NotModularError, UndefinedError):
        return None
    except VanishesError:
        return None
