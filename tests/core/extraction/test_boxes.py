"""The laws of boxes: balanced braces, the last one wins, neighbours form a group."""

from __future__ import annotations

from itertools import pairwise

import pytest
from completions import PLAIN, balanced, outcome
from hypothesis import given
from hypothesis import strategies as st

from rewarden.core.extraction import boxed_spans, extract


class TestBoxes:
    """Boxes: balanced braces, the last one wins, groups."""

    @given(balanced(), PLAIN, PLAIN)
    def test_content_is_what_the_braces_enclose(self, content: str, before: str, after: str) -> None:
        """Whatever is balanced comes back whole, and its span cuts it out of the completion."""
        text = f"{before}\\boxed{{{content}}}{after}"
        found = extract(text, "last_boxed")
        assert found.answer == content.strip()
        assert found.method == "boxed"
        assert found.span is not None
        assert text[slice(*found.span)] == content

    @given(st.text(max_size=200).filter(lambda text: "<" not in text and "◁" not in text and "THINK" not in text))
    def test_text_before_a_sentence_with_a_box_changes_nothing(self, before: str) -> None:
        """A last box decides alone: any text before its sentence leaves the answer as it is."""
        assert extract(before + "\nWrong. Therefore it must be \\boxed{41}.").answer == "41"

    @given(
        st.lists(
            st.sampled_from(["\\boxed{", "\\boxed{1}, ", "{", "}", "$", "\\[", "the answer is 3 ", "<answer>"]),
            max_size=9,
        )
    )
    def test_markers_before_it_change_nothing(self, before: list[str]) -> None:
        """Nor do markers, closed or not, when another sentence stands between."""
        assert extract("".join(before) + ".\nWrong. Therefore it must be \\boxed{41}.").answer == "41"

    @given(balanced(), st.sampled_from([".", "$.", "\\).", "**", "\n\n", " dollars.", " \\text{cm}$", " Done!"]))
    def test_what_follows_a_box_changes_nothing(self, content: str, after: str) -> None:
        """Delimiters, units, punctuation and Markdown after a box are no part of the answer."""
        assert extract(f"So \\boxed{{{content}}}{after}").answer == content.strip()

    @given(balanced(), st.integers(1, 12))
    def test_nested_boxes_are_one(self, content: str, depth: int) -> None:
        """A box that only holds a box is that box."""
        assert extract("\\boxed{" * depth + content + "}" * depth).answer == content.strip()

    @given(
        st.lists(st.integers(0, 99), min_size=2, max_size=6, unique=True), st.sampled_from([", ", " and ", "; ", ""])
    )
    def test_neighbouring_boxes_are_a_list(self, values: list[int], joint: str) -> None:
        """Boxes joined by nothing, commas or "and" are one list answer, in order."""
        text = "The solutions are " + joint.join(f"\\boxed{{{value}}}" for value in values) + "."
        assert extract(text).answer == ", ".join(map(str, values))

    @given(
        st.lists(st.integers(0, 99), min_size=2, max_size=6, unique=True),
        st.sampled_from([" or ", ", or maybe ", " / "]),
    )
    def test_alternatives_are_no_answer(self, values: list[int], joint: str) -> None:
        """Different boxes joined by "or" are several answers, whichever of them is right."""
        found = extract(joint.join(f"\\boxed{{{value}}}" for value in values))
        assert outcome(found) == "!several_answers"
        assert found.candidates == tuple(map(str, values))

    def test_equal_alternatives_are_one_answer(self) -> None:
        """Saying the same answer twice is not hedging."""
        assert extract("\\boxed{5} or \\boxed{5}").answer == "5"

    @pytest.mark.parametrize(
        "between",
        [
            ". Wait, actually ",
            ", no, ",
            ", which is wrong. So ",
            ".\n\n**Final Answer**\n",
            ", so m+n=",
            " = ",
            "; but then ",
        ],
    )
    def test_the_last_of_a_sequence_wins(self, between: str) -> None:
        """A box after a retraction, a step or a heading replaces the one before it."""
        assert extract(f"It is \\boxed{{8}}{between}\\boxed{{11}}.").answer == "11"

    @pytest.mark.parametrize(
        ("text", "answer"),
        [
            (r"\boxed{5} hours and \boxed{20} minutes", "5, 20"),
            (r"$y_1 = \boxed{x} \) and \( y_2 = \boxed{2x}$", "x, 2x"),
            (r"\boxed{(3, 3)} \text{ for part (a) and } \boxed{(1, 1)}", "(3, 3), (1, 1)"),
            (r"\boxed{\frac13} \approx \boxed{0.33}", r"\frac13"),
            (r"\boxed{1} and or thus but \boxed{2} and \boxed{3}", "2, 3"),
        ],
    )
    def test_units_and_labels_between_boxes(self, text: str, answer: str) -> None:
        """Units and labels do not break a list; an approximation gives way to what it approximates."""
        assert extract(text).answer == answer

    @pytest.mark.parametrize(
        ("text", "answer"),
        [
            (r"\boxed 5", "5"),
            (r"$\boxed5$.", "5"),
            (r"$\boxed \frac{1}{2}$", r"\frac{1}{2}"),
            (r"\boxed " + "12" * 300, "12" * 300),
            (r"\fbox{7}", "7"),
            (r"\boxed {7}", "7"),
            ("\\boxed\n{7}", "7"),
            (r"\boxed{\{1,2\}}", r"\{1,2\}"),
            (r"\boxed{185\}", "185\\"),
            (r"\frac{\boxed{4}}{2}", "4"),
            (r"\boxed{\frac{\boxed{4}}{2}}", r"\frac{{4}}{2}"),
            (r"**Answer: \boxed{B}**", "B"),
        ],
    )
    def test_forms(self, text: str, answer: str) -> None:
        """The forms that models write a box in."""
        assert extract(text).answer == answer

    @pytest.mark.parametrize("text", [r"\boxed{12", r"\boxed{5} so \boxed{6", r"\boxed{\{1,2\}", r"\boxed{\frac{1}{2"])
    def test_a_cut_box_is_truncated(self, text: str) -> None:
        """A last box that never closes is no answer, whatever came before it."""
        assert outcome(extract(text)) == "!truncated"

    @pytest.mark.parametrize(
        "empty", ["\\boxed{}", "\\boxed{ \n}", "\\boxed{\\boxed{}}", "<answer></answer>", "<answer> </answer>"]
    )
    @pytest.mark.parametrize("before", ["", "The answer is 5. ", "\\boxed{5} is what I put into "])
    def test_an_empty_marker_is_no_answer(self, empty: str, before: str) -> None:
        """An empty marker is never filled from the text around it."""
        assert outcome(extract(before + empty)) == "!empty"

    @given(st.lists(balanced(), min_size=1, max_size=5))
    def test_spans_are_in_order_and_disjoint(self, contents: list[str]) -> None:
        """`boxed_spans` gives every outermost box once."""
        text = " + ".join(f"\\boxed{{{content}}}" for content in contents)
        boxes = boxed_spans(text)
        assert [box.content for box in boxes] == contents
        assert all(box.closed and text[box.start : box.end].endswith("}") for box in boxes)
        assert all(first.end <= second.start for first, second in pairwise(boxes))

    def test_spans_of_odd_boxes(self) -> None:
        """Outermost boxes only, bare ones too, and the last that never closes."""
        boxes = boxed_spans(r"\boxed{a\boxed{b}} \boxed 3 } \boxed{ \boxed{x} \boxed{5")
        assert [(box.content, box.closed) for box in boxes] == [
            (r"a\boxed{b}", True),
            ("3", True),
            ("x", True),
            ("5", False),
        ]
        assert boxed_spans(r"no \boxedtext here") == []
