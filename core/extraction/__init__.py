"""Finding the answer in a completion: the only place that does, used by every verifier."""

from __future__ import annotations

from .answer import Extraction, Policy, choice_letter, extract, extract_reference, reference_letter
from .boxes import Box, boxed_spans
from .latex import WRAPPER, unwrap_math, unwrap_text
from .letters import LETTERS, listed_letters, short_letters
from .tags import Tag, last_tag
from .thinking import Visible, strip_thinking, visible

__all__ = [
    "LETTERS",
    "WRAPPER",
    "Box",
    "Extraction",
    "Policy",
    "Tag",
    "Visible",
    "boxed_spans",
    "choice_letter",
    "extract",
    "extract_reference",
    "last_tag",
    "listed_letters",
    "reference_letter",
    "short_letters",
    "strip_thinking",
    "unwrap_math",
    "unwrap_text",
    "visible",
]
