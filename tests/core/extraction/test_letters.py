"""The laws of multiple choice: the letter that a text chooses in the end."""

from __future__ import annotations

import pytest
from completions import PLAIN, outcome
from hypothesis import given
from hypothesis import strategies as st

from rewarden.core.extraction import choice_letter


class TestLetters:
    """Multiple choice."""

    @pytest.mark.parametrize(
        ("text", "letter"),
        [
            ("C", "C"),
            ("c", "C"),
            ("(C)", "C"),
            ("**C**", "C"),
            ("C. Paris", "C"),
            ("C Cecile", "C"),
            ("A Peter\nCelina bum", "A"),
            ("\\boxed{\\text{(C)}}", "C"),
            ("\\boxed{\\textbf{(D)} 12}", "D"),
            ("<answer>B</answer>", "B"),
            ("answer: b", "B"),
            ("thinking about it I think the correct answer is C", "C"),
            ("It's not A because it doesn't make sense, therefore I think it's B", "B"),
            ("The answer is for sure D, it can't be A or B", "D"),
            ("D. it can't be A or B", "D"),
            ("Alina and the answer is\n(C) Cecile", "C"),
            ("I would go with option (D).", "D"),
            ("I don't think it's B. It must be D.", "D"),
            ("Options A and B are wrong, so the answer must be C because it fits.", "C"),
            ("A) is wrong since it is too small.\nB) works.\nTherefore, B.", "B"),
            ("B is incorrect because of x; A is correct.", "A"),
            ("So B is wrong. C fits.", "C"),
            ("it can't be A or B, and C fails, leaving D", "D"),
            ("We estimate \\boxed{\\langle H\\rangle \\ll \\Delta E}.\n\n**Answer: D**", "D"),
            ("\\boxed{E = mc^2} holds, so option B is right.", "B"),
            ("<think>A? No.</think>So: C", "C"),
            ("The answer is A or B.", "!several_answers"),
            ("\\boxed{A or B or C}", "!several_answers"),
            ("A, B, C, D", "!several_answers"),
            ("A man walks into a bar. I like it.", "!not_found"),
            ("the answer is a prime", "!not_found"),
            ("\\boxed{}", "!empty"),
            ("<think>so B", "!unclosed_thinking"),
        ],
    )
    def test_letters(self, text: str, letter: str) -> None:
        """The letter chosen in the end, none where several are, none where the text names none."""
        assert outcome(choice_letter(text)) == letter

    @given(st.sampled_from("ABCD"), PLAIN.map(str.lower))
    def test_a_boxed_letter_decides(self, letter: str, before: str) -> None:
        """Text before a boxed letter changes nothing, and letters outside the options do not count."""
        assert choice_letter(f"{before}\nSo \\boxed{{{letter}}}.", "ABCD").answer == letter
        assert choice_letter(f"\\boxed{{{letter}}}", "EFG").answer is None
