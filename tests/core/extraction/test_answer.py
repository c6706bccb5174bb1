"""The laws of answer extraction as a whole: policies, references, hostile and real completions."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from completions import PLAIN, UNITS, outcome
from hypothesis import given, settings
from hypothesis import strategies as st

from rewarden.core.extraction import boxed_spans, choice_letter, extract, extract_reference, reference_letter


class TestPolicies:
    """What each policy accepts."""

    @pytest.mark.parametrize(
        ("text", "strict", "last_boxed", "lenient"),
        [
            (r"so \boxed{5}", "5", "5", "5"),
            ("<answer>5</answer>", "5", "!not_found", "5"),
            ("the answer is 5.", "!not_found", "!not_found", "5"),
            ("so 5 apples are left in the big basket", "!not_found", "!not_found", "5"),
            (r"\boxed{4}<answer>5</answer>", "5", "4", "5"),
            (r"<answer>5</answer>, I mean \boxed{4}", "4", "4", "4"),
            ("\\boxed{4}\n\n**Answer: 5**", "4", "4", "5"),
            (r"<answer>so \boxed{4}</answer>", "4", "4", "4"),
            (r"\boxed{4} <answer>5", "!truncated", "4", "!truncated"),
        ],
    )
    def test_policies(self, text: str, strict: str, last_boxed: str, lenient: str) -> None:
        """Strict needs a box or a tag, last_boxed a box, lenient takes what is there; the last one wins."""
        assert outcome(extract(text, "strict")) == strict
        assert outcome(extract(text, "last_boxed")) == last_boxed
        assert outcome(extract(text, "lenient")) == lenient

    def test_tags(self) -> None:
        """Alternatives in tags are several answers; an opening tag may be prefilled; delimiters are stripped."""
        assert outcome(extract("<answer>5</answer> or <answer>6</answer>")) == "!several_answers"
        assert extract("<answer>5</answer> Wait, that is wrong, it is <answer>6</answer>").answer == "6"
        assert extract("12</answer>").answer == "12"
        assert extract("<answer>$\\frac{3}{4}$</answer>").answer == "\\frac{3}{4}"

    @pytest.mark.parametrize(
        "residue",
        [
            "{{reference}}",
            "{{ answer }}",
            "...",
            "…",
            "your answer",
            "\\text{answer}",
            "<answer>",
            "[your answer here]",
            "?",
        ],
    )
    def test_residue_of_a_template_is_no_answer(self, residue: str) -> None:
        """A placeholder copied from the prompt answers nothing."""
        assert outcome(extract(f"\\boxed{{{residue}}}")) == "!placeholder"
        if "<" not in residue:
            assert outcome(extract(f"<answer>{residue}</answer>")) == "!placeholder"

    def test_braces_around_a_value_are_no_residue(self) -> None:
        """`{72}` and `{{x}}` are LaTeX."""
        assert extract("\\boxed{{{72}}}").answer == "{{72}}"
        assert extract("\\boxed{{{x}}}").answer == "{{x}}"


class TestReferences:
    """Gold answers."""

    @pytest.mark.parametrize(
        "gold",
        [
            "72",
            "-5",
            "7,425,000",
            "\\frac{1}{2}",
            "x \\in [-3,8]",
            "11:30",
            "$20",
            "a=2 \\text{ or } a=-5",
            "(D) Alina",
            "1, 2, 3",
        ],
    )
    def test_bare_golds_come_back(self, gold: str) -> None:
        """A bare gold answer is what it is."""
        assert extract_reference(gold).answer == gold
        assert extract_reference(f" {gold}\n").answer == gold

    @pytest.mark.parametrize(
        ("gold", "answer"),
        [
            ("$[0,1)$", "[0,1)"),
            ("$$f(y) = y$$", "f(y) = y"),
            ("$1331$ and $1728$", "1331 and 1728"),
            ("$(11,7)or(7,11)$", "(11,7)or(7,11)"),
            ("$125$ miles", "125 miles"),
            ("\\boxed{1} papers and \\boxed{2} bins", "1, 2"),
            ("\\boxed{2} or \\boxed{3}", "2 or 3"),
            ("Half of it is 24.\n#### 72", "72"),
            ("Solving for $x$ yields $x=1/5$, or $\\boxed{20}$ percent.", "20"),
            (
                "First add them all. " * 12 + "Final Answer: The final answer is $28 \\%$. I hope it is correct.",
                "28 \\%",
            ),
            ("We multiply both sides. " * 12 + "So the sum is $x+1$.", "x+1"),
        ],
    )
    def test_delimiters_and_solutions(self, gold: str, answer: str) -> None:
        """Delimiters are no part of a gold answer; a whole solution counts by its end."""
        assert extract_reference(gold).answer == answer

    def test_bad_references(self) -> None:
        """A reference without an answer says so: the caller does not grade then."""
        assert outcome(extract_reference("  ")) == "!empty"
        assert outcome(extract_reference("so \\boxed{5 and")) == "!truncated"
        assert outcome(extract_reference("so \\boxed{}")) == "!empty"


class TestTags:
    """Answer tags."""

    @pytest.mark.parametrize("cut", ["<answer>2", "<answer>", "so <answer> 2 </answ"])
    def test_a_later_tag_that_is_cut_takes_the_earlier_one_back(self, cut: str) -> None:
        """The last marker counts: where it never closes, the completion was cut inside its answer."""
        assert outcome(extract(f"<answer>1</answer> No, wait: {cut}")) == "!truncated"

    @given(PLAIN, st.sampled_from(["{}", "<answer>{}</answer>", "\\boxed{{{}}}", "The answer is {}.", "#### {}"]))
    def test_a_span_is_where_the_answer_stands(self, before: str, form: str) -> None:
        """The span of an answer lies within the shown text, which is what was looked at, and holds the answer."""
        text = f"<think>7</think>{before}\n" + form.format("23")
        found = extract(text)
        assert text[found.shown.offset :] == found.shown.text
        if found.span is not None and found.answer == "23":
            assert "23" in found.shown.text[slice(*found.span)]

    def test_a_span_is_known_where_parts_were_put_together(self) -> None:
        """Thinking in the middle of a text does not hide where the answer stands in what is left."""
        found = extract("It is <think>so</think> \\boxed{5} km")
        assert found.span is not None
        assert found.shown.text[found.span[1] :] == "} km"


class TestReferenceLetters:
    """References that name an option."""

    @pytest.mark.parametrize(
        "reference",
        ["C", "(C)", "[C]", "C.", "C)", "**C**", "$C$", "\\text{C}", "\\textbf{(C)}", "\\boxed{C}",
         "\\boxed{\\text{(C)}}", "The answer is C", "answer: (C)", "\\(C\\)", " C ", "so\n#### C"],
    )  # fmt: skip
    def test_any_dress(self, reference: str) -> None:
        """A letter is a letter in any dress, with or without titles."""
        assert reference_letter(reference) == "C"
        assert reference_letter(reference, titled=True) == "C"

    @pytest.mark.parametrize("reference", ["C. Paris", "(C) Paris", "C: Paris", "[C] Paris", "C) the rest\nof it"])
    def test_titles_only_when_asked_for(self, reference: str) -> None:
        """A letter before the text of its option counts where there are options: `E. coli` is a name elsewhere."""
        assert reference_letter(reference) is None
        assert reference_letter(reference, titled=True) == "C"

    @pytest.mark.parametrize(
        "reference", ["", " ", "c", "K", "CD", "Vitamin C", "A cat", "5", "C + D", "C, D", "(C, D)"]
    )
    def test_what_is_none(self, reference: str) -> None:
        """Other letters, other case and letters within something else are none."""
        assert reference_letter(reference) is None
        assert reference_letter(reference, titled=True) is None


class TestHostile:
    """No text takes long."""

    @pytest.mark.parametrize("unit", UNITS)
    def test_a_repeated_unit(self, unit: str) -> None:
        """A megabyte of anything is settled in a fraction of a second (the margin is tenfold and more)."""
        text = unit * (1_000_000 // len(unit))
        started = time.perf_counter()
        for completion in (text, "\\boxed{7} " + text, text + "\n\\boxed{7}"):
            extract(completion)
        choice_letter(text)
        extract_reference(text)
        assert time.perf_counter() - started < 5

    @settings(max_examples=30, deadline=None)
    @given(st.lists(st.sampled_from(UNITS), min_size=1, max_size=6))
    def test_repeated_mixtures(self, units: list[str]) -> None:
        """Nor is there a mixture of such units that does."""
        unit = "".join(units)
        text = unit * (200_000 // len(unit))
        started = time.perf_counter()
        extract(text)
        extract_reference(text)
        boxed_spans(text)
        choice_letter(text)
        assert time.perf_counter() - started < 3

    @settings(max_examples=300)
    @given(st.text(max_size=60), st.lists(st.sampled_from(UNITS), max_size=12))
    def test_nothing_raises(self, text: str, units: list[str]) -> None:
        """Whatever a model writes, extraction answers, and an answer is never blank."""
        for completion in (text + "".join(units), "".join(units) + text):
            for found in (extract(completion), choice_letter(completion), extract_reference(completion)):
                assert (found.answer is None) == (found.problem is not None)
                assert found.answer is None or found.answer.strip()


class TestRealRollouts:
    """Real completions, where they are at hand."""

    @pytest.mark.parametrize(("name", "allowed"), [("gsm8k_tora", 8), ("math_qwen_cot", 3)])
    def test_agreement_with_the_original_scripts(self, shared: Path, name: str, allowed: int) -> None:
        """What we extract is what the original scripts did, but for percent signs and several boxes."""
        lines = (shared / "data" / "rollouts" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        different = [
            row["id"]
            for row in map(json.loads, lines)
            if not _same(extract(row["completion"]).answer or "", row["upstream_pred"])
        ]
        assert len(different) <= allowed, different


def _same(ours: str, theirs: str) -> bool:
    def plain(answer: str) -> str:
        for old, new in (
            ("\\%", ""),
            ("%", ""),
            ("\\$", ""),
            ("dfrac", "frac"),
            ("tfrac", "frac"),
            ("\\!", ""),
            (" ", ""),
        ):
            answer = answer.replace(old, new)
        return answer.split("\\text")[0].rstrip(".").replace("\n", "")

    left, right = plain(ours), plain(theirs)
    try:
        return left == right or float(left.replace(",", "")) == float(right.replace(",", ""))
    except ValueError:
        return False
