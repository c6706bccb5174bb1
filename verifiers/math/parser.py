"""Tokens to a tree: one operator-precedence grammar for LaTeX, plain and SymPy spelling.

The whole answer must be read: a token that is left over makes it unreadable, so nothing falls back to a leading
number. Redundant nesting is removed from the token list first, what remains may nest :data:`MAX_DEPTH` deep.

Loosest first: separators, relations, set operations and ratios, sums, ``mod``, products (also implicit), signs,
powers and postfixes. Not covered: integrals, sums and limits are kept whole (``big``), ``cases`` are not read.
"""

from __future__ import annotations

from . import nodes
from .nodes import Node, add, div, mul, neg, num
from .tokens import MATRICES, Token, tokenize
from .units import CURRENCY, MAGNITUDES, ORDINALS

MAX_DEPTH = 48
MAX_TREE = 150
"""Operators that may stand above one another; the comparing layers recurse."""

_RELATIONS = frozenset({"=", "<", ">", "<=", ">=", "!=", "~", "==", "in", "subset", "not"})
_SEPARATORS = frozenset({",", ";", "and", "or"})
_CLOSERS = {"(": (")", "]"), "[": (")", "]"), "\\{": ("\\}",), "{": ("}",), "<<": (">>", ">"), "lfloor": ("rfloor",), "lceil": ("rceil",)}
_OPENERS = frozenset({"(", "[", "{", "\\{", "<<", "lfloor", "lceil"})
_TWO_ARGUMENTS = frozenset({"binom", "root"})
_MANY_ARGUMENTS = frozenset({"gcd", "lcm", "max", "min"})
_APPLIED = frozenset("f g h F G H".split())
"""Symbols that are functions when a parenthesis follows: elsewhere ``a(b+c)`` is a product."""


class Unreadable(Exception):  # noqa: N818 - not an error of the caller: it never leaves this package
    """The text is not wholly within the grammar."""


class TooDeep(Unreadable):
    """Nested deeper than :data:`MAX_DEPTH`."""


def parse(text: str, limit: int) -> Node:
    """The tree of a normalised answer; raises :class:`Unreadable`. Linear in the length."""
    tokens = tokenize(text, limit)
    if not tokens:
        raise Unreadable(text[:80])
    parser = _Parser(_flatten(tokens))
    try:
        node = parser.list_of(())
    except RecursionError:
        raise TooDeep(text[:80]) from None
    if parser.at != len(parser.tokens) - 1:
        raise Unreadable(text[:80])
    if len(parser.tokens) > MAX_TREE and nodes.depth(node) > MAX_TREE:
        raise TooDeep(text[:80])
    return node


def _flatten(tokens: list[Token]) -> list[Token]:
    """Drop a pair of parentheses or braces that directly holds another of its kind."""
    stack: list[int] = []
    partner: dict[int, int] = {}
    for i, token in enumerate(tokens):
        if token.kind == "op":
            if token.value in ("(", "{"):
                stack.append(i)
            elif token.value in (")", "}") and stack:
                start = stack.pop()
                if (tokens[start].value == "(") == (token.value == ")"):
                    partner[start] = i
    dropped = {
        index
        for start, end in partner.items()
        if partner.get(start + 1) == end - 1 and tokens[start].value == tokens[start + 1].value
        for index in (start, end)
    }
    kept = [token for i, token in enumerate(tokens) if i not in dropped]
    kept.append(Token("end", ""))
    return kept


class _Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.at = 0
        self.depth = 0
        self.bars = 0
        self.in_set = False
        self.currency: str | None = None

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
            raise Unreadable(f"expected {values}")
        self.at += 1
        return value

    # -- lists and statements --------------------------------------------------------------------------------------

    def list_of(self, closers: tuple[str, ...]) -> Node:
        """Statements up to a closer (not taken) or the end."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise TooDeep
        items, separators = [self.statement()], []
        while (value := self.op()) in _SEPARATORS:
            kinds = []
            while self.op() in _SEPARATORS:
                kinds.append(self.op())
                self.at += 1
            if self.op() in closers or self.tokens[self.at].kind == "end":
                break
            separators.append(next((kind for kind in kinds if kind in ("and", "or")), value))
            items.append(self.statement())
        self.depth -= 1
        if len(items) == 1:
            return items[0]
        if ";" in separators and "," in separators:
            groups: list[list[Node]] = [[items[0]]]
            for separator, item in zip(separators, items[1:], strict=True):
                if separator == ",":
                    groups[-1].append(item)
                else:
                    groups.append([item])
            rows = [group[0] if len(group) == 1 else Node("list", tuple(group), (",",) * (len(group) - 1)) for group in groups]
            return Node("list", tuple(rows), (";",) * (len(rows) - 1))
        return Node("list", tuple(items), tuple(separators))

    def statement(self) -> Node:
        if self.op() in ("=", "~"):  # "= 72"
            self.at += 1
        starts = [self.at]
        parts, relations = [self.quantity()], []
        while (value := self.op()) in _RELATIONS:
            self.at += 1
            if value == "not":
                value = {"=": "!=", "in": ""}.get(self.op(), "")
                if value != "!=":
                    raise Unreadable("not")
                self.at += 1
            if value == "subset":
                value = "in"
            if value == "<<":
                raise Unreadable(value)
            relations.append(value)
            starts.append(self.at)
            parts.append(self.quantity())
        if not relations:
            return parts[0]
        if "in" in relations:
            if len(relations) != 1:
                raise Unreadable("chained membership")
            return Node("in", (parts[0], parts[1]))
        if len(parts) > 2 and all(relation in ("=", "~") for relation in relations):
            starts.append(self.at + 1)
            parts = [Node("worked", (part,)) if self._worked(starts[i], starts[i + 1] - 1) else part for i, part in enumerate(parts)]
        return Node("chain", tuple(parts), tuple(relations))

    def _worked(self, start: int, end: int) -> bool:
        """Whether a member of a chain shows working (``5 + 5``) rather than a value."""
        return any(token.kind == "op" and token.value in ("+", "-", "*") for token in self.tokens[start + 1 : end])

    # -- quantities: an expression with its unit -------------------------------------------------------------------

    def quantity(self) -> Node:
        if self.take("..."):
            return Node("text", (), "...")
        outer, self.currency = self.currency, None
        node = self.sets()
        node = self._suffix(node)
        if self.currency:
            node = Node("money", (node,), self.currency)
        self.currency = outer
        return node

    def _suffix(self, node: Node) -> Node:
        while True:
            token = self.tokens[self.at]
            if token.kind == "op":
                if token.value == "%":
                    self.at += 1
                    node = Node("percent", (node,))
                    continue
                if token.value in CURRENCY:
                    self.at += 1
                    node = Node("money", (node,), CURRENCY[token.value])
                    continue
                return node
            if token.kind == "unit":
                if token.value in MAGNITUDES:
                    self.at += 1
                    node = mul(num(MAGNITUDES[token.value]), node)
                    continue
                if token.value == "degree":
                    self.at += 1
                    node = Node("degree", (node,))
                    continue
                node = self._compound(Node("unit", (node,), self._phrase()))
                continue
            if token.kind == "word":
                return self._thing(node)
            return node

    def _phrase(self) -> str:
        """The words of a unit: ``cm ^2``, ``square feet``, ``km / h``."""
        words: list[str] = []
        while True:
            token = self.tokens[self.at]
            if token.kind == "unit":
                words.append(token.value)
                self.at += 1
            elif words and token == ("op", "^", token.spaced):
                self.at += 1
                power = self._argument()
                if power.op != "num" or power.value.q != 1 or abs(power.value) > 9:
                    raise Unreadable("unit power")
                words.append(f"^{power.value}")
            elif words and token.kind == "op" and token.value in ("/", "*") and self.tokens[self.at + 1].kind in ("unit", "sym"):
                following = self.tokens[self.at + 1]
                words.append("per" if token.value == "/" else "")
                words.append(following.value)
                self.at += 2
            elif words and token.kind == "word" and self.tokens[self.at - 1].kind == "unit" and words[-1] != "per":
                # "children tickets": a thing named by two words, of which the tokenizer knows the first
                self.at += 1
                words.append(token.value)
            else:
                return " ".join(word for word in words if word)

    def _compound(self, node: Node) -> Node:
        """``3 hours 20 minutes``."""
        if self.tokens[self.at].kind == "num":
            start = self.at
            second = self._suffix(self.power())
            if second.op == "unit":
                return Node("list", (node, second), ("+",))
            self.at = start
        return node

    def _thing(self, node: Node) -> Node:
        """Trailing words that the tables do not know; whether they may be dropped is for the comparison to say."""
        words = []
        while self.tokens[self.at].kind in ("word", "unit"):
            words.append(str(self.tokens[self.at].value))
            self.at += 1
        return Node("unit", (node,), "?" + " ".join(words))

    # -- expressions -----------------------------------------------------------------------------------------------

    def sets(self) -> Node:
        node = self.sum()
        while True:
            value = self.op()
            if value in ("cup", "cap", "\\"):
                self.at += 1
                node = Node({"cup": "union", "cap": "inter", "\\": "minus"}[value], (node, self.sum()))
            elif value == ":" and not self.in_set:
                parts = [node]
                while self.take(":"):
                    parts.append(self.sum())
                node = Node("ratio", tuple(parts))
            else:
                return node

    def sum(self) -> Node:
        terms = [self._signed()]
        while True:
            value = self.op()
            if value == "+":
                self.at += 1
                terms.append(self.product())
            elif value == "-":
                self.at += 1
                terms.append(neg(self.product()))
            elif value in ("pm", "mp"):
                self.at += 1
                terms.append(Node("pm", (self.product(),), 1 if value == "pm" else -1))
            elif value in ("mod", "pmod"):
                self.at += 1
                modulus = self.product()
                terms = [Node("mod", (add(terms), modulus))]
            elif value == "(" and self.tokens[self.at + 1] == ("op", "mod", self.tokens[self.at + 1].spaced):
                self.at += 2
                modulus = self.sum()
                self.expect(")")
                terms = [Node("mod", (add(terms), modulus))]
            else:
                return add(terms) if len(terms) > 1 else terms[0]

    def _signed(self) -> Node:
        value = self.op()
        if value in ("pm", "mp"):
            self.at += 1
            return Node("pm", (self.product(),), 1 if value == "pm" else -1)
        return self.product()

    def product(self) -> Node:
        node = self.factor()
        while True:
            token = self.tokens[self.at]
            kind, value = token.kind, token.value
            if kind == "op":
                if value == "*":
                    self.at += 1
                    node = mul(node, self.factor())
                elif value == "/":
                    self.at += 1
                    node = div(node, self.factor())
                elif value in _OPENERS and value != "\\{" or (value == "|" and not self.bars):
                    if value == "(" and self.tokens[self.at + 1].value == "mod":
                        return node
                    node = mul(node, self.power())
                else:
                    return node
            elif kind in ("sym", "const", "fn", "cmd", "begin"):
                if kind == "cmd" and value == "frac":
                    mixed = self._mixed(node)
                    if mixed is not None:
                        node = mixed
                        continue
                node = mul(node, self.power())
            elif kind == "num":
                node = self._adjacent(node)
            else:
                return node

    def _mixed(self, whole: Node) -> Node | None:
        """``2\\frac{1}{3}`` right after an integer literal."""
        before = self.tokens[self.at - 1]
        if before.kind != "num" or whole.op != "num" or whole.value.q != 1:
            return None
        start = self.at
        fraction = self.power()
        if fraction.op == "num" and 0 < fraction.value < 1 and self._literal(start):
            sign = -1 if whole.value < 0 else 1
            return Node("num", (), whole.value + sign * fraction.value)
        self.at = start
        return None

    def _literal(self, start: int) -> bool:
        return all(token.kind in ("num", "cmd") or token.value in ("{", "}") for token in self.tokens[start : self.at])

    def _adjacent(self, node: Node) -> Node:
        """A number right after an operand: ``2 2/3``, ``\\pi 2``; two bare numbers in a row are not an answer."""
        token, before = self.tokens[self.at], self.tokens[self.at - 1]
        following = self.tokens[self.at + 1]
        if before.kind == "num":
            after = self.tokens[self.at + 2]
            if following.value != "/" or after.kind != "num" or node.op != "num" or token.value.op != "num" or after.value.op != "num":
                raise Unreadable("adjacent numbers")
            top, bottom = token.value.value, after.value.value
            if not (node.value.q == top.q == bottom.q == 1 and 0 < top < bottom):
                raise Unreadable("improper mixed number")
            self.at += 3
            sign = -1 if node.value < 0 else 1
            return Node("num", (), node.value + sign * (top / bottom))
        if before.kind == "sym" and not token.spaced and token.value.op == "num":
            self.at += 1
            if node.op == "sym":
                return Node("sym", (), f"{node.value}_{token.value.value}")
            raise Unreadable("digit after a letter")
        return mul(node, self.power())

    def factor(self) -> Node:
        if self.take("-"):
            return neg(self.factor())
        if self.take("+"):
            return self.factor()
        if self.op() in CURRENCY:
            self.currency = CURRENCY[self.op()]
            self.at += 1
            return self.factor()
        return self.power()

    def power(self) -> Node:
        node = self.atom()
        while True:
            token = self.tokens[self.at]
            if token.kind != "op":
                return node
            value = token.value
            if value == "^":
                self.at += 1
                node = self._raise(node)
            elif value == "!":
                self.at += 1
                node = Node("fact2" if self.take("!") else "fact", (node,))
            elif value == "circ":
                self.at += 1
                node = Node("degree", (node,))
            elif value == "%" and self._operand_follows():
                self.at += 1
                node = div(node, num(100))
            elif value == "'":
                self.at += 1
            else:
                return node

    def _operand_follows(self) -> bool:
        token = self.tokens[self.at + 1]
        return token.kind in ("num", "sym", "const", "cmd", "fn") or (token.kind == "op" and token.value in ("*", "/", "("))

    def _raise(self, base: Node) -> Node:
        first, second = self.tokens[self.at], self.tokens[self.at + 1]
        braced = first.kind == "op" and first.value == "{"
        mark = second if braced else first
        if mark.value == "circ" or (mark.kind == "op" and mark.value == "'"):
            self.at += 1
            if braced:
                self.at += 1
                while self.take("'"):
                    pass
                self.expect("}")
            return Node("degree", (base,)) if mark.value == "circ" else base
        if mark.kind in ("word", "unit") and mark.value in ORDINALS:
            self.at += 1
            if braced:
                self.at += 1
                self.expect("}")
            return base
        sign = 1
        while self.op() in ("-", "+"):
            sign = -sign if self.op() == "-" else sign
            self.at += 1
        exponent = self._argument()
        if not braced and self.op() == "^":
            self.at += 1
            exponent = self._raise(exponent)
        if sign < 0:
            exponent = neg(exponent)
        return self._power(base, exponent)

    @staticmethod
    def _power(base: Node, exponent: Node) -> Node:
        if base.op == "num" and exponent.op == "num" and exponent.value.q == 1 and abs(exponent.value) <= 64:
            n = int(exponent.value)
            if (n >= 0 or base.value != 0) and abs(n) * int(base.value.height_bits()) < 2000 and not (n == 0 and base.value == 0):
                return Node("num", (), base.value**n)
        return Node("pow", (base, exponent))

    def _argument(self) -> Node:
        """A braced group or one atom."""
        if self.op() == "{":
            return self._group()
        return self.atom()

    # -- atoms -----------------------------------------------------------------------------------------------------

    def atom(self) -> Node:
        token = self.tokens[self.at]
        kind, value = token.kind, token.value
        if kind == "num" or kind == "const":
            self.at += 1
            node: Node = value
            return node
        if kind == "sym":
            return self._symbol(value)
        if kind == "op":
            if value in _OPENERS:
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
        raise Unreadable(str(value))

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
            if node.op == "num" or node.op == "sym" or self.op() in _RELATIONS:
                inside = "".join(_spell(token) for token in self.tokens[start : self.at])
                return Node("sym", (), name + inside)
            self.at = start
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
            raise Unreadable("label")
        return name

    def _group(self) -> Node:
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
            raise Unreadable("empty group")
        node = self.list_of(closers)
        if opener == "\\{" and self.op() in ("|", ":"):
            self.at += 1
            self.in_set = False
            node = self.list_of(closers)  # the condition says it all
            self.expect(*closers)
            self.bars, self.in_set = bars, in_set
            return node
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
            raise Unreadable("one-sided interval")
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
                base = self._argument()
            elif self.op() == "^":
                self.at += 1
                sign = self.take("-")
                power = self._argument()
                power = neg(power) if sign else power
        arguments = self._arguments(name)
        if name in _TWO_ARGUMENTS and len(arguments) != 2:
            raise Unreadable(name)
        if name not in _TWO_ARGUMENTS | _MANY_ARGUMENTS and len(arguments) != 1:
            if name != "log" or len(arguments) != 2:
                raise Unreadable(name)
            arguments, base = arguments[:1], arguments[1]
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
        return self._power(node, power)

    def _arguments(self, name: str) -> tuple[Node, ...]:
        if self.op() == "(":
            node = self._group()
            return node.args if node.op in ("tuple", "list") and (node.value == "()" or node.op == "list") else (node,)
        if self.take("-"):
            return (neg(self._arguments(name)[0]),)
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
            upper = self._argument()
            return div(upper, self._argument())
        if name == "binom":
            upper = self._argument()
            return Node("binom", (upper, self._argument()))
        if name == "sqrt":
            degree = num(2)
            if self.op() == "[":
                self.at += 1
                degree = self.sum()
                self.expect("]")
            return Node("root", (self._argument(), degree))
        if name == "bar":
            if self.op() == "{" and self.tokens[self.at + 1].kind == "sym":
                return Node("sym", (), "bar " + self._label())
            raise Unreadable("bar")
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
                upper = self._argument()
        return Node("big", (lower, upper, self.product()), name)

    def _matrix(self) -> Node:
        environment = self.tokens[self.at].value
        if environment.rstrip("*") not in MATRICES - {"cases", "aligned", "align", "vmatrix", "Vmatrix"}:
            raise Unreadable(environment)
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
            raise Unreadable("matrix")
        self.at += 1
        return Node("matrix", tuple(cell for row in rows for cell in row), (len(rows), len(rows[0])))


def _spell(token: Token) -> str:
    if token.kind == "num" and token.value.op == "num":
        return str(token.value.value)
    return str(token.value.value) if isinstance(token.value, Node) else str(token.value)

