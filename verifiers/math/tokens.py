"""Split one normalised answer into tokens: LaTeX, plain and SymPy spelling through the same door.

One pass, linear in the length, no recursion. What cannot be a token ends it (`None`), because a half-read answer is
an unread one. Style and spacing commands are dropped here; words are told apart here (functions, units, variables).
"""

from __future__ import annotations

import re

from flint import fmpz

from . import fuel, vocabulary
from .nodes import Node, num
from .normalise import brace_pairs
from .numerals import Numerals, Token
from .units import CLOCK_WORDS, DEGREE_WORDS, MAGNITUDES, ORDINALS, PERCENT_WORDS, is_unit_word

_SPACES = re.compile(r"(?:\s|~|\\[,;:!> ]|\\(?:quad|qquad|thinspace)(?![A-Za-z]))+")
_COMMAND = re.compile(r"\\([A-Za-z]+|.)", re.DOTALL)
_LETTERS = re.compile(r"[A-Za-z]+")
_SUBSCRIPT = re.compile(r"\s*_\s*(?:(\{)|\\([A-Za-z]+)|(\d+|[A-Za-z]))")
_ENVIRONMENT = re.compile(r"\s*\{([A-Za-z]+\*?)\}")
_COLUMNS = re.compile(r"\s*\{[lcr|@{} ]*\}")
_GROUP = re.compile(r"\s*\{")
_DOMAIN = re.compile(r"\s*+\{?\s*+([A-Z])\s*+\}?")
_DIGITS = re.compile(r"\s*(\d+)")
_INNER_STYLE = re.compile(r"\\(?:text|mathrm|mathbf|textbf|mbox|rm)\b|[\s{}\\]")
_AMBIGUOUS = frozenset({"min", "sec"})
"""Functions where something follows, units where nothing does."""

_ARGUMENT = re.compile(r"\s*[\w({\\^]")
_SET = re.compile(r"\s*(?:\\left\s*)?(?:[(\[]|\\\{|\\mathbb)")
_TIMES_TEN = re.compile(r"\s+10\s*(?:\^|\*\*)")
"""`1.5 x 10^3`: the letter as a multiplication sign, with a space before the power of ten."""

_GLUED = re.compile(r"q?quad(?=[a-z])")
_PAIRS = ("**", "<=", ">=", "!=", "==", "=<", "=>")
_SINGLE = frozenset("+-*/^=<>()[]{}|!:,;%'&")
_PREFIXES = tuple(sorted("sin cos tan cot sec csc log ln sqrt exp arcsin arccos arctan".split(), key=len, reverse=True))
MATRICES = frozenset("matrix pmatrix bmatrix Bmatrix vmatrix Vmatrix smallmatrix array cases aligned align".split())


_COST = 1.0
"""Work counted for a token; see `fuel`."""


class TooManyTokensError(Exception):
    """More tokens than the limit."""


class Tokenizer(Numerals):
    """Reads one string; `run` gives the tokens or None."""

    def __init__(self, text: str, limit: int) -> None:
        super().__init__(text)
        self.limit = limit
        self._pairs: dict[int, int] | None = None
        self.braces: list[int] = []  # for each open brace: the arguments still wanted after it
        self.words_until: list[int] = []  # ends of \text{...} arguments

    def run(self) -> list[Token] | None:
        """The tokens, or None where something is not part of the language."""
        text, end = self.text, len(self.text)
        while self.at < end:
            if self.words_until and self.at >= self.words_until[-1]:  # the brace that closes \\text{
                self.at = self.words_until.pop() + 1
                continue
            match = _SPACES.match(text, self.at)
            if match:
                self.at, self.spaced = match.end(), True
                continue
            if len(self.out) > self.limit:
                raise TooManyTokensError
            fuel.spend(_COST)
            char = text[self.at]
            if char.isdecimal() or (char == "." and text[self.at + 1 : self.at + 2].isdecimal()):
                ok = self.number()
            elif char == "\\":
                ok = self.command()
            elif char.isalpha():
                ok = self.word()
            else:
                ok = self.sign(char)
            if not ok:
                return None
            self.spaced = False
        return self.out if not self.braces else None

    def _closing(self, start: int) -> int:
        """Index of the brace that closes the one at `start`, or -1."""
        if self._pairs is None:
            self._pairs = brace_pairs(self.text)
        return self._pairs.get(start, -1)

    # -- words -----------------------------------------------------------------------------------------------------

    def word(self) -> bool:
        match = _LETTERS.match(self.text, self.at)
        if match is None:  # a letter of another script
            return False
        run = match.group()
        in_text = bool(self.words_until)
        if self.want:
            self.want -= 1
            self.at += 1
            return self.emit("sym", run[0])
        self.at = match.end()
        after = self.text[self.at : self.at + 1]
        while after == "." and in_text and (match := _LETTERS.match(self.text, self.at + 1)):
            run += "." + match.group()
            self.at = match.end()
            after = self.text[self.at : self.at + 1]
        if run in CLOCK_WORDS and (in_text or "." in run or self._after_clock()) and self._after_operand():
            if after == ".":
                self.at += 1
            return self.emit("unit", run.lower().replace(".", ""))
        return self._run(run, in_text, after)

    def _after_clock(self) -> bool:
        return len(self.out) > 1 and self.out[-1].kind == "num" and self.out[-2].value == ":"

    def _run(self, run: str, in_text: bool, after: str) -> bool:
        lower = run.lower()
        operand = self._after_operand()
        if lower in ("and", "or"):
            return self.emit("op", lower)
        if run == "x" and operand and self.out[-1].kind == "num" and _TIMES_TEN.match(self.text, self.at):
            return self.emit("op", "*")
        if len(run) == 1:
            if in_text and operand and is_unit_word(run) and self.out[-1].kind != "op":
                return self.emit("unit", run)
            return self._symbol(run)
        if run in vocabulary.CONSTANTS:
            return self.emit("const", Node("const", (), vocabulary.CONSTANTS[run]))
        if operand and run in _AMBIGUOUS and (in_text or not _ARGUMENT.match(self.text, self.at)):
            return self.emit("unit", run)
        if run == "in" and _SET.match(self.text, self.at):
            return self.emit("op", "in")
        if run in vocabulary.FUNCTIONS and not (run in vocabulary.PLAIN_ONLY and after not in "({^"):
            if run in ("gamma", "Gamma") and after != "(":
                return self._symbol(run)
            return self.emit("fn", vocabulary.FUNCTIONS[run])
        if operand:
            if lower in PERCENT_WORDS:
                return self.emit("op", "%")
            if lower in DEGREE_WORDS:
                return self.emit("unit", "degree")
            if run in ORDINALS and self.out[-1].kind in ("num", "op"):
                return True
            if lower in MAGNITUDES:
                return self.emit("unit", lower)
            if is_unit_word(run):
                return self.emit("unit", run)
        if lower == "mod":
            return self.emit("op", "mod")
        if self.out and self.out[-1].kind == "unit" and lower in ("per", "of"):
            return self.emit("unit" if lower == "per" else "word", lower)
        if run in vocabulary.GREEK:
            return self._symbol(run)
        for joint in ("or", "and"):
            if operand and run.startswith(joint) and len(run) == len(joint) + 1:  # 1orW(x)
                self.at -= 1
                return self.emit("op", joint)
        if in_text or (lower in vocabulary.SMALL_WORDS and not run.isupper()):
            return self.emit("word", run)
        for name in _PREFIXES:
            if run.startswith(name) and len(run) - len(name) <= 1:
                self.at -= len(run) - len(name)
                return self.emit("fn", vocabulary.FUNCTIONS[name])
        if len(run) <= 4 or (run.isupper() and len(run) <= 6):
            return self._letters(run)
        if run.endswith("pi") and len(run) <= 6:
            return self._letters(run)
        return self.emit("word", run)

    def _letters(self, run: str) -> bool:
        """A product of one-letter variables; a trailing `or`/`and` glued to the next operand was handled before."""
        at = self.at
        self.at = at - len(run) + 1
        i = 0
        while i < len(run):
            if run.startswith("pi", i):
                self.emit("const", Node("const", (), "pi"))
                i += 2
            else:
                self.at = at - len(run) + i + 1
                self._symbol(run[i]) if i == len(run) - 1 else self.emit("sym", run[i])
                i += 1
            self.spaced = False
        self.at = max(self.at, at)
        return True

    def _symbol(self, name: str) -> bool:
        """A symbol with its subscript and primes."""
        match = _SUBSCRIPT.match(self.text, self.at)
        if match:
            if match.group(1):
                close = self._closing(match.end() - 1)
                if close < 0:
                    return False
                inner, self.at = self.text[match.end() : close], close + 1
            else:
                inner, self.at = match.group(2) or match.group(3), match.end()
            inner = _INNER_STYLE.sub("", inner)
            if not inner:
                return False
            name = f"{name}_{inner}"
        while self.text[self.at : self.at + 1] == "'":
            name += "'"
            self.at += 1
        return self.emit("sym", name)

    def _after_operand(self) -> bool:
        if not self.out:
            return False
        last = self.out[-1]
        return last.kind in ("num", "sym", "const", "unit") or (
            last.kind == "op" and last.value in (")", "]", "}", "|", "%", "circ", "!", "\\}")
        )

    # -- commands --------------------------------------------------------------------------------------------------

    def command(self) -> bool:
        match = _COMMAND.match(self.text, self.at)
        if match is None:
            self.at += 1
            return True
        name = match.group(1)
        self.at = match.end()
        glued = _GLUED.match(name)
        if glued:  # \\quadx: a spacing command that lost its space
            self.at -= len(name) - glued.end()
            return True
        if self.want and name not in vocabulary.SKIPPED:
            self.want -= 1
        if not name.isalpha():
            return self._escaped(name)
        if name in vocabulary.SKIPPED:
            if name in ("left", "right") and self.text[self.at : self.at + 1] == ".":
                self.at += 1
            return True
        if name in ("frac", "dfrac", "tfrac", "cfrac", "nicefrac", "sfrac", "binom", "dbinom", "tbinom"):
            self.want = 2
            return self.emit("cmd", "binom" if "binom" in name else "frac")
        if name == "sqrt":
            return self.emit("cmd", "sqrt")
        if name in vocabulary.SKIPPED_WITH_ARGUMENT:
            return self._skip_argument()
        if name in vocabulary.TRANSPARENT:
            if name in vocabulary.TEXT:
                return self._text()
            return True
        if name in ("overline", "bar", "underbar"):
            return self.emit("cmd", "bar")
        if name in ("begin", "end"):
            match = _ENVIRONMENT.match(self.text, self.at)
            if match is None or match.group(1).rstrip("*") not in MATRICES:
                return False
            self.at = match.end()
            columns = _COLUMNS.match(self.text, self.at) if match.group(1) == "array" and name == "begin" else None
            if columns:
                self.at = columns.end()
            return self.emit(name, match.group(1))
        return self._named(name)

    def _named(self, name: str) -> bool:
        if name in ("mathbb", "Bbb"):
            match = _DOMAIN.match(self.text, self.at)
            if match is None or match.group(1) not in vocabulary.DOMAINS:
                return False
            self.at = match.end()
            return self.emit("domain", vocabulary.DOMAINS[match.group(1)])
        if name in vocabulary.NAMED_SETS:
            return self.emit("domain", "empty")
        if name == "pi":
            return self.emit("const", Node("const", (), "pi"))
        if name in ("sum", "prod", "int", "lim", "iint", "iiint", "oint"):
            return self.emit("cmd", name)
        if name == "not":
            return self.emit("op", "not")
        if name in vocabulary.GREEK and name not in vocabulary.OPERATORS:
            return self._symbol("\\" + name if name in ("gamma", "Gamma", "Pi") else name)
        if name in vocabulary.OPERATORS:
            return self.emit("op", vocabulary.OPERATORS[name])
        if name in vocabulary.CONSTANTS:
            return self.emit("const", Node("const", (), vocabulary.CONSTANTS[name]))
        if name in vocabulary.FUNCTIONS:
            return self.emit("fn", vocabulary.FUNCTIONS[name])
        return False

    def _escaped(self, char: str) -> bool:
        if char in "{}":
            self.brackets += 1 if char == "{" else -1
            return self.emit("op", "\\" + char)
        if char in "%$&":
            return self.emit("op", char)
        if char == "\\":
            return self.emit("op", "newline")
        if char == "|":
            return self.emit("op", "||")
        return char == "_"

    def _skip_argument(self) -> bool:
        match = _GROUP.match(self.text, self.at)
        if match is None:
            return False
        close = self._closing(match.end() - 1)
        if close < 0:
            return False
        self.at = close + 1
        return True

    def _text(self) -> bool:
        match = _GROUP.match(self.text, self.at)
        if match is None:
            return True
        close = self._closing(match.end() - 1)
        if close < 0:
            return False
        self.at = match.end()
        self.words_until.append(close)
        return True

    # -- signs -----------------------------------------------------------------------------------------------------

    def sign(self, char: str) -> bool:
        pair = self.text[self.at : self.at + 2]
        if pair in _PAIRS:
            self.at += 2
            return self.emit("op", {"**": "^", "=<": "<=", "=>": ">="}.get(pair, pair))
        self.at += 1
        if char in "([":
            self.brackets += 1
        elif char in ")]":
            self.brackets -= 1
        elif char == "{":
            self.braces.append(max(0, self.want - 1))
            self.want = 0
        elif char == "}":
            if not self.braces:
                return False
            self.emit("op", char)
            self.want = self.braces.pop()
            return True
        elif char == "_":
            return self._limit()
        elif char == "$":
            return self.emit("op", "$")
        elif char == "." and self.text[self.at : self.at + 2] == "..":
            self.at += 2
            return self.emit("op", "...")
        elif char == "." and self.words_until:
            return True
        elif char not in _SINGLE:
            return False
        return self.emit("op", char)

    def _limit(self) -> bool:
        """The subscript of `log` or a big operator; LaTeX takes one digit, plain text takes the run."""
        if not self.out or self.out[-1].kind not in ("fn", "cmd"):
            return False
        self.emit("op", "_")
        match = _DIGITS.match(self.text, self.at)
        if match:
            run, after = match.group(1), self.text[match.end() : match.end() + 1]
            size = (
                len(run)
                if run == "10" or after in ("(", " ", "^") or self.text.startswith("\\left", match.end())
                else 1
            )
            self.emit("num", num(fmpz(run[:size])))
            self.at = match.end() - len(run) + size
        return True


def tokenize(text: str, limit: int) -> list[Token] | None:
    """Tokens of a normalised answer; None when it cannot be read. Raises `TooManyTokensError` beyond `limit`."""
    return Tokenizer(text, limit).run()
