r"""Each way in which public graders are known to be wrong, as a law over its whole kind.

Every mechanism is a table of pairs; the variants around them (delimiters, spaces, another variable or number) are
generated, so that no pair can be met by its text.
"""

from __future__ import annotations

import pytest

from rewarden.verifiers.math import quick

LETTERS = "tchdglsmo"


def equal(reference: str, answer: str) -> bool:
    """The verdict of the layers in process; a pair that they leave open fails the test."""
    match = quick(reference, answer)
    assert match is not None, (reference, answer)
    return match.equal is True


def wrapped(answer: str) -> list[str]:
    """The same answer as models write it."""
    return [
        answer,
        f" {answer} ",
        f"${answer}$",
        f"\\({answer}\\)",
        f"\\boxed{{{answer}}}",
        f"\\displaystyle {answer}",
        f"{answer}.",
    ]


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize("number", ["2", "3", "17", "\\frac{1}{2}", "0.5"])
def test_a_variable_is_never_a_unit(letter: str, number: str) -> None:
    """A letter outside of text is a variable, so `3t` is not 3 in either direction (math.md 3.1.1)."""
    assert not equal(number, f"{number}{letter}")
    assert not equal(f"{number}{letter}", number)
    assert not equal(f"x={number}", f"x={number}{letter}")


@pytest.mark.parametrize(
    "tail",
    [
        "\\text{ is wrong}",
        "\\text{ or so}",
        "\\text{ if } x>0",
        "\\to",
        "+",
        "\\cdot",
        "\\heartsuit\\{",
        "(",
        "\\text{ maybe}",
    ],
)
@pytest.mark.parametrize("number", ["7", "12", "100"])
def test_nothing_falls_back_to_a_leading_number(number: str, tail: str) -> None:
    """What is not read as a whole is not read: no tail after a number makes it that number (3.1.2, 3.1.3)."""
    for answer in wrapped(number + tail):
        assert not equal(number, answer)


@pytest.mark.parametrize(
    ("reference", "answer"),
    [
        ("3\\text{ million}", "3\\text{ billion}"),
        ("10\\text{ cm}", "10\\text{ m}"),
        ("5\\text{ kg}", "5\\text{ g}"),
        ("2\\text{ hours}", "2\\text{ minutes}"),
        ("4\\text{ cm}^2", "4\\text{ cm}^3"),
        ("\\$20", "€20"),
        ("20\\%", "\\$20"),
        ("60\\text{ km/h}", "60\\text{ m/s}"),
    ],
)
def test_two_units_must_agree(reference: str, answer: str) -> None:
    """Where both sides carry a unit or a magnitude, another one makes another answer (3.1.2)."""
    for variant in wrapped(answer):
        assert not equal(reference, variant)


@pytest.mark.parametrize(
    ("reference", "answer"),
    [
        ("12", "12 miles"), ("46", "46\\,\\text{cm}"), ("15\\mbox{ cm}^2", "15"), ("64", "64\\text{ square feet}"),
        ("\\pi", "\\pi\\text{ rad}"), ("5", "5\\text{ apples}"), ("1\\text{ m}", "100\\text{ cm}"),
        ("2.5\\text{ hours}", "150\\text{ minutes}"),
        ("36\\text{ km/h}", "10\\text{ m/s}"), ("200\\text{ minutes}", "3\\text{ hours }20\\text{ minutes}"),
        ("12", "12^{\\text{th}}"),
        ("3000000", "3\\text{ million}"), ("18\\text{ ducks}", "18"), ("17\\text{ red marbles}", "17"),
        ("9.8", "9.8\\,\\mathrm{m/s^2}"),
    ],
)  # fmt: skip
def test_known_units_are_optional_and_convert(reference: str, answer: str) -> None:
    """A listed unit may be left out, and within a dimension it converts."""
    for variant in wrapped(answer):
        assert equal(reference, variant)


@pytest.mark.parametrize("name", ["x+1", "x^2", "2x", "a+b", "5", "0", "\\log_2 x", "x-y"])
@pytest.mark.parametrize("value", ["7", "\\frac{1}{2}", "12"])
def test_a_right_side_is_not_the_value(name: str, value: str) -> None:
    """Only a plain name on the left makes the right side the answer (3.1.4)."""
    assert not equal(value, f"{name}={value}")


@pytest.mark.parametrize(
    "name", ["x", "n", "x_1", "f(3)", "AB", "\\angle ABC", "|AB|", "y", "S_{ABC}", "\\theta", "\\frac{AB}{CD}", "W(n)"]
)
@pytest.mark.parametrize("value", ["7", "\\frac{1}{2}", "2\\sqrt{3}"])
def test_a_plain_name_is_optional(name: str, value: str) -> None:
    """A name states its value, on either side of the sign; another value does not match."""
    assert equal(value, f"{name}={value}")
    assert equal(f"{name}={value}", value)
    assert equal(f"{name}={value}", f"{value}={name}")
    assert not equal(f"{name}={value}", f"{name}={value}+1")


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [("x=5+6=11", True), ("x=5+5+1=11", True), ("x=\\frac{22}{2}=11", True), ("f(3)=0=11", False), ("x=7=11", False),
     ("x=4+4=11", True), ("4+4=11", False), ("10=11", False), ("x=11\\approx 11.2", True), ("x\\ne 11", False),
     ("x\\approx 11", True)],
)  # fmt: skip
def test_a_chain_commits_to_one_plain_number(answer: str, verdict: bool) -> None:
    """A named chain states its last member; a contradicting number, or a false nameless equation, states nothing."""
    assert equal("11", answer) is verdict


@pytest.mark.parametrize(
    ("reference", "answer"),
    [
        ("10^{-7}", "2\\cdot10^{-7}"), ("\\frac{1}{2004!}", "\\frac{1}{2006!}"), ("2^{-99}", "2^{-98}"),
        ("10^{-20}", "10^{-21}"),
        ("\\frac{2^{2005}+1}{3\\cdot2^{2006}}", "\\frac{1}{3\\cdot2^{2006}}"), ("\\sin(10^{-9})", "10^{-9}"),
        ("0", "10^{-30}"),
        ("x+10^{-30}", "x"), ("\\pi+10^{-100}", "\\pi"), ("e^x+10^{-200}", "e^x"), ("e^{-100}", "0"),
        ("\\sqrt{10^{20}+1}", "10^{10}"), ("2^{200}+1", "2^{200}"),
        ("100!+1", "100!"),
        ("9^{9^9}", "9^{9^9}+1"), ("9^{9^{9^9}}", "9^{9^{9^8}}"), ("\\pi", "3.1416"), ("\\frac{1}{3}", "0.333"),
        ("0.333", "\\frac{1}{3}"),
    ],
)  # fmt: skip
def test_close_is_not_equal(reference: str, answer: str) -> None:
    """There is no absolute tolerance: values differ however small or close they are (3.1.5)."""
    assert not equal(reference, answer)
    assert not equal(answer, reference)


@pytest.mark.parametrize(
    ("reference", "answer"),
    [("2*x-3*y+13=0", "7x+4y+14=0"), ("\\left(5,\\frac\\pi3\\right)", "5"), ("1331 and 1728", "1728"),
     ("(1,234)", "1234"), ("1, 234", "1234"),
     ("2 2/3", "2"), ("10", "4 10/3"), ("-\\frac{5}{3}", "-2\\frac{1}{3}"), ("X", "x"), ("R", "r"),
     ("\\gamma", "\\Gamma"), ("\\gamma", "0.5772156649"),
     ("101_2", "101_3"), ("1,2,\\ldots,n", "1, 3, 5, \\ldots, 2n-1"), ("7", "6 \\text{ or } 7"), ("7", "\\{6,7\\}"),
     ("7", "[1,10]"), ("7", "n"),
     ("(1,2)", "(2,1)"), ("[2,7)", "(2,7)"), ("1,2", "1,2,3"), ("\\pm37", "37"), ("x<7", "7"), ("on", "no"),
     ("\\text{odd}", "\\text{oddd}"),
     ("a+b", "ab"), ("C", "A or B or C"), ("3:4", "4:3"), ("11:30", "1:30"), ("x=5", "y=5"), ("x=1,y=2", "x=2,y=1"),
     ("0", "\\frac{1}{0}")],
)  # fmt: skip
def test_other_answers_stay_other(reference: str, answer: str) -> None:
    """Collapsed tuples, mixed numbers, folded symbols, bases, dots, hedges and sets (3.1.6 to 3.1.11)."""
    for variant in wrapped(answer):
        assert not equal(reference, variant)


@pytest.mark.parametrize(
    ("reference", "answer"),
    [
        # repeating decimals
        ("\\frac{1}{3}", "0.\\overline{3}"), ("\\frac{5}{6}", "0.8\\overline{3}"), ("\\frac{4}{3}", "1.\\bar{3}"),
        ("\\frac{41}{333}", "0.\\overline{123}"),
        ("\\frac{1}{3}", "0.\\dot{3}"), ("\\frac{4}{33}", "0.\\dot1\\dot2"), ("\\frac{1}{3}", "0.(3)"),
        ("\\frac{1}{3}", "0.3333..."), ("1", "0.\\overline{9}"),
        # plain and SymPy syntax
        ("\\frac{\\pi}{4}", "pi/4"), ("e^{12}", "exp(12)"), ("8", "2**3"), ("1000", "1e3"),
        ("6.02\\times10^{23}", "6.02e23"),
        ("\\sin\\frac{\\pi x}{5}", "sin(pi*x/5)"), ("\\sqrt5-2", "-2 + sqrt(5)"), ("\\ln 2", "log(2)"),
        ("\\sqrt[3]{2}", "2**(1/3)"),
        # Unicode
        ("\\sqrt5", "√5"), ("\\infty", "∞"), ("\\frac12", "½"), ("x^2", "x²"), ("10^6", "10⁶"), ("12", "１２"),
        ("(1,2)", "（1，2）"), ("3-5", "3–5"),
        ("7", "\u200b7"), ("7", "7。"), ("12", "١٢"), ("x\\ge4", "x≥4"), ("2\\frac34", "2¾"), ("90^\\circ", "90°"),
        # digits in groups
        ("1234", "1\\,234"), ("1234567", "1 234 567"), ("10080", "10,\\!080"), ("10000", "10{,}000"),
        ("1000.99", "1000,99"),
        # currency, percent
        ("20", "€20"), ("20", "£20"), ("1250", "\\$1,250.00"), ("20", "20\\text{ dollars}"), ("50", "50.0\\%"),
        ("12.36", "12.36\\%"), ("35\\%", "35 percent"),
        ("0.415", "41.5\\%"),
        # style and punctuation
        ("72", "\\color{red}{72}"), ("72", "\\color{red}72"), ("72", "\\underline{72}"), ("72", "{\\bf 72}"),
        ("72", "\\fbox{72}"), ("72", "= 72"),
        # sets and inequalities
        ("(1,3)", "x>1 \\text{ and } x<3"), ("x>-2", "-2x<4"), ("(-2,2)", "x^2<4"), ("\\emptyset", "\\varnothing"),
        ("x<7", "(-\\infty,7)"),
        ("\\mathbb{R}\\setminus\\{0\\}", "(-\\infty,0)\\cup(0,\\infty)"), ("k\\in[\\sqrt3,+\\infty)", "k\\ge\\sqrt3"),
        ("1\\le|z|\\le2", "z\\in[-2,-1]\\cup[1,2]"),
        # complex
        ("\\frac12+\\frac{\\sqrt3}{2}i", "e^{i\\pi/3}"), ("i", "\\sqrt{-1}"),
        # statements
        ("x=2", "2=x"), ("(a+b)^2=a^2+b^2+2ab", "(a+b)^2=a*a+b*b+2ab"), ("3x+6y-5=0", "y=-\\frac12x+\\frac56"),
        ("n=2,3,4", "2,3,4"),
        ("p=5,q=2;p=7,q=2", "(5,2),(7,2)"), ("\\frac{NO}{BO}=\\frac{1}{\\sqrt6}", "\\frac{1}{\\sqrt6}"),
        ("W(n)=1 \\text{ and } W(n)=-1", "W(x)=1orW(x)=-1"),
        # vectors, letters, words
        ("2\\mathbf{i}-\\mathbf{j}", "-\\mathbf{j}+2\\mathbf{i}"), ("\\langle1,2\\rangle", "(1,2)"),
        ("D", "\\textbf{(D)}"), ("(D) Alina", "D"), ("Sunday", "\\textit{sunday}"),
    ],
)  # fmt: skip
def test_other_spellings_are_the_same_answer(reference: str, answer: str) -> None:
    """Each class of answers that other graders miss (3.2), written as models write it."""
    for variant in wrapped(answer):
        assert equal(reference, variant), variant


@pytest.mark.parametrize(
    ("reference", "answer", "verdict"),
    [("1500", "1.5 x 10^3", True), ("1234.56", "1.234,56", True), ("2,000", "2.000", False), ("1,22", "1.22", True),
     ("x\\in\\{1,2\\}", "1,2", True), ("\\mathbb{R}", "\\text{all real numbers}", True),
     ("(0,\\infty)", "all real numbers", False),
     ("\\emptyset", "no solution", True), ("\\$1.2\\text{ million}", "1200000", True), ("x=3 or -3", "\\pm3", True),
     ("5", "5 min", True),
     ("x\\in(1,2)", "x in (1,2)", True), ("5", "5\\sec", False)],
)  # fmt: skip
def test_words_and_signs_in_context(reference: str, answer: str, verdict: bool) -> None:
    """The same word or sign is read by what stands around it."""
    assert equal(reference, answer) is verdict


@pytest.mark.parametrize("name", ["x", "v", "k", "w", "q", "s_1", "s_2", "\\alpha", "AB"])
def test_symbols_take_both_signs(name: str) -> None:
    """No symbol is taken for positive: a root of a square and an absolute value are not the symbol."""
    assert not equal(name, f"\\sqrt{{({name})^2}}")
    assert not equal(name, f"|{name}|")
    assert equal(f"|{name}|", f"\\sqrt{{({name})^2}}")


def test_markdown_bold_is_style() -> None:
    """Asterisks around the whole answer are not multiplication."""
    assert equal("72", "**72**")
    assert equal("x+1", " **x+1** ")


def test_math_verify_65_hang() -> None:
    """A tower inside a fraction is settled by a bound, not evaluated."""
    match = quick("7", "\\dfrac{5^{\\left(5^{\\left(5^{\\left(5^5\\right)}\\right)} - 4\\right)} - 5}{16}")
    assert match is not None
    assert (match.equal, match.reason) == (False, "too_large")


@pytest.mark.parametrize(
    ("reference", "answer"),
    [("2^{10^9}", "2^{1000000000}"), ("7", "9^{9^9}-9^{9^9}+7"), ("10000000000", "\\log_{10}(10^{10^{10}})"),
     ("2", "2^{10^{10}} \\mod 7"),
     ("2", "\\gcd(2^{1000000000},6)"), ("1000000!", "999999!\\cdot1000000"), ("9^{9^{9^9}}", "9^{9^{9^{9}}}"),
     ("1", "(" * 500 + "1" + ")" * 500)],
)  # fmt: skip
def test_equality_is_tried_before_any_limit(reference: str, answer: str) -> None:
    """A huge but equal answer is right."""
    assert equal(reference, answer)


@pytest.mark.parametrize(
    "answer",
    ["9^{9^{9^9}}", "1E9999999999", "1.5E999999999", "10^{10^{10}}", "((10!)!)!", "\\binom{10^9}{5\\cdot10^8}",
     "\\sqrt{2^{10^{10}}+1}", "-9^{9^9}",
     "\\frac{10^{10^{10}}-1}{9}", "\\log_{2}(2^{2^{2^{2^{2^2}}}})", "\\sin(10^{10^8})", "9^{9^9}\\%", "x=9^{9^9}-1"],
)  # fmt: skip
def test_huge_answers_are_settled_in_process(answer: str) -> None:
    """No answer needs the last layer only because it is large."""
    assert not equal("7", answer)
