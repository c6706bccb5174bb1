r"""What a statement says: of which name, which class, which of several values; and marks that change a value."""

from __future__ import annotations

import pytest

from rewarden.verifiers.math import compare, quick

NUMBERS = ["5", "0", "\\frac{1}{2}", "12", "2.5"]


def equal(reference: str, answer: str) -> bool:
    """The verdict in process."""
    match = quick(reference, answer)
    assert match is not None, (reference, answer)
    return match.equal is True


@pytest.mark.parametrize("value", NUMBERS)
@pytest.mark.parametrize(
    "function", ["|{}|", "\\sin {}", "\\tan {}", "\\lfloor {}\\rfloor", "\\ln {}", "\\sqrt{{{}}}", "{}^2"]
)
@pytest.mark.parametrize("name", ["x", "n", "t", "\\theta"])
def test_a_function_of_the_unknown_is_not_the_unknown(value: str, function: str, name: str) -> None:
    """`|x| = 5` does not say what `x = 5` says, in either place; another function says another thing."""
    stated = f"{function.format(name)}={value}"
    for reference, answer in (
        (f"{name}={value}", stated),
        (stated, f"{name}={value}"),
        (stated, f"\\cos {name}={value}"),
    ):
        zero = value == "0" and function in ("{}^2", "\\sqrt{{{}}}")  # has no other root
        assert zero or not compare(reference, answer).equal, (reference, answer)


@pytest.mark.parametrize("value", NUMBERS)
def test_names_of_one_quantity(value: str) -> None:
    """A length, a modulus or a named value still states its value."""
    for name in ("|AB|", "|z|", "\\sin A", "f(3)", "S"):
        assert equal(value, f"{name}={value}")
    assert equal(f"AB={value}", f"|AB|={value}")
    assert equal(f"S={value}", f"T={value}")


@pytest.mark.parametrize("value", ["5", "90", "45", "30.5"])
def test_only_angles_meet_degrees(value: str) -> None:
    """A degree sign meets no other unit, currency, percentage or thing; radians after conversion only."""
    degrees = f"{value}^\\circ"
    for other in ("\\text{ kg}", "\\text{ cm}", "\\text{ apples}", "\\%", "\\text{ radians}", "\\text{ m/s}"):
        assert not equal(degrees, value + other)
        assert not equal(value + other, degrees)
    assert not equal(degrees, f"\\${value}")
    assert equal(degrees, value)
    assert equal(degrees, f"{value} degrees")
    assert equal(degrees, f"\\frac{{{value}\\pi}}{{180}}\\text{{ radians}}")
    assert equal(degrees, f"\\frac{{{value}\\pi}}{{180}}")


@pytest.mark.parametrize("body", ["x^2", "\\sin x", "x+1", "5", "2x", "\\frac{1}{x}", "\\sqrt{x}", "e^x", "(x+1)^3"])
@pytest.mark.parametrize("prime", ["'", "''", "^{\\prime}", "^\\prime"])
def test_a_prime_is_part_of_a_name_only(body: str, prime: str) -> None:
    """After anything but a name a prime is a derivative, which is not what stands before it."""
    assert not compare(body, f"({body}){prime}").equal
    assert equal(f"f{prime}(x)={body}", body)
    assert not equal("f", f"f{prime}")


@pytest.mark.parametrize(
    ("reference", "answer", "verdict"),
    [
        ("(1,2)", "x=1, y=2", True),
        ("(1,2)", "y=2, x=1", True),
        ("(1,2)", "y=1, x=2", False),
        ("x=1, y=2", "(1,2)", True),
        ("y=1, x=2", "(2,1)", True),
        ("y=1, x=2", "(1,2)", False),
        ("(3,4)", "a=3, b=4", True),
        ("(3,4)", "b=3, a=4", False),
        ("(1,2)", "x=1 or y=2", False),
        ("x=1, y=2", "x=1 or y=2", False),
        ("(1,2)", "1 or 2", False),
        ("1,2", "1 or 2", True),
        ("x=1, y=2", "y=2, x=1", True),
        ("(1,2,3)", "x=1,y=2,z=3", True),
        ("(1,2,3)", "z=1,y=2,x=3", False),
        ("1,2", "x_1=2, x_2=1", True),
        ("x=1,y=2", "1 or 2", False),
        ("AB=3,CD=4", "(3,4)", True),
        ("x=-5,p=7", "-5,7", True),
        ("x=-5,p=7", "7,-5", False),
        ("x=1 or x=2", "1,2", True),
    ],
)
def test_values_belong_to_their_names(reference: str, answer: str, verdict: bool) -> None:
    """Letters are in the order of the alphabet in a pair; alternatives are no pair."""
    assert equal(reference, answer) is verdict


@pytest.mark.parametrize("n", [3, 7, 12])
def test_congruences_name_their_modulus(n: int) -> None:
    """Two classes are equal with their moduli; the least residue alone may stand for its class."""
    for a in (0, 1, 2):
        for spelling in (f"{a}\\pmod {n}", f"{a + n} \\pmod{{{n}}}", f"{a - n} (\\bmod {n})", f"{a + 5 * n} (mod {n})"):
            for statement in (spelling, f"x\\equiv {spelling}"):
                assert equal(f"x\\equiv {a}\\pmod {n}", statement)
                assert equal(str(a), statement)
                assert not equal(f"x\\equiv {a}\\pmod {n + 1}", statement)
                assert not equal(f"x\\equiv {a + 1}\\pmod {n}", statement)
                assert not equal(str(a + 1), statement)
        assert not equal(f"x\\equiv {a}\\pmod {n}", f"y\\equiv {a}\\pmod {n}")
    assert equal("2", "2^{10^{10}} \\mod 7")
    assert equal("2", "2^{10^{10}} \\pmod 7 = 2")


@pytest.mark.parametrize(
    ("value", "rounded", "verdict"),
    [
        ("7", "8", False),
        ("9", "8", False),
        ("7", "7.4", False),
        ("7", "7.0", True),
        ("\\pi", "3.14", True),
        ("\\pi", "3.1", True),
        ("\\pi", "3.2", False),
        ("\\frac{2}{3}", "0.67", True),
        ("\\frac{2}{3}", "0.66", True),
        ("\\frac{2}{3}", "0.65", False),
        ("-\\frac{2}{3}", "-0.66", True),
        ("-\\frac{2}{3}", "-0.65", False),
        ("123456", "123000", True),
        ("123456", "124000", False),
        ("\\sqrt{2}", "1.41421", True),
        ("\\pi", "\\frac{22}{7}", True),
        ("\\pi", "\\frac{23}{7}", False),
        ("2", "0", False),
    ],
)
@pytest.mark.parametrize("sign", ["\\approx", "\\sim", "\\simeq"])
def test_an_approximation_agrees_to_its_last_digit(value: str, rounded: str, verdict: bool, sign: str) -> None:
    """What follows the sign is the value rounded or cut off; else the statement contradicts itself.

    After a name, the value before the sign is stated by then: the labelled pairs take it whatever follows.
    """
    assert equal(value, f"{value}{sign} {rounded}") is verdict
    assert equal(value, f"x={value}{sign} {rounded}")


@pytest.mark.parametrize(
    ("reference", "answer", "verdict"),
    [
        ("0.5", "0.5\\%", False),
        ("0.5", "50\\%", True),
        ("-0.5", "-0.5\\%", False),
        ("1", "1\\%", False),
        ("1", "100\\%", True),
        ("50", "50\\%", True),
        ("-50", "-50\\%", True),
        ("0.5\\%", "0.5", True),
        ("0.5\\%", "0.005", True),
        ("5", "5\\%\\%", False),
        ("5\\%", "5\\%\\%", False),
        ("7", "\\cancel{7}", False),
        ("7", "\\cancel{3}7", False),
        ("7", "\\xcancel{7}", False),
    ],
)
def test_marks_that_change_a_value(reference: str, answer: str, verdict: bool) -> None:
    """A share is no percentage of the same digits, a percentage has one sign, and what is struck out is not there."""
    assert compare(reference, answer).equal is verdict


@pytest.mark.parametrize("word", ["squared", "cubed", "square", "cubic", "score", "quarters"])
@pytest.mark.parametrize("number", ["3", "5", "12"])
def test_powers_and_parts_are_no_units(number: str, word: str) -> None:
    """A word that changes the number, with no unit beside it, cannot be left out."""
    assert not equal(number, f"{number} {word}")
    assert not equal(number, f"{number}\\text{{ {word}}}")
    assert equal(f"{number} cm^2", f"{number} square cm")


@pytest.mark.parametrize(
    ("reference", "answer", "verdict"),
    [
        ("2,7", "2.7", False),
        ("12,5", "12.5", False),
        ("2.7", "2,7", True),
        ("1,22", "1.22", True),
        ("1000.99", "1000,99", True),
        ("0,5", "0.5", True),
        ("0,111", "0.111", True),
        ("2, 75", "2.75", False),
        ("2,7", "7,2", True),
        ("-0,5", "-0.5", True),
    ],
)
def test_a_list_is_no_decimal(reference: str, answer: str, verdict: bool) -> None:
    """A reference of two short members is a list; a comma marks decimals where it can hardly be one."""
    assert equal(reference, answer) is verdict


@pytest.mark.parametrize(
    ("reference", "answer", "verdict"),
    [
        ("(-1,3)", "|x-1|<2", True),
        ("|x-1|<2", "(-1,3)", True),
        ("(-1,3)", "|x-1|\\le 2", False),
        ("[-1,3]", "|x-1|\\le 2", True),
        ("|2x-1|\\ge 3", "x\\le -1 \\text{ or } x\\ge 2", True),
        ("(-1,3)", "2>|1-x|", True),
        ("(-1,3)", "|x-1|<3", False),
        ("(-\\infty,0)\\cup(6,\\infty)", "|x-3|>3", True),
        ("|x|<2", "(-2,2)", True),
    ],
)
def test_absolute_values_of_linear_terms_are_intervals(reference: str, answer: str, verdict: bool) -> None:
    """`|x - a| < b` is the interval around `a`."""
    assert equal(reference, answer) is verdict


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("AB", "ab"),
        ("PV", "pv"),
        ("Rr", "RR"),
        ("sin A", "sin a"),
        ("log n", "log N"),
        ("a sin B", "a sin b"),
        ("ABC", "abc"),
        ("xY", "xy"),
        ("\\text{AB}", "\\text{ab}"),
        ("nRT", "nrt"),
    ],
)
def test_symbols_keep_their_case(first: str, second: str) -> None:
    """Letters that may be mathematics are told apart by case; words are not."""
    assert not equal(first, second)
    assert not equal(second, first)
    assert equal(first, first)
    for word in ("Anna", "Sunday", "Blue", "Yes", "Max", "No Solution"):
        assert equal(word, word.lower())
