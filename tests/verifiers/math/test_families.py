r"""Families of answers, named sets, and structures with two spellings."""

from __future__ import annotations

from itertools import permutations

import pytest

from rewarden.verifiers.math import canonical, quick

FAMILIES = [
    r"{0}\pi", r"x=\frac{{\pi}}{{2}}+2{0}\pi", r"x=\pm\frac{{\pi}}{{3}}+2{0}\pi", r"(-1)^{0}\frac{{\pi}}{{6}}",
    r"(1+{0},2{0})",
]  # fmt: skip
CONDITIONS = [
    r"{}, {} \in \mathbb{{Z}}", r"{} \ ({} \in \mathbb{{Z}})", r"{}\,({}\in Z)",
    r"{} \text{{ and }} {} \in \mathbb{{Z}}",
]  # fmt: skip


def equal(reference: str, answer: str) -> bool:
    """The verdict of the layers in process; a pair that they leave open fails the test."""
    match = quick(reference, answer)
    assert match is not None, (reference, answer)
    return match.equal is True


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("first", "second"), list(permutations(["k", "n", "m", "t", "l"], 2)))
def test_a_parameter_has_no_name_of_its_own(family: str, first: str, second: str) -> None:
    """Another letter, and another place for the condition, make the same family; another formula or range does not."""
    for one, other in zip(CONDITIONS, [*CONDITIONS[1:], CONDITIONS[0]], strict=True):
        if family.startswith("(") and "(" in one + other:
            continue  # a condition in parentheses belongs to a factor
        reference = one.format(family.format(first), first)
        answer = other.format(family.format(second), second)
        assert equal(reference, answer)
        assert canonical(reference) == canonical(answer)
        assert not equal(reference, answer.replace(r"\mathbb{Z}", r"\mathbb{R}").replace(r"\in Z", r"\in R"))
        assert not equal(reference, family.format(second))
        assert not equal(family.format(first), answer)
        if not family.startswith("("):
            assert not equal(reference, other.format(family.format(second).replace(r"\pi", r"\pi^2"), second))


@pytest.mark.parametrize(
    ("reference", "answer"),
    [(r"a+k, k\in Z", r"a+a, a\in Z"), (r"k+n, k\in Z", r"k+n, n\in Z"), (r"k+n, n\in Z", r"k+n, k\in R"),
     (r"\{2k | k\in Z\}", r"\{3k | k\in Z\}"), (r"\{n\pi : n\in Z\}", r"\{2n\pi : n\in Z\}"),
     (r"\{x^2 : x>1\}", r"\{x : x>1\}"), (r"2k, k\in Z", r"k, k\in Z")],
)  # fmt: skip
def test_other_families_stay_other(reference: str, answer: str) -> None:
    """No letter is captured by another, and a set is not only its condition."""
    assert not equal(reference, answer)
    assert not equal(answer, reference)
    assert canonical(reference) != canonical(answer)


@pytest.mark.parametrize(
    ("reference", "answer"),
    [(r"\{2k | k\in Z\}", r"2n, n\in\mathbb{Z}"), (r"\{x : x>1\}", "x>1"),
     (r"\{x\in\mathbb{R} : x>1\}", r"(1,\infty)"), (r"\{(x,y) : x+y=1\}", "x+y=1"), (r"x\in R", r"\mathbb{R}")],
)  # fmt: skip
def test_a_set_by_its_condition(reference: str, answer: str) -> None:
    """What a set-builder says is the same without the braces."""
    assert equal(reference, answer)
    assert equal(answer, reference)


SETS = {
    r"\mathbb{R}": [
        "all real numbers", "all reals", "every real number", "any real number", "the set of all real numbers",
        "all real values of x", "real numbers", r"\text{All real numbers.}", "x is any real number", r"x \in R",
    ],
    r"\emptyset": [
        "no solution", "No solutions.", "There are no solutions", "no real solutions", "no real roots", "none",
        "empty set", "the empty set", "no such number", r"\{\}",
    ],
    r"\mathbb{Z}": ["all integers", "integers", "the set of integers", r"\text{the integers}"],
}  # fmt: skip


@pytest.mark.parametrize("sign", SETS)
def test_words_for_sets(sign: str) -> None:
    """A phrase is the set that it names, in either direction and for votes, and no other set."""
    for phrase in SETS[sign]:
        assert equal(sign, phrase)
        assert equal(phrase, sign)
        assert canonical(sign) == canonical(phrase)
        assert not equal(phrase, "0")
        for other in SETS:
            assert equal(other, phrase) is (other == sign)
    assert equal("all real numbers", r"(-\infty,\infty)")
    assert not equal("all real numbers", r"(0,\infty)")


@pytest.mark.parametrize("word", ["real", "no", "yes", "integer", "all", "numbers", "rational numbers", "real estate"])
def test_other_words_are_no_sets(word: str) -> None:
    """Only whole phrases name a set."""
    for sign in SETS:
        assert not equal(sign, word)
    assert not equal("all real numbers", word)


@pytest.mark.parametrize("brackets", ["pmatrix", "bmatrix", "matrix"])
@pytest.mark.parametrize(("rows", "columns"), [(2, 2), (2, 3), (3, 2), (3, 3)])
def test_rows_in_brackets_are_a_matrix(brackets: str, rows: int, columns: int) -> None:
    """`[[1, 2], [3, 4]]` is the matrix; transposed, it is another one."""
    cells = [[f"{i}+x" if j == 1 else f"\\frac{{{i + 1}}}{{{j + 7}}}" for j in range(columns)] for i in range(rows)]
    plain = "[" + ", ".join("[" + ", ".join(row) + "]" for row in cells) + "]"
    latex = rf"\begin{{{brackets}}}" + r"\\".join("&".join(row) for row in cells) + rf"\end{{{brackets}}}"
    turned = "[" + ", ".join("[" + ", ".join(row[j] for row in cells) + "]" for j in range(columns)) + "]"
    assert equal(latex, plain)
    assert equal(plain, latex)
    assert canonical(latex) == canonical(plain)
    assert not equal(latex, turned)


@pytest.mark.parametrize(("first", "second"), list(permutations("ABEFNOM", 2)))
def test_a_segment_is_its_two_ends(first: str, second: str) -> None:
    r"""`\overline{AB}` is AB and BA; a bar inside an expression, or over digits, is no product."""
    bar, ends = rf"\overline{{{first}{second}}}", first + second
    for spelling in (ends, ends[::-1], rf"\overline{{{ends[::-1]}}}"):
        assert equal(bar, spelling)
        assert equal(spelling, bar)
    assert canonical(rf"\overline{{{ends[::-1]}}}") == canonical(bar)
    assert not equal(bar, first + "Z")
    assert not equal(f"2{bar}", f"2{ends}")
    assert not equal(rf"\overline{{{ends.lower()}}}", ends.lower())
