"""The laws of statements: "the answer is 6" gives 6, and only that."""

from __future__ import annotations

import pytest
from completions import outcome

from rewarden.core.extraction import extract, extract_reference


class TestStatements:
    """The lenient policy: statements of an answer."""

    @pytest.mark.parametrize(
        ("text", "answer"),
        [
            ("Therefore the answer is -3", "-3"),
            ("The answer is 6. We had 3 steps and 2 cases.", "6"),
            ("Final answer: -3.5", "-3.5"),
            ("Answer: $13$", "13"),
            ("**Answer:** 13", "13"),
            ("**Final Answer**\n\n42", "42"),
            ("## Answer\n\n$x^2$", "x^2"),
            ("The final answer is:\n\n$$\\frac{3}{4}$$", "\\frac{3}{4}"),
            ('Final Answer: The final answer is \\"$12 $ and $13 $\\". I hope it is correct.', "12, 13"),
            ("Final Answer: The largest $n$ is 34.", "34"),
            ("Final Answer: Jane started growing 3 hours ago. I hope it is correct.", "3"),
            ("The answer is 12 miles.", "12 miles"),
            ("The answer is 3 million.", "3 million"),
            ("The answer is 2 hours and 30 minutes.", "2 hours and 30 minutes"),
            ("The answer is 120 square meters in total for the whole garden", "120"),
            ("The answer is 42, since 6*7=42.", "42"),
            ("So the final answer is 12 because 3*4 is 12", "12"),
            ("The answer is x^2 + 3x - 5.", "x^2 + 3x - 5"),
            ("The answer is 9^(9^(9^9))", "9^(9^(9^9))"),
            ("The answer is $18.", "18"),
            ("The answers are $2$, $3$ and $5$.", "2, 3, 5"),
            ("The answer is Sunday.", "Sunday"),
            ("the answer is not 5. The answer is 7", "7"),
            ("The answer to the first question is 9.", "9"),
            ("答案是 42。", "42"),
            ("La respuesta es 12.", "12"),
            ("Die Antwort ist 3,5.", "3,5"),
            ("La réponse est $\\frac{1}{2}$.", "\\frac{1}{2}"),
            ("Ответ: 15", "15"),
            ("2+40=42\n#### 42\n and that is consistent.", "42"),
            ("#### $18", "18"),
            ("#### -1,234", "-1,234"),
            ("### Step 1\n#### Step 2: add\nso the answer is 5", "5"),
            ("The answer is 5\n#### 6", "6"),
        ],
    )
    def test_statements(self, text: str, answer: str) -> None:
        """A statement gives its value, without what the sentence says around it."""
        assert extract(text).answer == answer

    @pytest.mark.parametrize(
        "text", ["The answer is 5 or 6.", "The answer is $5$ or $6$", "Answer: either 5, 6 or 7", "5, 6 or 7"]
    )
    def test_hedges(self, text: str) -> None:
        """Alternatives in prose are several answers."""
        found = extract(text)
        assert outcome(found) == "!several_answers"
        assert found.candidates[:2] == ("5", "6")

    @pytest.mark.parametrize(
        ("after", "answer"),
        [
            ("\n\n**Answer: D**", "D"),
            (" Final Answer: The final answer is $(0, 1)$. I hope it is correct.", "(0, 1)"),
            ("\n\nFinal Answer: The largest n is 34.", "34"),
            ("\nThe answer is 12.", "12"),
            (" The answer is correct.", "7"),
            ("\nAnswer: See above.", "7"),
            (" Check: if the answer is 8, then it fails.", "7"),
            (" My first answer was 8.", "7"),
            (" The answer is unique.", "7"),
            (" This answer is verified by the second method.", "7"),
        ],
    )
    def test_a_statement_after_a_box(self, after: str, answer: str) -> None:
        """A later outright statement beats a box; a remark about the answer does not."""
        assert extract("We get \\boxed{7}." + after).answer == answer


@pytest.mark.parametrize("value", ["5", "-3", "1,234", "0.5"])
@pytest.mark.parametrize(
    "text",
    [
        "It is not {}",
        "The answer is not {}.",
        "It isn't {}",
        "Not ${}$.",
        "wrong answer: {}",
        "Could it be {}?",
        "x > {}",
    ],
)
def test_what_is_rejected_or_asked_is_no_answer(text: str, value: str) -> None:
    """A value in prose that the text denies, bounds or asks about is not offered as the answer."""
    assert extract(text.format(value)).answer != value


@pytest.mark.parametrize(
    "text",
    [
        "The answer is {} (or {}).",
        "The answer is {}, or possibly {}.",
        "The answer is ${}$, alternatively ${}$.",
        "\\boxed{{{}}} or {}",
        "\\boxed{{{}}}, but could also be {}",
        "$\\boxed{{{}}}$ or ${}$",
        "**{}** or **{}**",
        "I guess {} or maybe {}",
    ],
)
@pytest.mark.parametrize(("one", "two"), [("5", "6"), ("-3", "3"), ("0.5", "0.25")])
def test_a_hedge_offers_several_answers(text: str, one: str, two: str) -> None:
    """Two values offered side by side are no answer, wherever the marker stands."""
    found = extract(text.format(one, two))
    assert (found.answer, found.problem, found.candidates) == (None, "several_answers", (one, two))


@pytest.mark.parametrize(
    "text", ["The answer is 5, because 6 is even.", "\\boxed{5} or so", "\\boxed{5}. Here 5 or 6 would do."]
)
def test_what_is_no_hedge_keeps_its_answer(text: str) -> None:
    """Other numbers nearby do not spoil an answer."""
    assert extract(text).answer == "5"


@pytest.mark.parametrize("text", ["The answer is {}", "Answer: {}", "**Final answer:** ${}$"])
def test_a_reference_that_states_its_answer_is_that_answer(text: str) -> None:
    """A short sentence as a gold answer counts by what it states."""
    assert extract_reference(text.format("5")).answer == "5"
