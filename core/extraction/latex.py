r"""Reading through LaTeX dress: wrappers such as `\text{...}`, math delimiters, and braces.

Covered: commands that change how a text looks and not what it says, one or several around each other, and the four math
delimiters. Not covered: boxes (`boxes`), and commands with a meaning (`\frac`, `\sqrt`).
All functions take time linear in the length of the text.
"""

from __future__ import annotations

import re

WRAPPERS = (
    *("text", "textbf", "textit", "textmd", "textnormal", "textrm", "textsc", "textsf", "textsl", "texttt", "textup"),
    *("mathrm", "mathbf", "mathit", "mathsf", "mathtt", "mathnormal", "mathord", "boldsymbol", "bm"),
    *("mbox", "hbox", "emph", "operatorname", "underline", "bf", "rm", "it"),
)
"""Commands that only change how what they hold looks."""
WRAPPER = rf"\\(?:{'|'.join(WRAPPERS)})(?![A-Za-z])\*?"
"""A regular expression for one of them, without what it holds."""

_MAX_NESTING = 16
_MAX_BRACES = 20_000
_OPENING = re.compile(WRAPPER + r"\s*+\{")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_DELIMITERS = (("$$", "$$"), ("$", "$"), ("\\(", "\\)"), ("\\[", "\\]"))


def closing_brace(text: str, inner: int) -> int:
    """Index of the brace that closes the group whose content starts at `inner`, or -1."""
    end = text.find("}", inner)
    if end < 0:
        return -1
    if text.find("{", inner, end) < 0 and text.find("\\", inner, end) < 0:
        return end
    depth, escaped, stray = 1, 0, -1
    for braces, brace in enumerate(_BRACE.finditer(text, inner)):
        mark = brace[0]
        if mark == "}":
            depth -= 1
            if not depth:
                return brace.start()
        elif mark == "{":
            depth += 1
        elif mark == "\\{":
            escaped += 1
        elif mark == "\\}":
            escaped -= 1
            if escaped < 0 and depth == 1 and stray < 0:
                stray = brace.end() - 1
        if braces > _MAX_BRACES:
            return -1
    # `\boxed{185\}`: an escaped brace that closes nothing else was meant to close the box.
    return stray


def unwrap_text(text: str) -> str:
    r"""What `\text{...}` or like commands hold where they hold the whole text, stripped; else the text itself."""
    for _ in range(_MAX_NESTING):
        opening = _OPENING.match(text)
        if opening is None or closing_brace(text, opening.end()) != len(text) - 1:
            break
        text = text[opening.end() : -1].strip()
    return text


def unwrap_math(text: str) -> str | None:
    r"""The content of a text that is one math span (`$..$`, `$$..$$`, `\(..\)`, `\[..\]`) and nothing else, or None."""
    for left, right in _DELIMITERS:
        if len(text) > len(left + right) and text.startswith(left) and text.endswith(right):
            content = text[len(left) : -len(right)]
            plain = content.replace("\\$", "")
            if left not in plain and right not in plain and not content.endswith("\\"):
                return content.strip().rstrip(".,;") or None
    return None
