"""The last answer tag of a text: `<answer>...</answer>`, in that spelling.

Covered: tags that never close (generation was cut), and a closing tag alone (the opening one was prefilled in the
prompt). Not covered: attributes, and tags of other names.
"""

from __future__ import annotations

from typing import NamedTuple

_OPEN, _CLOSE = "<answer>", "</answer>"
_JOINTS = frozenset(["", "or", "and", "/", "|", "or maybe", "maybe"])
_MAX_GAP = 40


class Tag(NamedTuple):
    """What a tag holds is `text[start:end]`; `opening` is where the tag itself begins, 0 where it was prefilled."""

    opening: int
    start: int
    end: int
    closed: bool


def last_tag(text: str, floor: int = 0) -> Tag | None:
    """The last answer tag that ends at or after `floor`, or None. One that is cut counts, up to the end of the text."""
    close = text.rfind(_CLOSE, floor)
    late = text.rfind(_OPEN, max(close, floor))
    if late >= 0:
        return Tag(late, late + len(_OPEN), len(text), closed=False)
    if close < 0:
        return None
    opening = text.rfind(_OPEN, 0, close)
    return Tag(opening, opening + len(_OPEN), close, closed=True) if opening >= 0 else Tag(0, 0, close, closed=True)


def offered_with(text: str, tag: Tag) -> str:
    """What the tag just before this one holds where the two are offered together, or an empty string."""
    before = text.rfind(_CLOSE, max(0, tag.opening - _MAX_GAP), tag.opening)
    if before < 0 or text[before + len(_CLOSE) : tag.opening].strip(" \t\r\n,;.").lower() not in _JOINTS:
        return ""
    start = text.rfind(_OPEN, 0, before)
    return text[start + len(_OPEN) : before].strip() if start >= 0 else ""
