r"""Multiple choice: which letter the completion chooses.

Covered: letters A to J in any dress (`C`, `(C)`, `\boxed{\text{C}}`, `C. Paris`, "I think it's B"), and, where the
reference brings the options, an option named by its text. Not covered: questions with several right letters at once
(`AC`); a list of references means that any one of them is accepted.
"""

from __future__ import annotations

from collections.abc import Mapping
from string import ascii_letters
from typing import Any, NamedTuple, get_args

from ..core.extraction import (
    LETTERS,
    Extraction,
    Policy,
    choice_letter,
    extract,
    listed_letters,
    reference_letter,
    short_letters,
    unwrap_text,
)
from ..core.reasons import Reason
from ..core.verdict import Verdict, correct, incorrect
from .answer import AnswerScorer, BadReferenceError, accepted, check_choice, grade_answer, shown, with_evidence
from .unicode import normal_form

_KEYS = ("answer", "options")
_MARKERS = frozenset(["boxed", "answer_tag", "final_answer", "hash_marker"])
_MAX_LINE = 200


class Key(NamedTuple):
    """What a completion is compared with."""

    right: frozenset[str]
    """Accepted letters."""
    letters: str
    """The letters that there are, in order."""
    texts: Mapping[str, str]
    """The plain text of each option to its letter; empty when the reference brings no options."""
    fold: bool
    """Whether case is ignored in these texts."""

    def named(self, text: str) -> str | None:
        """The letter of the option with this text."""
        plain = _plain(text)
        return self.texts.get(plain.casefold() if self.fold else plain)


class ChoiceScorer(AnswerScorer):
    """Right when the completion chooses the reference's letter, and that one alone.

    `reference`: a letter (`C`, `(C)`, `C. Paris`), a list of accepted ones, or
    `{"answer": ..., "options": [texts] or {letter: text}}`, where the answer may also be the text of an option, and an
    option's text counts as choosing it. `letters` are those that options may have, in their order. `first_index`: 0 or
    1 when references are integers; None refuses them, because both conventions are in use.
    """

    name = "choice"

    def __init__(self, *, letters: str = LETTERS, policy: Policy = "lenient", first_index: int | None = None) -> None:
        check_choice("policy", policy, get_args(Policy))
        letters = str(letters).upper()
        if len(letters) < 2 or len(set(letters)) < len(letters) or not (letters.isascii() and letters.isalpha()):
            raise ValueError(f"letters must be two or more different letters of A to Z, not {letters!r}")
        if first_index not in (None, 0, 1) or isinstance(first_index, bool):
            raise ValueError(f"first_index must be 0, 1 or None, not {first_index!r}")
        self.letters = letters
        self.policy: Policy = policy
        self.first_index = first_index

    def config(self) -> Mapping[str, Any]:
        """The options."""
        return {"letters": self.letters, "policy": self.policy, "first_index": self.first_index}

    def read_reference(self, reference: Any) -> Key:
        """The letters that are right and those that there are."""
        options: dict[str, str] = {}
        if isinstance(reference, Mapping):
            unknown = sorted(str(key)[:40] for key in reference if key not in _KEYS)
            if unknown:
                raise BadReferenceError(f"the reference has unknown keys {unknown[:5]}; it may have {list(_KEYS)}")
            if reference.get("options") is not None:
                options = self._read_options(reference["options"])
            reference = reference.get("answer")
        fold = _case_is_idle(options)
        plain = {letter: _plain(text).casefold() if fold else _plain(text) for letter, text in options.items()}
        texts: dict[str, str] = {}
        for letter, text in plain.items():
            texts.setdefault(text, letter)
        key = Key(frozenset(), "".join(options) or self.letters, texts, fold)
        right = {self._read_letter(entry, key) for entry in accepted(reference)}
        # Two options of the same text are the same answer.
        alike = {letter for letter in plain if plain[letter] in {plain[other] for other in right}}
        return key._replace(right=frozenset(right | alike))

    def grade(self, completion: Any, reference: Key) -> Verdict:
        """Compare the chosen letter, or the option that is named by its text."""
        found, text = self._choose(completion, reference)

        def compare(letter: str) -> Verdict:
            if letter in reference.right:
                return correct()
            if letter in reference.letters:
                return incorrect()
            return incorrect(Reason.UNREADABLE_ANSWER, f"{shown(letter, 40)!r} is none of {reference.letters}")

        verdict = grade_answer(found, compare)
        return verdict if text in (None, found.answer) else with_evidence(verdict, {"text": shown(text)})

    def _choose(self, completion: Any, key: Key) -> tuple[Extraction, str | None]:
        """The chosen letter as the answer of an extraction, and the text that names it where that is not the letter."""
        marked = extract(completion, self.policy)
        if marked.method in _MARKERS or self.policy != "lenient":
            if marked.candidates:
                each = [self._letters_of(candidate, key) for candidate in marked.candidates]
                chosen = tuple(dict.fromkeys(letter for some in each for letter in some))
                if all(each):
                    return _extraction(chosen, marked), None
            elif marked.answer is None:
                return marked, None
            else:
                chosen = self._letters_of(marked.answer, key)
                if len(chosen) == 1:
                    chosen = listed_letters(_whole_line(marked), self.letters) or chosen
                if chosen or self.policy != "lenient":
                    return _extraction(chosen or (marked.answer,), marked), marked.answer
        elif key.texts:
            text = marked.shown.text
            named = key.named(text)
            if named is not None:
                return Extraction(named, "whole_text"), text
        return choice_letter(completion, self.letters), None

    def _letters_of(self, answer: str, key: Key) -> tuple[str, ...]:
        """The letters that a marked answer chooses, by letter or by the text of an option."""
        letters = short_letters(answer, self.letters)
        if len(letters) > 1 and key.named(answer) is not None:
            letters = ()
        if not key.texts:
            return letters
        if len(answer) == 1 and letters:
            return letters
        named = key.named(answer)
        if named is not None:
            return (named,)
        other = key.named(_plain(answer).partition(" ")[2]) if len(letters) == 1 else None
        return letters if other is None or other in letters else (*letters, other)

    def _read_options(self, options: Any) -> dict[str, str]:
        """Letter to text. Raises BadReferenceError."""
        if isinstance(options, (list, tuple)):
            if len(options) > len(self.letters):
                raise BadReferenceError(f"the reference has {len(options)} options for the letters {self.letters}")
            options = dict(zip(self.letters, options, strict=False))
        if not isinstance(options, Mapping) or not options:
            raise BadReferenceError(
                "the options must be a list of texts, or an object of letters to texts, and not empty"
            )
        read: dict[str, str] = {}
        for name, text in options.items():
            letter = str(name).strip("()[].: ").upper()
            if letter not in self.letters or len(letter) != 1 or letter in read:
                raise BadReferenceError(f"the option {shown(str(name), 40)!r} is not one of {self.letters}, once")
            if isinstance(text, bool) or not isinstance(text, (str, int, float)) or not str(text).strip():
                raise BadReferenceError(f"the option {letter} must be a text that is not empty, or a number")
            read[letter] = str(text)
        return read

    def _read_letter(self, entry: Any, key: Key) -> str:
        """The letter that a reference means. Raises BadReferenceError."""
        text = str(entry)
        letters = key.letters
        named = key.named(text)
        if named is not None and not (len(text) == 1 and text.upper() in letters):
            return named
        if not isinstance(entry, str) or entry.strip().isdecimal():
            if self.first_index is None:
                raise BadReferenceError(
                    f"the reference {shown(text, 40)} may count from 0 or from 1: write a letter, or set `first_index`"
                )
            place = int(entry) - self.first_index if len(text) < 10 and int(entry) == float(entry) else -1
            if not 0 <= place < len(letters):
                raise BadReferenceError(f"the reference {shown(text, 40)} counts past the options {letters}")
            return letters[place]
        letter = (reference_letter(text, ascii_letters, titled=True) or "").upper()
        if not letter:
            raise BadReferenceError(f"the reference {shown(text, 40)!r} is neither a letter nor the text of an option")
        if letter not in letters:
            raise BadReferenceError(f"the reference {shown(text, 40)!r} is none of the options {letters}")
        return letter


def _whole_line(found: Extraction) -> str:
    """A statement to the end of its line: an extracted one stops at a full stop, and so within `A. B. C.` too."""
    if found.method != "final_answer" or found.span is None:
        return ""
    start = found.span[0]
    return found.shown.text[start : start + _MAX_LINE].partition("\n")[0].strip()


def _extraction(letters: tuple[str, ...], found: Extraction) -> Extraction:
    if len(letters) == 1:
        return Extraction(letters[0], found.method, span=found.span)
    return Extraction(None, found.method, letters, "several_answers")


def _plain(text: str) -> str:
    """An option's text without its typography; brackets and signs stay, because `(0, 1)` is not `[0, 1]`."""
    return " ".join(normal_form(unwrap_text(text.strip("*_`\"'“”$ \n")), "NFKC").split()).rstrip(".,;: ")


def _case_is_idle(options: Mapping[str, str]) -> bool:
    """Whether case tells no two options apart, as it does `Mb` and `MB`."""
    plain = {_plain(text) for text in options.values()}
    return len({text.casefold() for text in plain}) == len(plain)
