r"""Bring one answer string to plain ASCII LaTeX: Unicode spelling, math delimiters, trailing punctuation.

Covered: full-width and non-Latin digits and punctuation, super- and subscripts, vulgar fractions, Greek letters and
operator signs, invisible characters, `$`, `\(`, `\boxed` around the whole, doubled backslashes of escaped
sources. Not covered: LaTeX spacing and style commands inside (the tokenizer skips those).
"""

from __future__ import annotations

import re
import unicodedata

_GREEK = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "epsilon", "ζ": "zeta", "η": "eta", "θ": "theta",
    "ι": "iota", "κ": "kappa", "λ": "lambda", "μ": "mu", "ν": "nu", "ξ": "xi", "π": "pi", "ρ": "rho", "σ": "sigma",
    "τ": "tau", "υ": "upsilon", "φ": "phi", "χ": "chi", "ψ": "psi", "ω": "omega", "Γ": "Gamma", "Δ": "Delta",
    "Θ": "Theta", "Λ": "Lambda", "Ξ": "Xi", "Π": "Pi", "Σ": "Sigma", "Φ": "Phi", "Ψ": "Psi", "Ω": "Omega",
    "ϕ": "phi", "ϵ": "epsilon", "ϑ": "theta",
}  # fmt: skip
_SIGNS = {
    "−": "-", "–": "-", "—": "-", "‐": "-", "‑": "-", "‒": "-", "﹣": "-", "×": r"\times ", "⋅": r"\cdot ",
    "·": r"\cdot ", "∙": r"\cdot ", "•": r"\cdot ", "÷": r"\div ", "∕": "/", "⁄": "/", "±": r"\pm ", "∓": r"\mp ",
    "≤": r"\le ", "≦": r"\le ", "⩽": r"\le ", "≥": r"\ge ", "≧": r"\ge ", "⩾": r"\ge ", "≠": r"\ne ",
    "≈": r"\approx ", "≅": r"\cong ", "≡": r"\equiv ", "∞": r"\infty ", "√": r"\sqrt ", "∛": r"\sqrt[3]",
    "∜": r"\sqrt[4]", "∪": r"\cup ", "∩": r"\cap ", "∈": r"\in ", "∉": r"\notin ", "∅": r"\emptyset ",
    "⌀": r"\emptyset ", "∖": r"\setminus ", "⊂": r"\subset ", "⊆": r"\subseteq ", "°": r"^{\circ}",
    "º": r"^{\circ}", "∘": r"\circ ", "∠": r"\angle ", "ℝ": r"\mathbb{R}", "ℤ": r"\mathbb{Z}", "ℕ": r"\mathbb{N}",
    "ℚ": r"\mathbb{Q}", "ℂ": r"\mathbb{C}", "∑": r"\sum ", "∏": r"\prod ", "∫": r"\int ", "∂": r"\partial ",
    "⌊": r"\lfloor ", "⌋": r"\rfloor ", "⌈": r"\lceil ", "⌉": r"\rceil ", "⟨": r"\langle ", "⟩": r"\rangle ",
    "〈": r"\langle ", "〉": r"\rangle ", "′": "'", "’": "'", "‘": "'", "″": "''", "“": '"', "”": '"', "→": r"\to ",
    "。": ".", "．": ".", "、": ",", "，": ",", "；": ";", "：": ":", "∶": ":", "٪": "%", "％": "%", "٫": ".",
    "٬": ",", "ℯ": "e", "ⅈ": "i", "∧": " and ", "∨": " or ", "…": r"\ldots ", "€": r"\euro ", "£": r"\pounds ",
    "¥": r"\yen ", "￥": r"\yen ", "₹": r"\rupee ", "【": "(", "】": ")", "「": "", "」": "",
}  # fmt: skip
_SUPER = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱˣ", "0123456789+-=()nix")
_SUB = str.maketrans("₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₙₖₓ", "0123456789+-=()nkx")
_SUPER_RUN = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱˣ]+")
_SUB_RUN = re.compile("[₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₙₖₓ]+")
_METRES = re.compile(r"(?<=\d)\s?m(?=[²³](?![⁰¹²³⁴⁵⁶⁷⁸⁹]))")
"""`5m²` right after a digit is square metres: algebra is hardly ever typeset with a superscript character."""

_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufe00-\ufe0f]"
)
_BOX = re.compile(r"\s*+\\(?:boxed|fbox|framebox)\s*+\{")
_OPEN_BOXES = re.compile(rf"(?:{_BOX.pattern})+")
_BRACES = re.compile(r"\\.|[{}]", re.DOTALL)
_PASSES = 16
_BLANKS = " \t\r\n"
_ENDS = " \t\r\n.,;:!\\"
_DOUBLED = re.compile(r"(?<!\\)\\{2,}+(?=[a-zA-Z]{2,}|[%${}!,; ])")
_LATEX_LINE = re.compile(r"\\begin\s*\{")


def _unicode(text: str) -> str:
    text = _INVISIBLE.sub("", text)
    text = _METRES.sub(lambda _: r"\text{m}", text)
    text = _SUPER_RUN.sub(lambda m: "^{" + m.group().translate(_SUPER) + "}", text)
    text = _SUB_RUN.sub(lambda m: "_{" + m.group().translate(_SUB) + "}", text)
    out: list[str] = []
    for char in text:
        if char < "\x80":
            out.append(char)
        elif char in _SIGNS:
            out.append(_SIGNS[char])
        elif char in _GREEK:
            out.append("\\" + _GREEK[char] + " ")
        else:
            out.append(_other(char))
    return "".join(out)


def _other(char: str) -> str:
    digit = unicodedata.decimal(char, None)
    if digit is not None:
        return str(digit)
    folded = unicodedata.normalize("NFKC", char)
    if "\u2044" in folded:  # a vulgar fraction
        upper, _, lower = folded.partition("\u2044")
        return rf"\frac{{{upper}}}{{{lower}}}" if lower else folded
    if folded.isspace():
        return " "
    return folded


def brace_pairs(text: str) -> dict[int, int]:
    """Where each brace that is closed closes, by the index of its opening, in one pass; escaped ones do not count."""
    pairs: dict[int, int] = {}
    opened: list[int] = []
    for match in _BRACES.finditer(text):
        mark = match.group()
        if mark == "{":
            opened.append(match.start())
        elif mark == "}" and opened:
            pairs[opened.pop()] = match.start()
    return pairs


def _unwrap(text: str) -> str:
    """Drop the delimiters that hold the whole answer: one pair of dollars or brackets, then all boxes."""
    text = text.strip(_BLANKS)
    for left, right in (("$$", "$$"), ("$", "$"), ("\\(", "\\)"), ("\\[", "\\]")):
        if len(text) > len(left) + len(right) - 1 and text.startswith(left) and text.endswith(right):
            inner = text[len(left) : -len(right)]
            if left not in inner and right not in inner and not inner.endswith("\\"):
                text = inner
    text = _unboxed(text)
    if len(text) > 4 and text.startswith("**") and text.endswith("**"):  # Markdown
        text = text[2:-2]
    return text


def _unboxed(text: str) -> str:
    """The answer without the boxes around the whole, and without those that are cut off."""
    boxes = _OPEN_BOXES.match(text)
    if boxes is None:
        return text
    pairs = brace_pairs(text)
    start, end = 0, len(text)
    while (box := _BOX.match(text, start, boxes.end())) and (close := pairs.get(box.end() - 1, end)) >= end - 1:
        start = box.end()
        if close < end:
            end = len(text[start:close].rstrip(_BLANKS)) + start
    return text[start:end]


def _trim(text: str) -> str:
    end = len(text)
    while end and text[end - 1] in _ENDS:
        if text.endswith("...", 0, end):
            break
        # a factorial and an escaped brace or percent sign belong to the answer
        if text[end - 1] == "!" and end > 1 and text[end - 2] not in " \\!":
            break
        if text.endswith("!!", 0, end):
            break
        end -= 1
    return text[:end].lstrip(" \t\r\n,;:.") if not text[:1].isdigit() and text[:1] != "." else text[:end]


def normalise(text: str) -> str:
    """The answer as plain ASCII LaTeX; letters of other scripts stay as they are.

    Idempotent, linear in the length, never raises. The empty string means that nothing was left.
    """
    if not text.isascii():
        text = _unicode(text)
    for _ in range(_PASSES):
        before, text = text, _plain(text)
        if text == before:
            break
    return text


def _plain(text: str) -> str:
    text = _trim(_unwrap(text))
    if "$" in text:
        bare = text.replace("\\$", "")
        if bare.count("$") % 2 == 0:
            text = re.sub(r"(?<!\\)\$", " ", text)
    if "\\" in text:
        if "\\\\" in text and not _LATEX_LINE.search(text):
            text = _DOUBLED.sub(lambda _: "\\", text)
        text = text.replace("\\(", " ").replace("\\)", " ").replace("\\[", " ").replace("\\]", " ")
    return text
