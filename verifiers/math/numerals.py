r"""How numbers are written: decimals, groups of three, repeating decimals, exponents, other bases.

Part of the tokenizer (`tokens`), which calls it where a number starts.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from flint import fmpq, fmpz

from .nodes import Node, num


class Token(NamedTuple):
    """`kind` is one of num, sym, const, fn, op, cmd, unit, word; `spaced`: white space stood before it."""

    kind: str
    value: Any
    spaced: bool = False


_NUMBER = re.compile(r"(\d*)(?:\.(\d+)|\.(?=\\(?:overline|bar|dot|overdot)|\(\d+\)))?")
_GROUPS = re.compile(r"(?:,\s?\\!\s?|\{,\}|,)\d{3}(?!\d)")
_THIN = re.compile(r"(?:\\,|\\ |~| |\\;|\\:|\\!)\d{3}(?!\d)")
_EXPONENT = re.compile(r"[eE]([+-]?\d+)(?![\d.])(?![A-Za-z(])")
_REPEAT = re.compile(r"\s*(?:\\(?:overline|bar|dot|overdot)\s*(?:\{(\d+)\}|(\d))|\((\d+)\))")
_DOTS = re.compile(r"\s*(?:\.\.\.+|\\(?:ldots|dots|cdots)(?![A-Za-z]))")
_BASE = re.compile(r"_\s*+(?:\{\s*+(?:\\text\s*+\{)?\s*+([A-Za-z0-9]++)\s*+\}?\s*+\}|(\d++))")
_DIGITS_IN_BASE = re.compile(r"(?=\d{1,60}+[A-Z])([0-9A-Z]{1,120}+)_\{?((?:1[1-9]|2\d|3[0-6]))\}?")
_BASE_WORDS = {
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
    "twelve": 12,
}
_DECIMALS = re.compile(r"\.(\d+)")
_LAST_DOT = re.compile(r"(\d*)\\(?:dot|overdot)\s*\{?(\d)\}?")


class Numerals:
    """The cursor over the text, and the reading of one number at it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.out: list[Token] = []
        self.spaced = False
        self.brackets = 0  # open ( [ \\{ : commas inside separate, they do not group digits
        self.want = 0  # how many single-character arguments of \\frac may follow right here

    def emit(self, kind: str, value: Any) -> bool:
        """Add a token; always True, as what was read."""
        self.out.append(Token(kind, value, self.spaced))
        return True

    def number(self) -> bool:
        """Read the number here; False where it is none."""
        text = self.text
        if self.want:  # \frac13
            if text[self.at] == ".":
                return False
            self.want -= 1
            self.emit("num", num(int(text[self.at])))
            self.at += 1
            return True
        match = _DIGITS_IN_BASE.match(text, self.at)
        if match:  # 1A_{16}
            self.at = match.end()
            return self.emit("num", Node("based", (), (match.group(1), int(match.group(2)))))
        match = _NUMBER.match(text, self.at)
        assert match is not None
        whole, decimals = match.group(1), match.group(2)
        at = match.end()
        if decimals is None and text[at - 1] != "." and len(whole) <= 3 and whole[0] != "0":
            whole, at = self._grouped(whole, at)
            tail = _DECIMALS.match(text, at) if at != match.end() else None
            if tail:
                decimals, at = tail.group(1), tail.end()
        self.at = at
        if decimals is not None or text[at - 1] == ".":
            repeated = self._repeating(whole or "0", decimals or "")
            if repeated is not None:
                return self.emit("num", repeated)
            if decimals is None:
                return False
        value = fmpq(fmpz(whole or "0"))
        if decimals:
            value += fmpq(fmpz(decimals), fmpz(10) ** len(decimals))
        match = _EXPONENT.match(text, self.at)
        if match:
            self.at = match.end()
            power = int(match.group(1)) if len(match.group(1)) < 4000 else None
            if power is None:
                return False
            node = Node("mul", (num(value), Node("pow", (num(10), num(fmpz(power))))))
            if abs(power) <= 400:
                node = num(value * fmpq(10) ** power)
            return self.emit("num", node)
        match = _BASE.match(text, self.at)
        if match:
            self.at = match.end()
            base = match.group(1) or match.group(2)
            if base.lower() in _BASE_WORDS:
                base = str(_BASE_WORDS[base.lower()])
            if not base.isdecimal() or len(base) > 2 or not 2 <= int(base) <= 36:
                return False
            places = "." + decimals.rstrip("0") if decimals and decimals.rstrip("0") else ""
            return self.emit("num", Node("based", (), ((whole.lstrip("0") or "0") + places, int(base))))
        return self.emit("num", Node("num", (), value))

    def _grouped(self, whole: str, at: int) -> tuple[str, int]:
        """Digits grouped in threes by commas or thin spaces; inside brackets a comma separates."""
        text, start = self.text, at
        for pattern in (_GROUPS, _THIN):
            digits, at, before = whole, start, start
            while match := pattern.match(text, at):
                if (
                    pattern is _GROUPS
                    and self.brackets
                    and match.group()[:2] not in ("{,", ",\\", ", ")
                    and match.group()[1].isdigit()
                ):
                    break
                digits += match.group()[-3:]
                before, at = at, match.end()
            if at != start:
                if pattern is _THIN and text[at : at + 1] == "/":  # a mixed number: 4 100/3
                    return digits[:-3], before
                return digits, at
        return whole, start

    def _repeating(self, whole: str, decimals: str) -> Node | None:
        text = self.text
        match = _REPEAT.match(text, self.at)
        period = ""
        if match:
            period = next(group for group in match.groups() if group)
            self.at = match.end()
            if "dot" in match.group():  # \dot{1}4\dot{2}: from the first dotted digit to the last
                tail = _LAST_DOT.match(text, self.at)
                if tail:
                    period += tail.group(1) + tail.group(2)
                    self.at = tail.end()
        else:
            dots = _DOTS.match(text, self.at) if decimals else None
            if not dots:
                return None
            size = next((n for n in (1, 2, 3, 4, 6) if decimals.endswith(decimals[-n:] * (3 if n == 1 else 2))), 0)
            if not size or (len(decimals) < 2 * size):
                return None
            self.at = dots.end()
            period = decimals[-size:]
        shift = fmpz(10) ** len(decimals)
        value = fmpq(fmpz(whole + decimals), shift)
        value += fmpq(fmpz(period), shift * (fmpz(10) ** len(period) - 1))
        return Node("num", (), value)
