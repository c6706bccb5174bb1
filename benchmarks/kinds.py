r"""Pairs of answers by kind, as many as wanted and no two alike: what math_kinds.py times.

A kind is a function of a number and a random generator; it gives a reference, an equal answer in another form where
the kind has one, and an answer that differs. What it writes is the answer alone; the caller puts it in a `\boxed{}`,
but for the two kinds of long reasoning, which are whole completions.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final, NamedTuple

from .data import Pair


class Answers(NamedTuple):
    """What a kind writes."""

    reference: str
    equal: str
    different: str


Kind = Callable[[int, random.Random], Answers]


def integer(i: int, rng: random.Random) -> Answers:
    """`123456`."""
    n = 1000 + 37 * i
    return Answers(str(n), str(n), str(n + rng.randint(1, 9)))


def fraction(i: int, rng: random.Random) -> Answers:
    r"""`\frac{a}{b}`, reducible or not."""
    a, b, k = 101 + i, 2 + i % 89, rng.randint(2, 9)
    return Answers(f"\\frac{{{a}}}{{{b}}}", f"\\dfrac{{{k * a}}}{{{k * b}}}", f"\\frac{{{a + 1}}}{{{b}}}")


def decimal(i: int, rng: random.Random) -> Answers:
    r"""`12.375` against `\frac{99}{8}`."""
    n = 8 * (11 + i) + rng.choice((1, 3, 5, 7))
    return Answers(str(n / 8), f"\\frac{{{n}}}{{8}}", str((n + 2) / 8))


def surd(i: int, rng: random.Random) -> Answers:
    r"""`a+b\sqrt{c}` in another order."""
    a, b, c = 2 + i, 2 + i % 7, rng.choice((2, 3, 5, 6, 7, 10, 11, 13))
    return Answers(f"{a}+{b}\\sqrt{{{c}}}", f"{b}\\sqrt{{{c}}}+{a}", f"{a}-{b}\\sqrt{{{c}}}")


def rationalised_surd(i: int, rng: random.Random) -> Answers:
    r"""`\frac{a}{\sqrt{c}}` against `\frac{a\sqrt{c}}{c}`."""
    a, c = 1 + i, rng.choice((2, 3, 5, 6, 7, 10, 11, 13))
    return Answers(
        f"\\frac{{{a}}}{{\\sqrt{{{c}}}}}",
        f"\\frac{{{a}\\sqrt{{{c}}}}}{{{c}}}",
        f"\\frac{{{a}\\sqrt{{{c}}}}}{{{c + 1}}}",
    )


def polynomial(i: int, rng: random.Random) -> Answers:
    """Factored against expanded."""
    p, q = 2 + i, rng.randint(2, 9)
    return Answers(
        f"(x+{p})(x-{q})", f"x^2+{p - q}x-{p * q}".replace("+-", "-"), f"x^2+{p - q}x+{p * q}".replace("+-", "-")
    )


def trig_identity(i: int, rng: random.Random) -> Answers:
    r"""`\sin^2(nx)+c` against `c+1-\cos^2(nx)`."""
    n, c = 2 + i, rng.randint(2, 9)
    return Answers(f"\\sin^2({n}x)+{c}", f"{c + 1}-\\cos^2({n}x)", f"{c + 2}-\\cos^2({n}x)")


def finite_set(i: int, rng: random.Random) -> Answers:
    r"""`\{a,b,c\}` in another order."""
    a, b, c = i + 1, i + 2 + rng.randint(1, 9), 2 * i + 20
    return Answers(f"\\{{{a},{b},{c}\\}}", f"\\{{{c},{a},{b}\\}}", f"\\{{{c},{a},{b + 1}\\}}")


def bare_list(i: int, rng: random.Random) -> Answers:
    """`a, b, c` in another order."""
    a, b, c = i + 1, i + 2 + rng.randint(1, 9), 2 * i + 20
    return Answers(f"{a}, {b}, {c}", f"{c}, {a}, {b}", f"{c}, {a}, {b + 1}")


def pair(i: int, rng: random.Random) -> Answers:
    """`(a, b)` with fractions."""
    a, b = i + 1, rng.choice((2, 4, 5, 8))
    return Answers(f"({a},\\frac{{1}}{{{b}}})", f"\\left({a}, {1 / b}\\right)", f"({a},{b})")


def interval(i: int, rng: random.Random) -> Answers:
    """`[a,b)`."""
    a, b = i - 50, i + rng.randint(1, 90)
    return Answers(f"[{a},{b})", f"\\left[{a}, {b}\\right)", f"({a},{b}]")


def matrix(i: int, rng: random.Random) -> Answers:
    """2x2 of integers."""
    a, b = i + 1, rng.randint(2, 99)
    body = f"{a} & {b} \\\\ {b + 1} & {2 * a}"
    return Answers(_matrix(body, "p"), _matrix(body, "b"), _matrix(body.replace(f"{b + 1} &", f"{b + 2} &"), "p"))


def matrix_of_fractions(i: int, rng: random.Random) -> Answers:
    """3x3 with fractions."""
    a, b = i + 2, rng.choice((2, 4, 5, 8))
    rest = f"{a} & 0 \\\\ 1 & 2 & {b} \\\\ -{a} & \\frac{{{a}}}{{3}} & 7"
    return Answers(
        *(_matrix(f"{first} & {rest}", "p") for first in (f"\\frac{{1}}{{{b}}}", str(1 / b), f"\\frac{{3}}{{{b}}}"))
    )


def _matrix(body: str, brackets: str) -> str:
    return f"\\begin{{{brackets}matrix}}{body}\\end{{{brackets}matrix}}"


def assignment(i: int, rng: random.Random) -> Answers:
    """`x = 5` against `5`."""
    n = i + 3
    return Answers(str(n), f"x = {n}", f"x = {n + rng.randint(1, 9)}")


def line_equation(i: int, rng: random.Random) -> Answers:
    """`y = mx + c` against `mx - y + c = 0`."""
    m, c = i + 2, rng.randint(1, 99)
    return Answers(f"y={m}x+{c}", f"{m}x-y+{c}=0", f"{m}x-y-{c}=0")


def circle_equation(i: int, rng: random.Random) -> Answers:
    """Centre and radius against a multiple of it."""
    a, b, r, k = i + 1, rng.randint(1, 9), rng.randint(2, 9), rng.randint(2, 5)
    square = f"(x-{a})^2+(y+{b})^2"
    return Answers(f"{square}={r * r}", f"{k}(x-{a})^2+{k}(y+{b})^2={k * r * r}", f"{square}={r * r + 1}")


def inequality(i: int, rng: random.Random) -> Answers:
    r"""`x > a` against itself turned around, or an interval."""
    a = i + 2
    return Answers(f"x>{a}", f"{a}<x" if rng.random() < 0.5 else f"({a},\\infty)", f"x\\ge {a}")


def complex_number(i: int, rng: random.Random) -> Answers:
    """`a+bi` in another order."""
    a, b = i + 2, rng.randint(2, 99)
    return Answers(f"{a}+{b}i", f"{b}i+{a}", f"{a}-{b}i")


_WORDS = "red blue even odd north south east west Monday Friday ellipse circle Evelyn".split()


def text(i: int, rng: random.Random) -> Answers:
    r"""`\text{...}`."""
    words = f"{_WORDS[i % 13]} {_WORDS[i // 13 % 13]} {_WORDS[i // 169 % 13]}"
    return Answers(f"\\text{{{words}}}", f"\\text{{{words.lower()}}}", f"\\text{{{words} or {rng.choice(_WORDS)}}}")


def choice_letter(i: int, rng: random.Random) -> Answers:
    r"""`\text{(C)}` for `C`; the reasoning before it differs from row to row, as there are only five letters."""
    right, wrong = rng.sample("ABCDE", 2)
    return Answers(
        right, *(f"Case {i} rules the others out. \\boxed{{\\text{{({letter})}}}}" for letter in (right, wrong))
    )


_STEP = "Next we note that {0} + {1} = {2}, so $x_{{{0}}} = \\frac{{{1}}}{{{2}}}$ and the bound of step {0} holds. "


def _reasoning(i: int) -> str:
    return "".join(_STEP.format(n, i, n + i) for n in range(1, 101))


def long_reasoning(i: int, rng: random.Random) -> Answers:
    """9 kB of reasoning, then a box."""
    n, steps = 1000 + i, _reasoning(i)
    return Answers(
        str(n),
        f"{steps}So the answer is $\\boxed{{{n}}}$.",
        f"{steps}So the answer is $\\boxed{{{n + rng.randint(1, 9)}}}$.",
    )


def long_reasoning_unboxed(i: int, rng: random.Random) -> Answers:
    """9 kB of reasoning, then the answer in words."""
    n, steps = 1000 + i, _reasoning(i)
    return Answers(
        str(n), f"{steps}The final answer is ${n}$.", f"{steps}The final answer is ${n + rng.randint(1, 9)}$."
    )


KINDS: Final[dict[str, tuple[Kind, float]]] = {
    "integer": (integer, 10),
    "fraction": (fraction, 10),
    "decimal": (decimal, 1),
    "surd": (surd, 5),
    "rationalised surd": (rationalised_surd, 5),
    "polynomial": (polynomial, 1),
    "trigonometric identity": (trig_identity, 1),
    "set": (finite_set, 5),
    "list": (bare_list, 1),
    "tuple": (pair, 5),
    "interval": (interval, 5),
    "matrix 2x2": (matrix, 5),
    "matrix 3x3, fractions": (matrix_of_fractions, 5),
    "x = 5 for 5": (assignment, 1),
    "line equation": (line_equation, 1),
    "circle equation": (circle_equation, 1),
    "inequality": (inequality, 1),
    "complex number": (complex_number, 1),
    "text": (text, 1),
    "choice letter": (choice_letter, 1),
    "9 kB, boxed": (long_reasoning, 1),
    "9 kB, no box": (long_reasoning_unboxed, 1),
}
"""Kinds by name, with how many times as fast as math-verify Rewarden must be."""

_WHOLE = (choice_letter, long_reasoning, long_reasoning_unboxed)


def pairs(name: str, count: int) -> list[tuple[Pair, bool]]:
    """`count` different rows of a kind, equal and different ones in turn, with what they are."""
    kind, _ = KINDS[name]
    rng = random.Random(name)
    rows = []
    for i in range(count):
        answers = kind(i, rng)
        equal = i % 2 == 0
        answer = answers.equal if equal else answers.different
        rows.append((Pair(answer if kind in _WHOLE else f"\\boxed{{{answer}}}", answers.reference), equal))
    return rows
