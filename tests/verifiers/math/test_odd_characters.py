"""Digits of other kinds, lone surrogates and endless runs of digits are read or refused, never an exception."""

from __future__ import annotations

import sys

import pytest

from rewarden.verifiers.math import canonical, compare, quick

DIGITS = [chr(i) for i in range(sys.maxunicode + 1) if chr(i).isdigit() and not chr(i).isdecimal()]
PLACES = ["{}", "\\frac{}2", "x_{}", "\\log_{} 2", "5^{}", "5e{}", "1.{}", "5_{{{}}}",
          "0.(\\overline{{{}}})", "x{}", "\\sqrt{}"]  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_digits_that_are_no_decimals(place: str) -> None:
    """Every character that Python calls a digit, in every place where one may stand."""
    for digit in DIGITS[::3]:
        text = place.format(digit)
        quick("7", text)
        quick(text, "7")
        canonical(text)


@pytest.mark.parametrize("run", ["9" * 5_000, "0" * 5_000, "0010" + "0" * 5_000, "9" * 300, "0" * 1_000 + "8"])
@pytest.mark.parametrize("place", ["log_{}(2)", "\\log_{{{}}}2", "5_{{{}}}", "5_{}", "x_{{{}}}", "1e{}", "1e-{}",
                                   "\\sqrt[{}]{{2}}",
                                   "0.\\overline{{{}}}", "{}!", "2^{{{}}}", "{}\\%", "10_{{{}}}"])  # fmt: skip
def test_long_runs_of_digits(run: str, place: str) -> None:
    """A run of digits longer than Python converts, in every place that takes a number."""
    text = place.format(run)
    assert not compare("7", text).equal
    compare(text, "7")
    canonical(text)


@pytest.mark.parametrize("text", ["x_{" + "\ud800" * 300 + "}", "\ud800",
                                  "x_{\udfff}", "x_{\ud800}+1", "\\sqrt{x_{\udc00}}", "\\text{\ud800}"])  # fmt: skip
def test_lone_surrogates(text: str) -> None:
    """Half a character is a name like any other: it equals itself and nothing else."""
    assert canonical(text) == canonical(text)
    match = quick(text, text)
    assert match is not None
    assert match.equal is not False
    other = quick("x_{7}+1", text)
    assert other is not None
    assert not other.equal
