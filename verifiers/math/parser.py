"""Tokens to a tree: one operator-precedence grammar for LaTeX, plain and SymPy spelling.

The whole answer must be read: a token that is left over makes it unreadable, so nothing falls back to a leading
number. Redundant nesting is removed from the token list first, what remains may nest `atoms.MAX_DEPTH` deep. No part
is read twice.

Loosest first: separators, relations, set operations and ratios, sums, `mod`, products (also implicit), signs,
powers and postfixes. Not covered: integrals, sums and limits are kept whole (`big`), `cases` are not read.
"""

from __future__ import annotations

from . import nodes
from .atoms import OPENERS, RELATIONS, Atoms, TooDeepError, UnreadableError
from .nodes import Node, add, div, mul, neg, num
from .numerals import Token
from .tokens import TooManyTokensError, tokenize
from .units import CURRENCY, MAGNITUDES, ORDINALS, POWER_WORDS

MAX_TREE = 150
"""Operators that may stand above one another; the comparing layers recurse."""

_LOOKAHEAD = 3
"""Tokens past the end that a rule may look at."""

_UNIT_WORDS = 8
_SIGNS = frozenset({"-", "+"})
_SEPARATORS = frozenset({",", ";", "and", "or"})


def parse(text: str, limit: int) -> Node:
    """The tree of a normalised answer; raises `UnreadableError`, or `TooDeepError` beyond a limit. Linear."""
    try:
        tokens = tokenize(text, limit)
    except TooManyTokensError:
        raise TooDeepError(text[:80]) from None
    if not tokens:
        raise UnreadableError(text[:80])
    parser = _Parser(_flatten(tokens))
    try:
        node = parser.list_of(())
    except RecursionError:
        raise TooDeepError(text[:80]) from None
    if parser.at != len(parser.tokens) - _LOOKAHEAD:
        raise UnreadableError(text[:80])
    if len(parser.tokens) > MAX_TREE and nodes.depth(node) > MAX_TREE:
        raise TooDeepError(text[:80])
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
    kept.extend([Token("end", "")] * _LOOKAHEAD)
    return kept


class _Parser(Atoms):
    """The levels above the atoms, loosest first."""

    # -- lists and statements --------------------------------------------------------------------------------------

    def list_of(self, closers: tuple[str, ...]) -> Node:
        """Statements up to a closer (not taken) or the end."""
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
        if len(items) == 1:
            return items[0]
        if ";" in separators and "," in separators:
            groups: list[list[Node]] = [[items[0]]]
            for separator, item in zip(separators, items[1:], strict=True):
                if separator == ",":
                    groups[-1].append(item)
                else:
                    groups.append([item])
            rows = [
                group[0] if len(group) == 1 else Node("list", tuple(group), (",",) * (len(group) - 1))
                for group in groups
            ]
            return Node("list", tuple(rows), (";",) * (len(rows) - 1))
        return Node("list", tuple(items), tuple(separators))

    def statement(self) -> Node:
        if self.op() in ("=", "~"):  # "= 72"
            self.at += 1
        starts = [self.at]
        parts, relations = [self.quantity()], []
        while (value := self.op()) in RELATIONS:
            self.at += 1
            if value == "not":
                value = {"=": "!=", "in": ""}.get(self.op(), "")
                if value != "!=":
                    raise UnreadableError("not")
                self.at += 1
            if value == "subset":
                value = "in"
            if value == "<<":
                raise UnreadableError(value)
            relations.append(value)
            starts.append(self.at)
            parts.append(self.quantity())
        if not relations:
            return parts[0]
        if "in" in relations:
            if len(relations) != 1:
                raise UnreadableError("chained membership")
            return Node("in", (parts[0], parts[1]))
        if len(parts) > 2 and all(relation in ("=", "~") for relation in relations):
            starts.append(self.at + 1)
            parts = [
                Node("worked", (part,)) if self._worked(starts[i], starts[i + 1] - 1) else part
                for i, part in enumerate(parts)
            ]
        return Node("chain", tuple(parts), tuple(relations))

    def _worked(self, start: int, end: int) -> bool:
        """Whether a member of a chain shows working (`5 + 5`) rather than a value."""
        return any(token.kind == "op" and token.value in ("+", "-", "*") for token in self.tokens[start + 1 : end])

    # -- quantities: an expression with its unit -------------------------------------------------------------------

    def quantity(self) -> Node:
        if self.take("..."):
            return Node("text", (), "...")
        outer, self.currency = self.currency, None
        node = self.sets()
        node = self._suffix(node)
        signed = self._money(node)
        self.currency = outer
        return signed

    def _money(self, node: Node) -> Node:
        return Node("money", (node,), self.currency) if self.currency else node

    def _suffix(self, node: Node) -> Node:
        while True:
            token = self.tokens[self.at]
            if token.kind == "op":
                if token.value == "%":
                    if node.op == "percent":
                        raise UnreadableError("percent of percent")
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
        """The words of a unit: `cm ^2`, `square feet`, `km / h`."""
        words: list[str] = []
        while True:
            token = self.tokens[self.at]
            if token.kind == "unit":
                words.append(token.value)
                self.at += 1
            elif words and token == ("op", "^", token.spaced):
                self.at += 1
                power = self.argument()
                if power.op != "num" or power.value.q != 1 or abs(power.value) > 9:
                    raise UnreadableError("unit power")
                words.append(f"^{power.value}")
            elif (
                words
                and token.kind == "op"
                and token.value in ("/", "*")
                and self.tokens[self.at + 1].kind in ("unit", "sym")
            ):
                following = self.tokens[self.at + 1]
                words.append("per" if token.value == "/" else "")
                words.append(following.value)
                self.at += 2
            elif words and token.kind == "word" and self.tokens[self.at - 1].kind == "unit" and words[-1] != "per":
                # "children tickets": a thing named by two words, of which the tokenizer knows the first
                self.at += 1
                words.append(token.value)
            else:
                if len(words) > _UNIT_WORDS or all(word in POWER_WORDS for word in words):
                    raise UnreadableError("unit")
                return " ".join(word for word in words if word)

    def _compound(self, node: Node) -> Node:
        """`3 hours 20 minutes`."""
        parts = [node]
        while self.tokens[self.at].kind == "num":
            number = self.power()
            if self.tokens[self.at].kind != "unit" or self.tokens[self.at].value in (*MAGNITUDES, "degree"):
                raise UnreadableError("a number after a unit")
            parts.append(Node("unit", (number,), self._phrase()))
        return node if len(parts) == 1 else Node("list", tuple(parts), ("+",))

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
            elif value in ("choose", "over"):
                self.at += 1
                node = Node("binom", (node, self.sum())) if value == "choose" else div(node, self.sum())
            elif value == ":" and not self.in_set:
                parts = [node]
                while self.take(":"):
                    parts.append(self.sum())
                node = Node("ratio", tuple(parts))
            else:
                return node

    def sum(self) -> Node:
        terms = [] if self.op() in ("pm", "mp") else [self.product()]
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
                terms = [Node("mod" if value == "mod" else "residue", (add(terms), modulus))]
            elif value == "(" and self.tokens[self.at + 1] == ("op", "mod", self.tokens[self.at + 1].spaced):
                self.at += 2
                modulus = self.sum()
                self.expect(")")
                terms = [Node("residue", (add(terms), modulus))]
            else:
                return add(terms) if len(terms) > 1 else terms[0]

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
                elif (value in OPENERS and value != "\\{") or (value == "|" and not self.bars and not self.in_set):
                    if value == "(" and self.tokens[self.at + 1].value == "mod":
                        return node
                    node = mul(node, self.power())
                else:
                    return node
            elif kind in ("sym", "const", "fn", "cmd", "begin"):
                node = self._mixed(node) if kind == "cmd" and value == "frac" else mul(node, self.power())
            elif kind == "num":
                node = self._adjacent(node)
            else:
                return node

    def _mixed(self, whole: Node) -> Node:
        r"""A fraction as a factor; right after an integer literal `2\frac{1}{3}` is a sum."""
        before, start = self.tokens[self.at - 1], self.at
        fraction = self.power()
        if (
            before.kind == "num"
            and whole.op == fraction.op == "num"
            and whole.value.q == 1
            and 0 < fraction.value < 1
            and self._literal(start)
        ):
            sign = -1 if whole.value < 0 else 1
            return Node("num", (), whole.value + sign * fraction.value)
        return mul(whole, fraction)

    def _literal(self, start: int) -> bool:
        return all(token.kind in ("num", "cmd") or token.value in ("{", "}") for token in self.tokens[start : self.at])

    def _adjacent(self, node: Node) -> Node:
        r"""A number right after an operand: `2 2/3`, `\pi 2`; two bare numbers in a row are not an answer."""
        token, before = self.tokens[self.at], self.tokens[self.at - 1]
        following = self.tokens[self.at + 1]
        if before.kind == "num":
            after = self.tokens[self.at + 2]
            if (
                following.value != "/"
                or after.kind != "num"
                or node.op != "num"
                or token.value.op != "num"
                or after.value.op != "num"
            ):
                raise UnreadableError("adjacent numbers")
            top, bottom = token.value.value, after.value.value
            if not (node.value.q == top.q == bottom.q == 1 and 0 < top < bottom):
                raise UnreadableError("improper mixed number")
            self.at += 3
            sign = -1 if node.value < 0 else 1
            return Node("num", (), node.value + sign * (top / bottom))
        if before.kind == "sym" and not token.spaced and token.value.op == "num":
            self.at += 1
            if node.op == "sym":
                return Node("sym", (), f"{node.value}_{token.value.value}")
            raise UnreadableError("digit after a letter")
        return mul(node, self.power())

    def factor(self) -> Node:
        negative = False
        while (value := self.op()) in _SIGNS or value in CURRENCY:
            negative ^= value == "-"
            self.currency = CURRENCY.get(value, self.currency)
            self.at += 1
        node = self.power()
        return neg(node) if negative else node

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
                node = self._primed(node)
            else:
                return node

    def _primed(self, node: Node) -> Node:
        """A name with the primes at hand; what is not a name would be a derivative."""
        primes = ""
        while self.take("'"):
            primes += "'"
        if node.op != "sym":
            raise UnreadableError("prime")
        return Node("sym", (), node.value + primes)

    def _operand_follows(self) -> bool:
        token = self.tokens[self.at + 1]
        return token.kind in ("num", "sym", "const", "cmd", "fn") or (
            token.kind == "op" and token.value in ("*", "/", "(")
        )

    def _raise(self, base: Node) -> Node:
        first, second = self.tokens[self.at], self.tokens[self.at + 1]
        braced = first.kind == "op" and first.value == "{"
        mark = second if braced else first
        if mark.value == "circ" or (mark.kind == "op" and mark.value == "'"):
            if mark.value == "'":
                self.at += braced
                base = self._primed(base)
            else:
                self.at += 1 + braced
                base = Node("degree", (base,))
            if braced:
                self.expect("}")
            return base
        if mark.kind in ("word", "unit") and mark.value in ORDINALS:
            self.at += 1
            if braced:
                self.at += 1
                self.expect("}")
            return base
        sign = 1
        while self.op() in _SIGNS:
            sign = -sign if self.op() == "-" else sign
            self.at += 1
        self.deeper()
        exponent = self.argument()
        if not braced and self.op() == "^":
            self.at += 1
            exponent = self._raise(exponent)
        self.depth -= 1
        if sign < 0:
            exponent = neg(exponent)
        return self.raised(base, exponent)
