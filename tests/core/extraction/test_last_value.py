"""The laws of the last resorts: bare texts, program output, math spans, numbers."""

from __future__ import annotations

import pytest
from completions import PLAIN, outcome
from hypothesis import given
from hypothesis import strategies as st

from rewarden.core.extraction import extract


class TestValues:
    """The lenient policy's last resorts."""

    @pytest.mark.parametrize(
        ("text", "answer", "method"),
        [
            ("x = 3", "x = 3", "whole_text"),
            ("4 10/3", "4 10/3", "whole_text"),
            ("1 000", "1 000", "whole_text"),
            ("28 percent", "28 percent", "whole_text"),
            ("\\frac{10}{9}", "\\frac{10}{9}", "whole_text"),
            ("Sunday", "Sunday", "whole_text"),
            ("$\\sqrt{4} = 2$", "\\sqrt{4} = 2", "math_span"),
            ("Answer \\[ \n 9 \n \\]", "9", "math_span"),
            ("Therefore $x \\geq 5$ is the solution.", "x \\geq 5", "math_span"),
            ("$28$ % of it", "28 %", "math_span"),
            ("The roots found here were $2$ and $3$.", "2, 3", "math_span"),
            ("The value of $f(3)$ is 9.", "9", "last_number"),
            ("There are $5$ ways in 3 groups.", "5", "math_span"),
            ("We know $x^2 = 16$. So there are 4 of them.", "4", "last_number"),
            ("The total spent is $130,000 and the profit is $70,000", "70,000", "last_number"),
            ("it costs $5 and he has $12 left", "12", "last_number"),
            ("the prices seen there were $5 - $7 a piece", "7", "last_number"),
            ("so the number is 10 which is 1,000.99m² here", "1,000.99", "last_number"),
            ("Soucis : 2,74 $ a..", "2,74", "last_number"),
            ("So he has -3 apples in the end of the day", "-3", "last_number"),
            ("So 12 500 dollars were spent by all of them", "12 500", "last_number"),
            ("It grew by 3.5% over all of the last year", "3.5%", "last_number"),
            ("The difference comes to 5-3 in that case", "5-3", "last_number"),
            ("The derivative of it must then be 5x.", "5x", "last_number"),
            ("1. Take them away\n2. Then 7 apples\n3. Done", "7", "last_number"),
            ("horse #12 is what 16 people think of", "16", "last_number"),
            ("```output\n3.0\n```\nThree trucks are needed for 80 stones.", "3.0", "tool_output"),
            ("$12 \\text{ for } k \\mapsto \\{$ and so on", "12 \\text{ for } k \\mapsto \\{", "math_span"),
        ],
    )
    def test_values(self, text: str, answer: str, method: str) -> None:
        """A bare text, then program output, then the last span or number, then a few words."""
        found = extract(text)
        assert (found.answer, found.method) == (answer, method)

    def test_prose_without_a_value(self) -> None:
        """A long text without any value has no answer."""
        assert (
            outcome(extract("It was, as far as anyone can tell from all of this, on some day of the week."))
            == "!not_found"
        )

    @given(st.integers(-(10**9), 10**9))
    def test_a_number_in_prose(self, value: int) -> None:
        """Any whole number, with or without thousands, is read whole and with its sign."""
        assert extract(f"In the end they were left with {value} of them all.").answer == str(value)
        assert extract(f"The answer is {value:,}.").answer == f"{value:,}"

    @given(PLAIN)
    def test_a_number_without_a_word_around_it_is_never_cut(self, text: str) -> None:
        """The span of what was found cuts it out of the completion, wherever a span is given."""
        found = extract(text)
        if found.answer is not None and found.span is not None and found.method == "last_number":
            assert found.answer.split(", ")[0] in text[slice(*found.span)]
