"""No text stalls the process that reads it: nesting, long runs and repeated parts cost a bounded, counted amount."""

from __future__ import annotations

import gc
import random
from functools import _lru_cache_wrapper
from itertools import pairwise
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewarden.core.rollout import Rollout
from rewarden.verifiers.math import Match, canonical, compare, fuel, quick
from rewarden.verifiers.math.compare import IN_PROCESS, _bounded
from rewarden.verifiers.math.options import DEFAULT
from rewarden.verifiers.math.scorer import MathScorer

SECONDS = 2.0
"""Far above what is needed (0.2), far below what doubling or squaring would take."""

WRAPS = [
    ("f(", ")"), ("f(x+", ")"), ("g(h(x)+", ")"), ("(", ")"), ("(1+", ")"), ("{", "}"), ("\\{1,", "\\}"),
    ("[1,", "2]"), ("\\frac{", "}{3}"), ("2\\frac{", "}{3}"), ("2\\frac{1}{", "}"), ("\\sqrt{", "}"),
    ("\\sqrt[3]{x+", "}"), ("2^{", "}"), ("x_{", "}"), ("\\text{", "}"), ("\\text{a ", "}"), ("\\boxed{", "}"),
    ("$\\boxed{", "}$"), ("\\pm(1+", ")"), ("|1+", "|"), ("\\lfloor x+", "\\rfloor"), ("\\sin(", ")"), ("\\sin ", ""),
    ("\\log_{", "}2"), ("(1+", ")!"), ("-", ""), ("(", "^\\circ)"), ("", "^\\circ"), ("(", "\\%)"), ("", "\\%"),
    ("", "!"), ("\\binom{", "}{2}"), ("(x=", ")"), ("\\sum_{k=1}^{9}(k+", ")"), ("\\gcd(4,", ")"), ("(7\\mod ", ")"),
    ("(1:", ")"), ("((0,9)\\cap ", ")"), ("(", ")^{24}"),
    ("\\begin{vmatrix}", "&y&1\\\\1&y&z\\\\z&1&x\\end{vmatrix}"), ("\\begin{pmatrix}", "&y\\\\1&z\\end{pmatrix}"),
    ("\\begin{pmatrix}x&y\\\\z&1\\end{pmatrix}", ""),
]  # fmt: skip
RUNS = [
    *"\\ (){}[]-+!^_.,;:19xaei$%|&=<>~'\"*/?", "\\ ", "\\,", "\\{", "\\}", "\\\\", "\\text", "\\text{", "\\boxed{",
    "\\sin", "\\pi", "\\pm", "\\left(", "1, ", "1 000 ", "1_{", "x_{1}", "^{2}", "^\\circ", "\\%", "1!", "x+",
    "1 or ", "x<1,", "x=1;", "a=b=", "\\frac12", "2\\frac12 ", "\\begin{", "\\begin{pmatrix}", "&1", "\\cup(1,2)",
    "(1,2),", "1 hour ", "apples ", "1A", "A_{16}", "\\mathbb{", "\\mathbb ", "\\log_2", "0.3...", "\\overline{1}",
    "²", "₂", "½", "\u200b", "\ufdfa", "\u1369", "é", "a.é", "**", "(A) ", "\n(A) x", "x\\in R", "|x|", "f(", "f(x)",
    "f(x)=", "min ", "\\color{", "\\dot", "a.m", "\\$1", "€", "\\angle A", "1 x 10^", "\\pm1,", "\\sqrt{2},",
    "x^2>3,",
]  # fmt: skip
ENDS = ["", "1", "x", "}", ")", "1}", "\\frac", "\\mathbb", "1_{", "\\text{", "\\boxed{", "x=", "\\{", "\\}", "$", " 7"]
REFERENCES = ["7", "x", "x^2=4", "(1,2)", "\\{\\sqrt{2},1\\}", "x<7", "5\\text{ cm}", "\\text{a}", "90^\\circ", "50\\%"]


def timed(reference: str, answer: str) -> None:
    """Comparing (either way) and keying end soon, and raise nothing."""
    started = process_time()
    quick(reference, answer)
    quick(answer, reference)
    canonical(answer)
    assert process_time() - started < SECONDS


@given(
    st.lists(st.sampled_from(WRAPS), min_size=1, max_size=3),
    st.integers(1, 60),
    st.sampled_from(["1", "x", "a+b", "1,2", "x=1"]),
    st.sampled_from(REFERENCES),
)
def test_nested_parts_are_read_once(wraps: list[tuple[str, str]], levels: int, core: str, reference: str) -> None:
    """The cost of nesting grows with the length, never with a power of the depth."""
    answer = core
    for level in range(levels):
        left, right = wraps[level % len(wraps)]
        if len(answer) + len(left) + len(right) > IN_PROCESS:
            break
        answer = left + answer + right
    timed(reference, answer)
    timed("x=" + reference, "x=" + answer)


@pytest.mark.parametrize(
    "wrap", [("f(x+", ")"), ("g(", "+1)"), ("2\\frac{", "}{3}"), ("3\\frac{1}{", "}"), ("\\sqrt{2+", "}")]
)
def test_what_is_read_once_is_read_at_any_depth(wrap: tuple[str, str]) -> None:
    """Forty levels take forty times the work of one: well within the budget, so the answer is still right."""
    left, right = wrap
    reference = left * 40 + "x" + right * 40
    match = quick(reference, reference.replace("x", " x ") + "+0")
    assert match is not None
    assert match.equal is True


@given(st.sampled_from(ENDS), st.lists(st.sampled_from(RUNS), min_size=1, max_size=2), st.sampled_from(ENDS))
def test_long_runs_are_read_once(start: str, run: list[str], end: str) -> None:
    """A run of anything, of any length, inside any answer, costs time in its length."""
    unit = "".join(run)
    timed("7", start + (unit * IN_PROCESS)[: IN_PROCESS - len(start) - len(end)] + end)


@pytest.mark.parametrize("run", RUNS)
def test_longer_answers_are_left_to_a_worker(run: str) -> None:
    """What `quick` does not read in the caller is still read once, in linear time, by the bounded layers."""
    for start, end in (("", ""), ("", "a"), ("1", "7"), ("1_{", "-"), ("\\mathbb", "-"), ("\\{", "\\}")):
        answer = start + (run * 30_000)[:30_000] + end
        match = quick("\\sqrt{2}", answer)
        assert match is None or match.layer == "string" or len(answer.strip()) <= IN_PROCESS
        started = process_time()
        _bounded("\\sqrt{2}", answer, DEFAULT)
        assert process_time() - started < SECONDS


@pytest.mark.parametrize("length", [3_000, 30_000, 300_000])
def test_what_needs_no_reading_is_settled_at_any_length(length: int) -> None:
    """The same text, and plain integers; beyond the longest text that is read, the answer is too complex."""
    digits, text = "9" * length, "x+" * (length // 2) + "1"
    assert quick(text, f" {text}\n") == compare(text, text)
    assert quick(digits, "0" + digits) == Match(True, "string", None, "", "9" * 200, "0" + "9" * 199)
    for reference, answer in (
        (digits, digits[:-1] + "8"),
        ("7", digits),
        ("-\\frac{1}{2}", digits),
        (digits, digits + "9"),
    ):
        match = quick(reference, answer)
        assert match is not None
        assert match.equal is False
    match = quick("7", text)
    if length > DEFAULT.max_length:
        assert match is not None
        assert (match.equal, match.reason) == (False, "too_complex")
    else:
        assert match is None
    assert (canonical(text) == canonical(text + " ")) is True
    assert canonical(text) != canonical(text + "1")


CACHES = [
    each
    for each in gc.get_objects()
    if isinstance(each, _lru_cache_wrapper) and each.__module__.startswith("rewarden.verifiers.math")
]


def clear_caches() -> None:
    """Empty every cache of the package."""
    for each in CACHES:
        each.cache_clear()


PAIRS = [
    ("7", "x=\\sqrt{49}=7"), ("x=\\sqrt{2}=2^{1/2}=1.5", "\\sqrt2"), ("\\sqrt{2},\\sqrt{3}", "\\sqrt3,\\sqrt2"),
    ("x^2=\\sqrt{4}=2=\\sqrt{4}", "2"), ("f(x)=\\sin x", "\\sin(x)"), ("5=\\sqrt{25}", "5"),
    ("\\sin^2x+\\cos^2x", "1"), ("(1,2)\\cup(3,4)", "(3,4)\\cup(1,2)"), ("1000,99", "1000.99"), ("1,234", "1.234"),
    ("\\frac{1}{3}", "0.333333333333333"), ("3\\text{ h }20\\text{ min}", "200\\text{ minutes}"),
    ("x<\\sqrt{2}", "(-\\infty,\\sqrt2)"), ("all real numbers", "\\mathbb{R}"),
    ("\\begin{pmatrix}1&2\\\\3&x\\end{pmatrix}\\begin{pmatrix}a&b\\\\c&d\\end{pmatrix}", "1"),
    ("2^{9^{9}} \\mod 1000", "5"), ("\\sqrt{2}=\\sqrt{3}=1", "1"), ("1000.99", "1000,99"),
    ("12345678901234.5", "12345678901234.50"),
]  # fmt: skip


@pytest.mark.parametrize("budget", [4, 10, 20, 30, 50, 80, 120, 200, 400, 1_000])
def test_a_verdict_depends_on_the_pair_alone(budget: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever was asked before, in whatever order, and however small the budget: the same verdict, nothing raised."""
    monkeypatch.setattr(fuel, "BUDGET", budget)
    pairs = PAIRS + [(answer, reference) for reference, answer in PAIRS]
    pairs += [(first[0], second[1]) for first, second in pairwise(PAIRS)]
    cold, keys = [], []
    for pair in pairs:
        clear_caches()
        cold.append(quick(*pair))
        clear_caches()
        keys.append(canonical(pair[1]))
    for seed in range(3):
        order = list(range(len(pairs)))
        random.Random(seed).shuffle(order)
        for i in order:
            assert quick(*pairs[i]) == cold[i], pairs[i]
            assert canonical(pairs[i][1]) == keys[i], pairs[i]
    clear_caches()


def test_who_cannot_be_read_within_the_budget_is_at_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reference that takes too much to read is unusable, an answer that does is wrong; equal texts are right."""
    clear_caches()
    dear = "x=" + "=".join(f"\\sqrt{{{i}}}" for i in range(2, 40))
    monkeypatch.setattr(fuel, "BUDGET", 100.0)
    match = quick(dear, "7")
    assert match is not None
    assert (match.equal, match.reason) == (None, "bad_reference")
    match = quick("7", dear)
    assert match is not None
    assert (match.equal, match.reason) == (False, "too_complex")
    match = quick(dear, f"${dear}$")
    assert match is not None
    assert match.equal is True
    clear_caches()


def test_many_alternatives_are_left_to_a_worker() -> None:
    """Several forms of one answer are compared in the caller while they are together as short as one may be."""
    scorer = MathScorer()
    forms = [rf"\sqrt{{{2 * i * i}}}/{i}" for i in range(1, 400)]
    for count, settled in ((20, True), (399, False)):
        completion = " or ".join(rf"\boxed{{{form}}}" for form in forms[:count])
        rollout = Rollout(id="1", prompt="", completion=completion, reference=r"\sqrt{2}")
        verdict = scorer.quick(rollout)
        assert (verdict is not None) is settled
        assert scorer.score([rollout], [{}])[0].outcome == "correct"
