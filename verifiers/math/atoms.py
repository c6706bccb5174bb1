r"""The innermost level of the grammar: atoms, groups, functions, commands, matrices.

The levels above (`parser`) build on this class; what a group holds is theirs.
"""

from __future__ import annotations

from . import fuel, nodes
from .nodes import Node, add, div, mul, neg, num
from .numerals import Token
from .tokens import MATRICES

RELATIONS = frozenset({"=", "<", ">", "<=", ">=", "!=", "~", "==", "in", "subset", "not"})
OPENERS = frozenset({"(", "[", "{", "\\{", "<<", "lfloor", "lceil"})
_CLOSERS = {
    "(": (")", "]"),
    "[": (")", "]"),
    "\\{": ("\\}",),
    "{": ("}",),
    "<<": (">>", ">"),
    "lfloor": ("rfloor",),
    "lceil": ("rceil",),
}
_TWO_ARGUMENTS = frozenset({"binom", "root"})
_MANY_ARGUMENTS = frozenset({"gcd", "lcm", "max", "min"})
_APPLIED = frozenset("f g h F G H".split())
"""Symbols that are functions when a parenthesis follows: elsewhere `a(b+c)` is a product."""

_DETERMINANTS = frozenset({"vmatrix", "Vmatrix"})
MAX_DETERMINANT = 4
MAX_DEPTH = 48
"""Atoms within one another; each is a dozen frames of Python's stack."""

_COST = 2.0
"""Work counted for an atom; see `fuel`."""


class UnreadableError(Exception):
    """The text is not wholly within the grammar."""


class TooDeepError(UnreadableError):
    """Longer, or nested deeper, than the limits allow."""


class Atoms:
    """A cursor over tokens, and the readers of everything that is not an infix or postfix operator."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.at = 0
        self.depth = 0
        self.bars = 0
        self.in_set = False
        self.currency: str | None = None
        self.ahead: tuple[int, Node, int] | None = None  # a group read ahead: where it starts, what it is, its end

    def list_of(self, closers: tuple[str, ...]) -> Node:
        """Statements up to a closer."""
        raise NotImplementedError

    def sum(self) -> Node:
        """A sum of products."""
        raise NotImplementedError

    def product(self) -> Node:
        """A product of factors."""
        raise NotImplementedError

    def power(self) -> Node:
        """An atom with its powers and postfixes."""
        raise NotImplementedError

    # -- helpers ---------------------------------------------------------------------------------------------------

    def op(self) -> str:
        """The operator at hand, or the empty string."""
        token = self.tokens[self.at]
        return token.value if token.kind == "op" else ""

    def take(self, value: str) -> bool:
        token = self.tokens[self.at]
        if token.kind == "op" and token.value == value:
            self.at += 1
            return True
        return False

    def expect(self, *values: str) -> str:
        value = self.op()
        if value not in values:
            raise UnreadableError(f"expected {values}")
        self.at += 1
        return value

    @staticmethod
    def raised(base: Node, exponent: Node) -> Node:
        if base.op == "num" and exponent.op == "num" and exponent.value.q == 1 and abs(exponent.value) <= 64:
            n = int(exponent.value)
            if (
                (n >= 0 or base.value != 0)
                and abs(n) * int(base.value.height_bits()) < 2000
                and not (n == 0 and base.value == 0)
            ):
                return Node("num", (), base.value**n)
        return Node("pow", (base, exponent))

    def argument(self) -> Node:
        """A braced group or one atom."""
        if self.op() == "{":
            return self._group()
        return self.atom()

    # -- atoms -----------------------------------------------------------------------------------------------------

    def deeper(self) -> None:
        """Enter a level (left by `self.depth -= 1`); counted here, so that no answer meets Python's own limit."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise TooDeepError
        fuel.spend(_COST)

    def atom(self) -> Node:
        self.deeper()
        node = self._atom()
        self.depth -= 1
        return node

    def _atom(self) -> Node:
        token = self.tokens[self.at]
        kind, value = token.kind, token.value
        if kind in ("num", "const"):
            self.at += 1
            node: Node = value
            return node
        if kind == "sym":
            return self._symbol(value)
        if kind == "op":
            if value in OPENERS:
                return self._group()
            if value in ("|", "||"):
                return self._bars(value)
            if value == "angle":
                self.at += 1
                return Node("sym", (), "angle " + self._label())
        if kind == "fn":
            return self._function(value)
        if kind == "cmd":
            return self._command(value)
        if kind == "begin":
            return self._matrix()
        if kind == "domain":
            self.at += 1
            if value == "empty":
                return nodes.EMPTY
            sign = "+" if self.op() == "^" and self.tokens[self.at + 1].value in ("+", "-") else ""
            if sign:
                sign = self.tokens[self.at + 1].value
                self.at += 2
            return Node("domain", (), value + sign)
        raise UnreadableError(str(value))

    def _symbol(self, name: str) -> Node:
        self.at += 1
        if name == "e":
            return nodes.E
        if name == "i":
            return nodes.I
        following = self.tokens[self.at]
        if name[0] in _APPLIED and following.kind == "op" and following.value == "(" and not following.spaced:
            start = self.at
            node = self._group()
            if node.op in ("num", "sym") or self.op() in RELATIONS:
                inside = "".join(_spell(token) for token in self.tokens[start : self.at])
                return Node("sym", (), name + inside)
            self.ahead, self.at = (start, node, self.at), start
        return Node("sym", (), name)

    def _label(self) -> str:
        name = ""
        braced = self.take("{")
        while self.tokens[self.at].kind == "sym":
            name += self.tokens[self.at].value
            self.at += 1
        if braced:
            self.expect("}")
        if not name:
            raise UnreadableError("label")
        return name

    def _group(self) -> Node:
        if self.ahead is not None and self.ahead[0] == self.at:
            _, node, self.at = self.ahead
            return node
        opener = self.op()
        self.at += 1
        bars, self.bars = self.bars, 0
        in_set, self.in_set = self.in_set, opener == "\\{"
        closers = _CLOSERS[opener]
        if self.op() in closers:
            if opener == "\\{":
                self.at += 1
                self.bars, self.in_set = bars, in_set
                return nodes.EMPTY
            raise UnreadableError("empty group")
        node = self.list_of(closers)
        if opener == "\\{" and self.op() in ("|", ":"):
            self.at += 1
            self.in_set = False
            condition = self.list_of(closers)
            if condition.op not in ("chain", "in", "list"):
                raise UnreadableError("a condition must be a statement")
            self.expect(*closers)
            self.bars, self.in_set = bars, in_set
            return _such_that(node, condition)
        closer = self.expect(*closers)
        self.bars, self.in_set = bars, in_set
        if opener == "{":
            return node
        if opener in ("lfloor", "lceil"):
            return Node("call", (node,), opener[1:])
        items = node.args if node.op == "list" else (node,)
        if opener == "\\{":
            return Node("set", items)
        if len(items) == 1 and opener != "<<":
            if (opener, closer) in (("(", ")"), ("[", "]")):
                return node
            raise UnreadableError("one-sided interval")
        return Node("tuple", items, "<>" if opener == "<<" else opener + closer)

    def _bars(self, opener: str) -> Node:
        self.at += 1
        self.bars += 1
        node = self.sum()
        self.bars -= 1
        self.expect(opener)
        return Node("call", (node,), "abs")

    def _function(self, name: str) -> Node:
        self.at += 1
        base = power = None
        for _ in range(2):
            if name == "log" and self.take("_"):
                base = self.argument()
            elif self.op() == "^":
                self.at += 1
                sign = self.take("-")
                power = self.argument()
                power = neg(power) if sign else power
        arguments = self._arguments(name)
        if name in _TWO_ARGUMENTS and len(arguments) != 2:
            raise UnreadableError(name)
        if name not in _TWO_ARGUMENTS | _MANY_ARGUMENTS and len(arguments) != 1:
            if name != "log" or len(arguments) != 2:
                raise UnreadableError(name)
            argument, base = arguments
            arguments = (argument,)
        if name == "sqrt":
            node = Node("root", (arguments[0], num(2)))
        elif name == "cbrt":
            node = Node("root", (arguments[0], num(3)))
        elif name in ("root", "binom"):
            node = Node(name, arguments)
        elif name == "factorial":
            node = Node("fact", arguments)
        elif name == "lg":
            node = Node("call", (*arguments, num(10)), "log")
        elif name == "log":
            node = Node("call", (*arguments, base) if base is not None else arguments, "log")
        else:
            node = Node("call", arguments, "log" if name == "ln" else name)
        if power is None:
            return node
        if power == nodes.MINUS_ONE and name in ("sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh"):
            return Node("call", arguments, "a" + name)
        return self.raised(node, power)

    def _arguments(self, name: str) -> tuple[Node, ...]:
        if self.op() == "(":
            node = self._group()
            return node.args if node.op in ("tuple", "list") and (node.value == "()" or node.op == "list") else (node,)
        if self.take("-"):
            self.deeper()
            argument = neg(self._arguments(name)[0])
            self.depth -= 1
            return (argument,)
        node = self.power()
        while True:
            token = self.tokens[self.at]
            if token.kind in ("sym", "const") or (token.kind == "cmd" and token.value in ("frac", "sqrt")):
                node = mul(node, self.power())
            else:
                return (node,)

    def _command(self, name: str) -> Node:
        self.at += 1
        if name == "frac":
            upper = self.argument()
            return div(upper, self.argument())
        if name == "binom":
            upper = self.argument()
            return Node("binom", (upper, self.argument()))
        if name == "sqrt":
            degree = num(2)
            if self.op() == "[":
                self.at += 1
                degree = self.sum()
                self.expect("]")
            return Node("root", (self.argument(), degree))
        if name == "bar":
            if self.op() == "{" and self.tokens[self.at + 1].kind == "sym":
                return Node("sym", (), "bar " + self._label())
            raise UnreadableError("bar")
        return self._big(name)

    def _big(self, name: str) -> Node:
        lower = upper = nodes.ZERO
        for _ in range(2):
            if self.take("_"):
                self.expect("{") if self.op() == "{" else None
                braced = self.tokens[self.at - 1].value == "{"
                lower = self.list_of(("}",)) if braced else self.atom()
                if braced:
                    self.expect("}")
            elif self.take("^"):
                upper = self.argument()
        return Node("big", (lower, upper, self.product()), name)

    def _matrix(self) -> Node:
        environment = self.tokens[self.at].value
        if environment.rstrip("*") not in MATRICES - {"cases", "aligned", "align"}:
            raise UnreadableError(environment)
        self.at += 1
        rows: list[list[Node]] = [[]]
        while True:
            rows[-1].append(self.sum())
            if self.take("&"):
                continue
            if self.take("newline"):
                if self.tokens[self.at].kind == "end" and self.tokens[self.at].value == environment:
                    break
                rows.append([])
                continue
            break
        token = self.tokens[self.at]
        if token.kind != "end" or token.value != environment or len({len(row) for row in rows}) != 1:
            raise UnreadableError("matrix")
        self.at += 1
        if environment in _DETERMINANTS:
            if len(rows) != len(rows[0]) or len(rows) > MAX_DETERMINANT:
                raise UnreadableError("determinant")
            return nodes.bounded(_determinant(rows))
        return Node("matrix", tuple(cell for row in rows for cell in row), (len(rows), len(rows[0])))


def _such_that(member: Node, condition: Node) -> Node:
    r"""`\{x : x > 1\}` is what its condition says; `\{2k : k \in Z\}` is the family `2k, k \in Z`."""
    names = member.args if member.op == "tuple" else (member,)
    if all(each.op in ("sym", "in") for each in names):
        return condition
    conditions = condition.args if condition.op == "list" else (condition,)
    return Node("list", (member, *conditions), (",",) * len(conditions))


def _determinant(rows: list[list[Node]]) -> Node:
    if len(rows) == 1:
        return rows[0][0]
    terms = []
    for j, cell in enumerate(rows[0]):
        minor = _determinant([row[:j] + row[j + 1 :] for row in rows[1:]])
        terms.append(mul(cell, minor) if j % 2 == 0 else neg(mul(cell, minor)))
    return add(terms)


def _spell(token: Token) -> str:
    if token.kind == "num" and token.value.op == "num":
        return str(token.value.value)
    return str(token.value.value) if isinstance(token.value, Node) else str(token.value)
