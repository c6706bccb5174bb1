"""Normalisation forms in linear time."""

from __future__ import annotations

import unicodedata
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewarden.verifiers.unicode import normal_form


@given(st.text(max_size=200), st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"]))
def test_is_the_standard_form(text: str, form: str) -> None:
    """Text without long runs of marks gets the form that the standard library gives it."""
    assert normal_form(text, form) == unicodedata.normalize(form, text)  # type: ignore[arg-type]


@pytest.mark.parametrize("marks", ["\u0301", "\u0301\u0316", "\u0344"])
def test_runs_of_marks_are_cut(marks: str) -> None:
    """A megabyte of combining marks on one letter, minutes of work for the standard library, is cut short."""
    start = perf_counter()
    form = normal_form("a" + marks * (1_000_000 // len(marks)) + "b", "NFKD")
    assert perf_counter() - start < 5
    assert (form[0], form[-1]) == ("a", "b")
    assert len(form) < 80
