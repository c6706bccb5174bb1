"""Completions to try on answer extraction, and how to read what it says."""

from __future__ import annotations

import string

from hypothesis import strategies as st

from rewarden.core.extraction import Extraction

PLAIN = st.text(string.ascii_letters.replace("n", "") + string.digits + " .,()+-=\n", max_size=80)
"""Prose and formulas without markers: no backslash, brace, tag or dollar, and never the word `answer` (no "n")."""

UNITS = [
    *(
        "\\boxed{",
        "\\boxed",
        "\\boxed{1},",
        "\\boxed{1} or ",
        "\\boxed{\\boxed{1}}",
        "\\boxed{}",
        "}",
        "{",
        "$",
        "$$",
        "$1$, ",
    ),
    *(
        "<think>",
        "</think>",
        "<answer>",
        "</answer>",
        "<answer>1</answer>",
        "<|im_end|>",
        "<|",
        "(",
        "\\(",
        "\\)",
        "\\[",
    ),
    *(
        "9",
        "1 000 ",
        "1,",
        "1 or ",
        "1/",
        "1e",
        " ",
        "\n",
        "\\",
        "\\{",
        "answer ",
        "the answer is ",
        "answer:",
        "####",
        "A or ",
    ),
    *("A ", "a", "word ", "so, ", "-", ".", "```output\n", "{{", "**", "答案是", "\\text{", "x="),
]
"""Texts that start, end or look like something: repeated and mixed, they are what a scan could choke on."""


@st.composite
def balanced(draw: st.DrawFn) -> str:
    """A non-empty content with balanced braces, escaped braces and commands; no box and no placeholder."""
    leaf = st.sampled_from(["1", "x", "+", "\\frac", "\\{", "\\}", "\\pi", "42", " ", "\\\\"])
    node = st.recursive(leaf, lambda inner: st.lists(inner, max_size=4).map(lambda parts: "{" + "".join(parts) + "}"))
    return "7" + "".join(draw(st.lists(node, max_size=6))) + "8"


def outcome(found: Extraction) -> str | None:
    """The answer, or the problem after an exclamation mark."""
    assert (found.answer is None) == (found.problem is not None)
    return f"!{found.problem}" if found.problem else found.answer
