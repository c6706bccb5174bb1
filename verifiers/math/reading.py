"""One answer as the comparing layers see it: normalised, parsed, with what could not be read said plainly."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from . import fuel, vocabulary, words
from .atoms import TooDeepError, UnreadableError
from .forms import shape
from .nodes import Node
from .normalise import normalise
from .options import MathOptions
from .parser import parse

_CACHED_LENGTH = 400
_COMMAND = re.compile(r"\\([A-Za-z]+)")
_LAST_LAYER = frozenset("sum prod int iint iiint oint lim limsup liminf det cases vmatrix".split())
_KNOWN = frozenset(
    vocabulary.SKIPPED | vocabulary.TRANSPARENT | vocabulary.SKIPPED_WITH_ARGUMENT | vocabulary.GREEK
    | set(vocabulary.FUNCTIONS) | set(vocabulary.OPERATORS) | set(vocabulary.CONSTANTS) | vocabulary.NAMED_SETS
    | set("frac dfrac tfrac cfrac binom dbinom tbinom sqrt overline bar begin end mathbb not".split())
    | set("cancel bcancel xcancel sout".split())
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reading:
    """`node` is None when the text is outside the grammar; `words` marks answers made of words."""

    text: str
    """Normalised text."""
    node: Node | None
    """What it states."""
    words: bool = False
    reason: str | None = None
    """`empty`, `unreadable` or `too_complex` where `node` is None."""

    @property
    def for_last_layer(self) -> bool:
        """Whether another LaTeX parser could read what this one cannot: it is LaTeX, and not prose."""
        if self.node is not None or self.reason != "unreadable":
            return False
        commands = _COMMAND.findall(self.text)
        return any(name in _LAST_LAYER or name not in _KNOWN for name in commands) and not self.words


def read(text: str, options: MathOptions) -> Reading:
    """Read one answer with a tank of its own (see `fuel`); never raises, linear in the length. Short ones are kept."""
    if len(text) <= _CACHED_LENGTH:
        return _cached(text, options)
    return _read(text, options)


def _read(text: str, options: MathOptions) -> Reading:
    fuel.refill()
    text = text.strip()
    if len(text) > options.max_length:
        return Reading(text, None, reason="too_complex")
    text = normalise(text)
    if not text or not any(char.isalnum() or char in "\\{∅" for char in text):
        return Reading(text, None, reason="empty")
    if len(text) > options.max_length:
        return Reading(text, None, reason="too_complex")
    is_words = words.is_words(text)
    named = words.as_set(text) if is_words else None
    if named is not None:
        return Reading(text, named, is_words)
    try:
        node = shape(parse(text, options.max_nodes), options.chain)
    except (TooDeepError, fuel.ExhaustedError, RecursionError):
        return Reading(text, None, is_words, "too_complex")
    except UnreadableError:
        blank = not any(char.isalnum() or char == "\\" for char in words.bare(text))  # \text{}
        return Reading(text, None, is_words, "empty" if blank else "unreadable")
    if node.op == "list" and len(node.args) * 2 > options.max_nodes:
        return Reading(text, None, reason="too_complex")
    return Reading(text, node, is_words)


_cached = functools.lru_cache(maxsize=4_096)(_read)
