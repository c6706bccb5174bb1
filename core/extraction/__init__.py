"""Finding the answer in a completion: the only place that does, used by every verifier."""

from __future__ import annotations

from .answer import Extraction, Policy, choice_letter, extract, extract_reference
from .boxes import Box, boxed_spans
from .letters import listed_letters, short_letters
from .thinking import strip_thinking, visible

__all__ = [
    "Box",
    "Extraction",
    "Policy",
    "boxed_spans",
    "choice_letter",
    "extract",
    "extract_reference",
    "listed_letters",
    "short_letters",
    "strip_thinking",
    "visible",
]
