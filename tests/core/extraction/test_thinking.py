"""The laws of what a completion shows: last assistant message, first turn, no thinking."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from completions import PLAIN, outcome
from hypothesis import given

from rewarden.core.extraction import extract, strip_thinking


class TestThinking:
    """Thinking never counts."""

    @given(PLAIN, PLAIN)
    def test_complete_blocks_vanish(self, thought: str, said: str) -> None:
        """What is outside the block is all that is left."""
        assert strip_thinking(f"<think>{thought}</think>{said}") == (said, None)
        assert strip_thinking(f"{thought}</think>{said}") == (said, None)
        assert strip_thinking(said) == (said, None)

    @given(PLAIN, PLAIN)
    def test_unclosed_thinking_hides_what_follows(self, said: str, thought: str) -> None:
        """After an opening tag without a closing one there is no answer."""
        assert strip_thinking(f"{said}<think>{thought}") == (said, "unclosed_thinking")
        assert outcome(extract(f"{said}<think>{thought}\\boxed{{5}}")) == "!unclosed_thinking"

    @pytest.mark.parametrize(
        ("opening", "closing"),
        [
            ("<think>", "</think>"),
            ("<thinking>", "</thinking>"),
            ("<reasoning>", "</reasoning>"),
            ("◁think▷", "◁/think▷"),
            ("[THINK]", "[/THINK]"),
            ("<|begin_of_thought|>", "<|end_of_thought|><|begin_of_solution|>"),
            ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
        ],
    )
    def test_variants(self, opening: str, closing: str) -> None:
        """Each pair of tags hides the box inside, and only that; cut inside, there is no answer."""
        assert extract(f"{opening}\\boxed{{4}} no{closing}It is \\boxed{{5}}").answer == "5"
        assert outcome(extract(f"{opening}\\boxed{{4}}")) == "!unclosed_thinking"
        assert outcome(extract(f"{opening}\\boxed{{4}}{closing}")) == "!empty"

    def test_several_blocks(self) -> None:
        """An answer between two blocks counts; one before an unopened end does not."""
        assert extract("<think>a</think> \\boxed{3} <think>b</think> Done.").answer == "3"
        assert outcome(extract("<think>a</think> \\boxed{3} </think> Done now.", "strict")) == "!not_found"

    def test_span_counts_from_the_start_of_the_completion(self) -> None:
        """The span is into the whole completion, thinking included."""
        text = "<think>\\boxed{1}</think>So \\boxed{23}."
        found = extract(text)
        assert found.span is not None
        assert found.shown.text[slice(*found.span)] == "23"

    def test_later_turns_do_not_count(self) -> None:
        """What a model makes up after its own end of turn is not its answer."""
        assert extract("It is \\boxed{5}<|im_end|>\n<|im_start|>assistant\n\\boxed{6}").answer == "5"
        assert extract("<|im_start|>assistant\nThe answer is 7.<|im_end|>").answer == "7"


class TestMessages:
    """Chat messages."""

    def test_the_last_assistant_message_counts(self) -> None:
        """Tool messages, users and earlier messages are not asked; reasoning is not read."""
        messages = [
            {"role": "assistant", "content": "\\boxed{1}"},
            {"role": "user", "content": "\\boxed{2}"},
            {"role": "assistant", "content": "\\boxed{3}", "reasoning_content": "\\boxed{4}"},
            {"role": "tool", "content": "\\boxed{5}"},
        ]
        assert extract(messages).answer == "3"
        assert extract([SimpleNamespace(**message) for message in messages]).answer == "3"

    def test_parts(self) -> None:
        """Text parts are put together; thinking and images are left out."""
        parts = [
            {"type": "thinking", "thinking": "\\boxed{1}"},
            {"type": "text", "text": "It is \\boxed{2"},
            {"type": "image_url", "image_url": {"url": "data:"}},
            {"type": "text", "text": "3}"},
        ]
        assert extract([{"role": "assistant", "content": parts}]).answer == "23"

    def test_a_message_that_calls_a_tool_only_is_passed_over(self) -> None:
        """The message before it, with content, counts."""
        messages = [
            {"role": "assistant", "content": "So \\boxed{3}"},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}], "reasoning_content": "hm"},
        ]
        assert extract(messages).answer == "3"

    def test_reasoning_alone_is_unclosed(self) -> None:
        """A last message that stopped in its reasoning has no answer, and earlier ones do not stand in for it."""
        messages = [
            {"role": "assistant", "content": "\\boxed{3}"},
            {"role": "assistant", "content": "", "reasoning_content": "so \\boxed{4}"},
        ]
        assert outcome(extract(messages)) == "!unclosed_thinking"

    def test_nothing(self) -> None:
        """No messages and blank texts are empty."""
        for completion in ([], [{"role": "user", "content": "\\boxed{3}"}], "", " \n"):
            assert outcome(extract(completion)) == "!empty"
