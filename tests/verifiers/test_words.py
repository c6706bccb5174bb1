"""Texts as words: what is the same text, and what must stay different."""

from __future__ import annotations

from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewarden.verifiers.words import words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The U.S.A.", ["the", "usa"]),
        ("**Paris**", ["paris"]),
        ("«Paris»!", ["paris"]),
        ("well-known", ["well", "known"]),
        ("It's", ["its"]),
        ("1,234.50", ["1234.50"]),
        ("No.5", ["no", "5"]),
        ("Straße", ["strasse"]),
        ("ﬁne", ["fine"]),
        ("ＡＢＣ１", ["abc1"]),
        ("٣٫٥", ["3.5"]),
        ("日本語", ["日", "本", "語"]),
        ("東京Tower", ["東", "京", "tower"]),
        ("हिन्दी", ["हिन्दी"]),
        ("-5", ["-5"]),
        ("(−5)", ["-5"]),
        ("5-7", ["5", "7"]),
        ("$5", ["$", "5"]),
        ("50%", ["50", "%"]),
        ("C++", ["c", "+", "+"]),
        ("👍", ["👍"]),
        ("...", []),
        ("", []),
    ],
)
def test_words_of(text: str, expected: list[str]) -> None:
    """Case, typography and punctuation go; signs that carry meaning stay; scripts without spaces fall apart."""
    assert words(text) == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("3.5", "35"),
        ("-5", "5"),
        ("C#", "C"),
        ("C++", "C"),
        ("$5", "€5"),
        ("50%", "50"),
        ("résumé", "resume"),
        ("1.2", "12"),
    ],
)
def test_different_texts_stay_different(one: str, other: str) -> None:
    """What SQuAD's normalisation makes equal by dropping ASCII punctuation is not equal here."""
    assert words(one) != words(other)


@pytest.mark.parametrize(
    ("text", "articles", "expected"),
    [
        ("the Eiffel Tower", "keep", ["the", "eiffel", "tower"]),
        ("The Eiffel Tower", "leading", ["eiffel", "tower"]),
        ("Vitamin A", "leading", ["vitamin", "a"]),
        ("man on the moon", "drop", ["man", "on", "moon"]),
        ("The The", "drop", ["the", "the"]),
        ("A", "leading", ["a"]),
        ("A", "drop", ["a"]),
    ],
)
def test_articles(text: str, articles: str, expected: list[str]) -> None:
    """English articles are dropped as asked, but never all that there is."""
    assert words(text, articles) == expected  # type: ignore[arg-type]


@given(st.text(max_size=60))
def test_idempotent(text: str) -> None:
    """The words of the words are the words."""
    assert words(" ".join(words(text))) == words(text)


@given(st.text(max_size=60))
def test_case_does_not_matter(text: str) -> None:
    """A text and its casefolded form have the same words."""
    assert words(text.casefold()) == words(text)


@pytest.mark.parametrize(
    "piece",
    ["a" * 10, "1,000", "-.", "é\u0301", "日本", "\u0301\u0316", "😀 ", "".join(map(chr, range(0x100, 0x3000)))],
)
def test_a_megabyte_is_linear(piece: str) -> None:
    """No text is dear: a megabyte takes well under five seconds (about a tenth, undisturbed)."""
    start = perf_counter()
    words(piece * (1_000_000 // len(piece)))
    assert perf_counter() - start < 5
