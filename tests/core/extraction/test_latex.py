"""The laws of LaTeX dress: wrappers, math delimiters and braces."""

from __future__ import annotations

import time

import pytest
from completions import UNITS, balanced
from hypothesis import given
from hypothesis import strategies as st

from rewarden.core.extraction.latex import WRAPPERS, closing_brace, unwrap_math, unwrap_text


@given(st.lists(st.sampled_from(WRAPPERS), max_size=5), balanced())
def test_wrappers_come_off(wrappers: list[str], content: str) -> None:
    """What wrappers hold around each other is what is left, whichever they are; nothing else comes off."""
    text = content
    for wrapper in wrappers:
        text = rf"\{wrapper}{{{text}}}"
    assert unwrap_text(text) == (content.strip() if wrappers else content)


@pytest.mark.parametrize(
    "text", [r"\text{a} or \text{b}", r"\frac{1}", r"\text{a", r"\textcolor{red}{a}", r"\text", "", "{a}", r"x\text{a}"]
)
def test_what_is_no_wrapper_stays(text: str) -> None:
    """Two wrappers, commands with a meaning, and wrappers that never close are left alone."""
    assert unwrap_text(text) == text


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("$5$", "5"), ("$$5$$", "5"), (r"\(5\)", "5"), (r"\[ 5. \]", "5"), (r"$\$5$", r"\$5"), ("$a$ and $b$", None),
        (r"\(a\) or \(b\)", None), ("$", None), ("$$", None), ("$ $", None), (r"$5\$", None), ("5", None), ("", None),
        ("$$a$$ $$b$$", None), (r"\(" + "9" * 5000 + r"\)", "9" * 5000),
    ],
)  # fmt: skip
def test_one_math_span(text: str, content: str | None) -> None:
    """A text that is one span of any length gives its content; two spans, half a span and money do not."""
    assert unwrap_math(text) == content


@given(balanced(), st.text("{}\\ab", max_size=10))
def test_the_closing_brace(content: str, behind: str) -> None:
    """The brace that closes a balanced content is the one behind it, whatever follows."""
    assert closing_brace("{" + content + "}" + behind, 1) == 1 + len(content)


@pytest.mark.parametrize("unit", [*UNITS, "\\text{", "\\text {", "\\text ", "\\text{}", "}\\text{"], ids=repr)
def test_long_runs_are_cheap(unit: str) -> None:
    """A megabyte of anything takes a fraction of a second; the test allows seconds."""
    long = unit * (1_000_000 // len(unit))
    started = time.perf_counter()
    for text in (long, f"${long}$", rf"\text{{{long}}}"):
        unwrap_text(text)
        unwrap_math(text)
        closing_brace(text, 1)
    assert time.perf_counter() - started < 5
