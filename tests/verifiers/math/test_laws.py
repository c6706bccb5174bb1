r"""Laws of equivalence over generated expressions: reflexive, symmetric, blind to spelling, sharp about values."""

from __future__ import annotations

import pickle
import string
from dataclasses import replace
from fractions import Fraction
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewarden.core.errors import RecipeError
from rewarden.core.registry import create
from rewarden.verifiers.math import DEFAULT, MathOptions, any_of, canonical, compare, quick
from rewarden.verifiers.math.normalise import normalise
from rewarden.verifiers.math.options import MathOptions as Options

integers = st.integers(-(10**6), 10**6)
positive = st.integers(2, 99)


def _fraction(top: int, bottom: int) -> str:
    return f"\\frac{{{top}}}{{{bottom}}}"


@st.composite
def scalars(draw: st.DrawFn) -> str:
    """A closed or open expression in LaTeX."""
    leaf = st.one_of(
        integers.map(str),
        st.builds(_fraction, integers, positive),
        positive.map(lambda n: f"\\sqrt{{{n}}}"),
        st.sampled_from(["\\pi", "x", "y", "e", "3\\sqrt[3]{2}", "\\sin x", "\\log_2 7", "x^2", "i"]),
    )
    tree = st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.tuples(inner, inner).map(lambda p: f"\\left({p[0]}\\right)+\\left({p[1]}\\right)"),
            st.tuples(inner, inner).map(lambda p: f"({p[0]})({p[1]})"),
            st.tuples(inner, positive).map(lambda p: f"\\frac{{{p[0]}}}{{{p[1]}}}"),
        ),
        max_leaves=4,
    )
    return draw(tree)


@st.composite
def answers(draw: st.DrawFn) -> str:
    """An answer of any shape."""
    items = draw(st.lists(scalars(), min_size=2, max_size=3))
    joined = ", ".join(items)
    ends = sorted(draw(st.sets(integers, min_size=2, max_size=2)))
    return draw(
        st.sampled_from(
            [items[0], joined, f"({joined})", f"\\{{{joined}\\}}", f"[{ends[0]}, {ends[1]})", f"x \\le {ends[0]}",
             f"z = {items[0]}",
             f"\\begin{{pmatrix}} {items[0]} \\\\ {items[1]} \\end{{pmatrix}}", f"{ends[0]}\\%",
             f"{ends[0]}\\text{{ cm}}", "\\text{Monday}"]
        )
    )  # fmt: skip


TOKENS = [
    *"0123456789xyn+-*/^()[]{}\\_|=<>,;:!%$&'. ",
    *(
        "\\frac",
        "\\sqrt",
        "\\text{",
        "\\pm",
        "\\cup",
        "\\in",
        "\\left(",
        "\\right]",
        "\\{",
        "\\}",
        "\\log_2",
        "\\sin",
        "\\pi",
        "\\infty",
    ),
    *(
        "9^{9^9}",
        "\\sum_{k=1}^{3}",
        "\\begin{pmatrix}",
        "\\end{pmatrix}",
        "\\\\",
        "cm",
        " and ",
        "1e99",
        "²",
        "½",
        "−",
        "\u200b",
        "...",
        "e",
        "i",
    ),
]
NOISE = [
    lambda a: f"${a}$",
    lambda a: f"\\boxed{{{a}}}",
    lambda a: f"  {a} .",
    lambda a: f"\\displaystyle {a}",
    lambda a: a.replace("\\frac", "\\dfrac"),
    lambda a: a.replace(", ", ",\\; "),
    lambda a: a.replace("(", "\\left(").replace(")", "\\right)") if "\\left" not in a and "[" not in a else a,
    lambda a: a.replace("-", "−"),
    lambda a: a.translate(str.maketrans(string.digits, "０１２３４５６７８９")) if "\\" not in a else a,
]


@given(answers())
def test_every_answer_equals_itself(answer: str) -> None:
    """Reflexive: an answer meets the same text as reference."""
    match = quick(answer, answer)
    assert match is not None
    assert match.equal is True


@given(answers(), st.sampled_from(NOISE))
def test_noise_does_not_change_the_answer(answer: str, noise: object) -> None:
    """Delimiters, style, spacing and Unicode signs never matter, for the verdict or for the key."""
    noisy = noise(answer)  # type: ignore[operator]
    match = quick(answer, noisy)
    assert match is not None
    assert match.equal is True, noisy
    assert canonical(noisy) == canonical(answer)


@given(answers(), answers())
def test_verdicts_are_symmetric(first: str, second: str) -> None:
    """Which of two readable answers is the reference does not matter."""
    there, back = quick(first, second), quick(second, first)
    assert (there and there.equal) == (back and back.equal)


@given(answers(), answers())
def test_equal_keys_imply_equality(first: str, second: str) -> None:
    """The law of `canonical`: answers that share a key meet each other."""
    if canonical(first) == canonical(second):
        match = quick(first, second)
        assert match is not None
        assert match.equal is True


@given(integers, integers, positive, positive)
def test_rationals_are_exact(a: int, b: int, c: int, d: int) -> None:
    """Two fractions are equal exactly when their values are; keys agree with that."""
    first, second = _fraction(a, c), f"{b}/{d}" if b >= 0 else f"-{-b}/{d}"
    match = quick(first, second)
    assert match is not None
    same = Fraction(a, c) == Fraction(b, d)
    assert match.equal is same
    assert (canonical(first) == canonical(second)) is same


@given(integers, st.integers(0, 6))
def test_decimals_are_the_fractions_they_write(digits: int, places: int) -> None:
    """A decimal equals its fraction, and not the next decimal."""
    value = Fraction(digits, 10**places)
    text = (
        f"{'-' if digits < 0 else ''}{abs(digits) // 10**places}.{abs(digits) % 10**places:0{places}d}"
        if places
        else str(digits)
    )
    reference = f"\\frac{{{value.numerator}}}{{{value.denominator}}}"
    match, other = quick(reference, text), quick(reference, text + "1" if places else text + ".1")
    assert match is not None
    assert match.equal is True
    assert other is not None
    assert other.equal is False


@given(st.lists(integers, min_size=2, max_size=6, unique=True), st.randoms())
def test_lists_and_sets_have_no_order_and_tuples_do(values: list[int], random: object) -> None:
    """A permutation is the same list and set; as a tuple it is another one."""
    shuffled = list(values)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    first, second = ", ".join(map(str, values)), ", ".join(map(str, shuffled))
    for left, right in (("", ""), ("\\{", "\\}")):
        match = quick(left + first + right, left + second + right)
        assert match is not None
        assert match.equal is True
        assert canonical(left + first + right) == canonical(left + second + right)
    match = quick(f"({first})", f"({second})")
    assert match is not None
    assert match.equal is (values == shuffled)


@given(integers, integers, integers, st.integers(-50, 50).filter(bool))
def test_equations_may_be_scaled_and_turned(a: int, b: int, c: int, k: int) -> None:
    """Multiplying an equation by a number and swapping its sides changes nothing; another constant does."""
    if a == 0 or b == 0:
        return
    reference = f"{a}x+{b}y={c}".replace("+-", "-")
    scaled = f"{k * c}={k * a}x+{k * b}y".replace("+-", "-")
    wrong = f"{k * c + 1}={k * a}x+{k * b}y".replace("+-", "-")
    match, other = quick(reference, scaled), quick(reference, wrong)
    assert match is not None
    assert match.equal is True
    assert other is not None
    assert other.equal is False


@given(integers, integers, st.integers(-50, 50).filter(bool))
def test_inequalities_flip_with_the_sign(a: int, b: int, k: int) -> None:
    """`ax < b` times a negative number is `>`; as an interval it is the same set."""
    if a == 0:
        return
    reference = f"{a}x<{b}"
    relation, wrong = ("<", ">") if k > 0 else (">", "<")
    match, other = quick(reference, f"{k * a}x{relation}{k * b}"), quick(reference, f"{k * a}x{wrong}{k * b}")
    assert match is not None
    assert match.equal is True
    assert other is not None
    assert other.equal is False
    end = _fraction(b, a)
    interval = f"(-\\infty,{end})" if a > 0 else f"({end},\\infty)"
    as_set = quick(reference, interval)
    assert as_set is not None
    assert as_set.equal is True


@given(st.lists(st.integers(-9, 9), min_size=2, max_size=4), st.integers(1, 3))
def test_polynomials_are_compared_by_value(roots: list[int], factor: int) -> None:
    """A product of factors equals its expansion and differs from any other."""
    coefficients = [factor]
    for root in roots:
        shifted = [0, *coefficients]
        coefficients = [s - root * c for s, c in zip(shifted, [*coefficients, 0], strict=True)]
    expanded = "+".join(f"{c}x^{{{i}}}" for i, c in enumerate(coefficients)).replace("+-", "-")
    product = str(factor) + "".join(f"(x-{r})" if r >= 0 else f"(x+{-r})" for r in roots)
    match, other = quick(product, expanded), quick(product, expanded + "+1")
    assert match is not None
    assert match.equal is True
    assert canonical(product) == canonical(expanded)
    assert other is not None
    assert other.equal is False


@given(st.lists(st.sampled_from(TOKENS), max_size=30).map("".join))
def test_nothing_raises_and_normalising_settles(text: str) -> None:
    """Whatever was written, the layers in process answer; normalising twice is normalising once."""
    quick("7", text)
    quick(text, "7")
    canonical(text)
    once = normalise(text)
    assert normalise(once) == once


@pytest.mark.parametrize(
    ("reference", "answer"),
    [("1", "(" * 9_000), ("7", "\\boxed{" * 3_000), ("1", "-" * 10_001 + "1"), ("1", "^".join(["2"] * 1_900)),
     ("1", "1" + "!" * 9_000),
     ("7", "1 000 " * 3_000), ("7", "\\frac{1}{2} " * 3_000), ("7", "x_{" * 5_000),
     ("7", "the quick brown fox " * 5_000), ("7", "9" * 10**6),
     ("1", "\\frac{" * 400 + "1" + "}{1}" * 400), ("1", "+".join(["8000!"] * 100)),
     ("1", "\\pm(" * 45 + "1" + ")" * 45)],
)  # fmt: skip
def test_long_and_deep_answers_are_bounded(reference: str, answer: str) -> None:
    """Length, depth and repetition are not right, whatever layer says so; the caller reads none that is long."""
    match = compare(reference, answer)
    assert match.equal is False
    assert quick(reference, answer) in (None, match)


@pytest.mark.parametrize(
    "answer",
    [
        "".join(f"\\Gamma(1/{i})-\\Gamma(1/{i})+" for i in range(3, 900)) + "1+e^{-e^{8}}",
        ",".join(f"1-e^{{-e^{{8}}}}\\Gamma(1/{i})" for i in range(3, 900)),
        "+".join(f"{i}!" for i in range(1, 2999)),
        "+".join(f"\\frac{{1}}{{7^{{{9000 - i}}}}}" for i in range(1500)),
        ",".join(f"2^{{9^{{9^9}}}} \\mod {999999999999999989 - i}" for i in range(900)),
    ],
    ids=["gammas", "precision", "factorials", "denominators", "totients"],
)
def test_work_is_counted(answer: str) -> None:
    """Dear operations are stopped by the budget, far inside any deadline, with the same verdict each time."""
    reference = "1, 2" if "," in answer else "1"
    started = process_time()
    match = compare(reference, answer)
    assert process_time() - started < 2
    assert (match.equal, match.reason) == (False, "too_complex")
    assert compare(reference, answer) == match


def test_long_lists_of_equal_members_are_right() -> None:
    """A list of sixty surds in another order and another form is settled within the budget."""
    reference = ",".join(f"\\sqrt{{{i}}}+\\pi" for i in range(2, 62))
    answer = ",".join(f"\\pi+\\sqrt{{{i}}}" for i in reversed(range(2, 62)))
    match = quick(reference, answer)
    assert match is not None
    assert match.equal is True


def test_references_at_fault_have_no_verdict() -> None:
    """An empty, undefined or unreadable reference is None with `bad_reference`; the answer's faults are its own."""
    for reference in ("", "  ", "$$", "\\frac{1}{0}", "3x+", "(1,2"):
        match = quick(reference, "5")
        assert match is not None
        assert (match.equal, match.reason) == (None, "bad_reference"), reference
    for answer, reason in (
        ("", "no_answer"),
        ("\\text{}", "no_answer"),
        ("3x+", "unreadable"),
        ("\\frac{1}{0}", "undefined"),
    ):
        match = quick("5", answer)
        assert match is not None
        assert (match.equal, match.reason) == (False, reason), answer


def test_several_references_accept_any() -> None:
    """Any accepted answer is enough; a broken one among them counts only when none is met."""
    assert compare(["1/2", "2"], "0.5").equal is True
    assert compare(["1/2", "2"], "3").equal is False
    assert compare(["", "2"], "2").equal is True
    assert compare(["", "2"], "3").equal is None
    assert any_of([], lambda each: compare(each, "1")).reason == "bad_reference"


@pytest.mark.parametrize(
    ("options", "reference", "answer", "verdict"),
    [
        ({"percent": "required"}, "35\\%", "35", False), ({"percent": "required"}, "35\\%", "0.35", True),
        ({"units": "required"}, "12\\text{ cm}", "12", False),
        ({"units": "required"}, "12\\text{ cm}", "120\\text{ mm}", True),
        ({"degrees": "degrees"}, "90^\\circ", "\\frac{\\pi}{2}", False),
        ({"degrees": "radians"}, "90^\\circ", "90", False),
        ({"degrees": "radians"}, "90^\\circ", "\\frac{\\pi}{2}", True),
        ({"list_order": "given"}, "1, 2", "2, 1", False), ({"assignment": "required"}, "x=5", "5", False),
        ({"chain": "all"}, "11", "x=4+4=11", False), ({"interval_inequality": False}, "x>3", "(3,\\infty)", False),
        ({"decimal_comma": False}, "1000.99", "1000,99", False),
        ({"case_sensitive_text": True}, "\\text{Sunday}", "sunday", False),
        ({"constant_of_integration": False}, "x^2+C", "x^2+c", False),
        ({"relative_tolerance": 0.01}, "3.14", "3.15", True),
        ({"relative_tolerance": 0.01}, "\\pi", "3.14", True),
        ({"float_digits": None}, "\\frac{1}{12}", "0.0833333333333333", False),
        ({"float_digits": 4}, "\\frac{8}{3}", "2.6667", True),
    ],
)  # fmt: skip
def test_every_policy_changes_its_verdict(
    options: dict[str, object], reference: str, answer: str, verdict: bool
) -> None:
    """Each option turns the verdict that the default gives."""
    changed = replace(DEFAULT, **options)  # type: ignore[arg-type]
    match = quick(reference, answer, changed)
    assert match is not None
    assert match.equal is verdict
    default = quick(reference, answer)
    assert default is not None
    if options != {"degrees": "radians"} or not verdict:
        assert (
            default.equal is not verdict or options.get("percent") == "required" or options.get("units") == "required"
        )


@given(st.fractions(min_value=-100, max_value=100), st.fractions(min_value=-100, max_value=100), st.integers(0, 999))
def test_tolerance_is_a_share_of_the_reference(reference: Fraction, error: Fraction, permille: int) -> None:
    """A decimal is met when it misses the reference by no more than that share of the reference, on either side."""
    tolerance = permille / 1000
    answer = Fraction(round((reference + reference * error / 50) * 1000), 1000)
    text = f"{'-' if answer < 0 else ''}{abs(answer.numerator) * 1000 // answer.denominator / 1000:.3f}"
    assert Fraction(text) == answer
    match = quick(
        _fraction(reference.numerator, reference.denominator), text, MathOptions(relative_tolerance=tolerance)
    )
    assert match is not None
    assert match.equal is (abs(answer - reference) <= Fraction(tolerance) * abs(reference))


@pytest.mark.parametrize(
    "options",
    [{"relative_tolerance": value} for value in (-0.1, 1, 1.0, 5, float("inf"), float("nan"), True, "0.1", None)]
    + [{"float_digits": value} for value in (0, -3, 2.5, True, "12")]
    + [{name: value} for name in ("max_length", "max_nodes") for value in (0, -1, 10**6, 2.0, "9", None, True)]
    + [{name: value} for name in ("percent", "units", "assignment") for value in ("Required", "", None, True, 1)]
    + [{name: value} for name in ("degrees", "list_order", "chain") for value in ("any ", "optional", False, ["all"])]
    + [{name: value} for name in ("interval_inequality", "decimal_comma", "case_sensitive_text") for value in (1, "no")]
    + [{"constant_of_integration": None}, {"max_bits": 8}],
    ids=str,
)
def test_what_is_no_policy_is_refused_by_name(options: dict[str, object]) -> None:
    """A wrong word, type or range never grades: the recipe is refused, and told which option is wrong."""
    with pytest.raises(RecipeError, match=next(iter(options))):
        create("math", options)


def test_matches_and_options_travel() -> None:
    """Both pickle, hash and compare by value, as the pool and the caches need."""
    match = quick("1/2", "0.5")
    assert pickle.loads(pickle.dumps(match)) == match
    assert hash(MathOptions()) == hash(Options())
