"""Does an answer equal a reference? The door to the math verifier's layers.

`quick` runs in the caller, bounded by a counted budget of work (tens of milliseconds at most); it returns None for the
few pairs that need computer algebra, and for texts too long to be read there. `compare` goes on to that last layer
(`symbolic`), which has no limit of its own and belongs in a killable worker. How an answer is found in a completion is
the extraction's part.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from flint import fmpq, fmpz

from . import equivalence, fuel, nodes, scalars, words
from .exact import UndefinedError, exact
from .forms import FALSE
from .nodes import Node
from .options import DEFAULT, MathOptions
from .reading import Reading, read


@dataclass(frozen=True, slots=True)
class Match:
    """The result of one comparison; everything that the verdict's evidence needs."""

    equal: bool | None
    """None: the reference is at fault, see `reason`."""
    layer: str
    """Which layer decided: `string`, `text`, `rational`, `structure`, `residue`, `relation`, `bounds`,
    `numeric`, `tolerance` or `symbolic`."""
    reason: str | None = None
    """`bad_reference` where `equal` is None; else for an unequal answer `no_answer`, `unreadable`,
    `undefined`, `too_large` or `too_complex`, or None for a plain difference."""
    detail: str = ""
    """One line for a person."""
    reference: str = ""
    """The reference as compared."""
    answer: str = ""
    """The answer as compared."""


_LITERAL = re.compile(
    r"\s*(?:\\?\$)?([-+]?)(?:(\d+)|([1-9]\d{0,2}(?:,\d{3})+|\d*)(\.\d+)?|\\[dt]?frac\{(-?\d+)\}\{(\d+)\}|(\d+)/(\d+))\.?\s*"
)
_LITERAL_LENGTH = 40
IN_PROCESS = 2_000
"""Characters of an answer, and of a reference, that `quick` reads; real ones hardly ever have more than 200."""

_LONG_INTEGER = 1_000
_DECIMAL_COMMA = re.compile(r"(-?)(\d+|\d{1,3}(?:\.\d{3})+),(\d+)")
_SHOWN = 200
_NOTHING = nodes.num(fmpq(0))
_DEAR = "the reference alone takes more than the work allowed"


@functools.lru_cache(maxsize=65_536)
def _literal(text: str) -> int | fmpq | None:
    """The value of a plain integer, decimal or fraction; None for anything else. The hot path: no parse at all."""
    match = _LITERAL.fullmatch(text)
    if match is None:
        return None
    sign, whole, grouped, decimals, top, bottom, upper, lower = match.groups()
    value: int | fmpq
    if whole is not None:
        value = int(whole)
    elif top is not None or upper is not None:
        denominator = int(bottom or lower)
        if denominator == 0:
            return None
        value = fmpq(int(top or upper), denominator)
    elif grouped or decimals:
        value = int((grouped or "0").replace(",", ""))
        if decimals:
            value = fmpq(value * 10 ** (len(decimals) - 1) + int(decimals[1:]), 10 ** (len(decimals) - 1))
    else:
        return None
    return -value if sign == "-" else value


def quick(reference: str, answer: str, options: MathOptions = DEFAULT) -> Match | None:
    """Compare without computer algebra; None when only `compare` can tell.

    Deterministic, never raises, independent of load. About 1 us for numbers, 10-100 us for expressions.
    """
    if len(reference) <= _LITERAL_LENGTH and len(answer) <= _LITERAL_LENGTH:
        expected, given = _literal(reference), _literal(answer)
        if expected is not None and given is not None:
            return _literals(expected, given, reference, answer, options)
    if len(reference) > IN_PROCESS or len(answer) > IN_PROCESS:
        return _long(reference.strip(), answer.strip(), options)
    return _bounded(reference, answer, options)


def _literals(expected: int | fmpq, given: int | fmpq, reference: str, answer: str, options: MathOptions) -> Match:
    if expected == given:
        return Match(True, "rational", None, "", reference, answer)
    if (options.relative_tolerance > 0 or len(answer) > (options.float_digits or _LITERAL_LENGTH)) or (
        options.decimal_comma and ("," in reference or "," in answer)
    ):
        match = _bounded(reference, answer, options)
        if match is not None:
            return match
    return Match(False, "rational", None, "", reference, answer)


def _long(reference: str, answer: str, options: MathOptions) -> Match | None:
    """What needs no reading: the same text, plain integers, and what is too long for any layer."""
    shown = reference[:_SHOWN], answer[:_SHOWN]
    if reference == answer:
        return Match(True, "string", None, "", *shown)
    same = _same_integers(reference, answer)
    if same is not None:
        return Match(same, "string", None, "", *shown)
    if all(len(text) <= IN_PROCESS or len(text) > options.max_length for text in (reference, answer)):
        return _bounded(reference, answer, options)
    return None


def _bounded(reference: str, answer: str, options: MathOptions) -> Match | None:
    """Read both and compare within the counted budget; None for the last layer."""
    expected, given = read(reference, options), read(answer, options)
    fuel.refill()
    try:
        return _readings(expected, given, options)
    except (fuel.ExhaustedError, RecursionError):
        if expected.node is not None and _is_dear(expected.node, options):
            return _match(None, "structure", expected, given, "bad_reference", _DEAR)
        return _match(False, "structure", expected, given, "too_complex", "not settled within the work allowed")


def _match(
    equal: bool | None, layer: str, reference: Reading, answer: Reading, reason: str | None = None, detail: str = ""
) -> Match:
    return Match(equal, layer, reason, detail, reference.text[:_SHOWN], answer.text[:_SHOWN])


def _readings(reference: Reading, answer: Reading, options: MathOptions) -> Match | None:
    if reference.reason == "empty":
        return _match(None, "string", reference, answer, "bad_reference", "the reference is empty")
    if answer.reason == "empty":
        return _match(False, "string", reference, answer, "no_answer", "the answer is empty")
    if reference.text == answer.text or (
        (reference.node is None or answer.node is None)
        and len(reference.text) <= options.max_length
        and len(answer.text) <= options.max_length
        and words.squeezed(reference.text) == words.squeezed(answer.text)
    ):
        return _match(True, "string", reference, answer)
    if len(answer.text) > _LONG_INTEGER:
        same = _same_integers(reference.text, answer.text)
        if same is not None:
            return _match(same, "string", reference, answer)
    spoken = _words(reference, answer, options)
    if spoken is not None:
        return spoken
    if reference.node is None:
        if reference.for_last_layer and answer.reason != "too_complex":
            return None
        return _match(None, "string", reference, answer, "bad_reference", "the reference cannot be read")
    if reference.node == FALSE:
        return _match(None, "structure", reference, answer, "bad_reference", "the reference contradicts itself")
    if _is_undefined(reference.node):
        return _match(None, "rational", reference, answer, "bad_reference", "the reference has no value")
    if answer.node is None:
        if answer.for_last_layer:
            return None
        return _match(False, "string", reference, answer, answer.reason, "the answer cannot be read as a whole")
    return _nodes(reference, answer, reference.node, answer.node, options)


def _nodes(reference: Reading, answer: Reading, expected: Node, given: Node, options: MathOptions) -> Match | None:
    try:
        decision = equivalence.compare(expected, given, options)
    except UndefinedError:
        return _match(False, "structure", reference, answer, "undefined", "the answer has no value")
    if decision.equal is None and not _algebra_may_help(expected, given):
        return _match(
            False, decision.layer, reference, answer, "too_complex", "not settled within the precision allowed"
        )
    if decision.equal is None:
        return None
    if not decision.equal and options.decimal_comma:
        expected_again, given_again = _decimal_comma(reference, expected, 2), _decimal_comma(answer, given)
        if (expected_again is not expected) != (given_again is not given) and "num" in (expected.op, given.op):
            second = scalars.equal(expected_again, given_again)
            if second.equal:
                return _match(True, second.layer, reference, answer, None, "read with a decimal comma")
    return _match(decision.equal, decision.layer, reference, answer, decision.reason)


@functools.lru_cache(maxsize=256)
def _is_dear(expected: Node, options: MathOptions) -> bool:
    """Whether the reference alone is more than the work allowed: beside an answer that costs nothing."""
    fuel.refill()
    try:
        equivalence.compare(expected, _NOTHING, options)
    except UndefinedError:
        return False
    except (fuel.ExhaustedError, RecursionError):
        return True
    return False


def _algebra_may_help(expected: Node, given: Node) -> bool:
    """Whether anything in the pair is beyond evaluation: integrals, limits, sums over symbols, equations, sets."""
    return any(
        each.op in ("big", "chain", "equation", "domain", "inter", "minus", "in", "union")
        for node in (expected, given)
        for each in nodes.walk(node)
    ) or bool(nodes.symbols(expected) or nodes.symbols(given))


def _decimal_comma(reading: Reading, node: Node, least: int = 1) -> Node:
    """The number that `1000,99` or `1.234,56` is where a comma marks the decimals; else the node as it is.

    Fewer decimals than `least` are a list, unless a lone zero stands before them (`0,5`): `2,7` has two members.
    """
    if node.op != "list" or len(reading.text) > _LITERAL_LENGTH or "," not in reading.text:
        return node
    match = _DECIMAL_COMMA.fullmatch(words.bare(reading.text))
    if match is None:
        return node
    sign, whole, decimals = match.groups()
    if len(decimals) < least and whole != "0":
        return node
    size = fmpq(fmpz(whole.replace(".", "") + decimals), fmpz(10) ** len(decimals))
    return nodes.num(-size if sign else size)


def _same_integers(reference: str, answer: str) -> bool | None:
    """Whether two numbers, the answer a plain integer of any length, are one; None where either is something else.

    Equal digits are equal numbers: no arithmetic is worth it at this length.
    """
    if not (answer.isdigit() and answer.isascii()):
        return None
    digits = answer.lstrip("0") or "0"
    if reference.isdigit() and reference.isascii():
        return digits == (reference.lstrip("0") or "0")
    known = _literal(reference) if len(reference) <= _LITERAL_LENGTH else None
    return None if known is None else len(digits) <= _LITERAL_LENGTH and _literal(digits) == known


def _is_undefined(node: Node) -> bool:
    if node.op in nodes.STRUCTURES:
        return node.op == "ratio" and all(arg == nodes.ZERO for arg in node.args)
    try:
        exact(node)
    except UndefinedError:
        return True
    return False


def _words(reference: Reading, answer: Reading, options: MathOptions) -> Match | None:
    """Answers in words; None where at least the reference is mathematics that the answer may equal."""
    if reference.words and answer.words:
        cased = options.case_sensitive_text or (words.is_symbols(reference.text) and words.is_symbols(answer.text))
        fold = (lambda text: " ".join(words.squeezed(text).split())) if cased else words.key
        if fold(reference.text) == fold(answer.text):
            return _match(True, "text", reference, answer)
    letter = words.option_letter(reference.text)
    if letter is not None and answer.node == ("sym", (), letter):
        return _match(True, "text", reference, answer, None, "the option's letter")
    if (
        reference.node is not None
        and reference.node.op == "sym"
        and words.option_letter(answer.text) == reference.node.value
    ):
        return _match(True, "text", reference, answer, None, "the option's letter")
    if reference.node is not None and not reference.words:
        return None
    if reference.words and reference.node is not None:
        if answer.words:
            names = words.is_product(reference.text) and words.is_product(answer.text)
        else:
            names = words.is_product(reference.text) or words.is_segment(reference.text)
        if names or reference.node.op not in ("sym", "mul"):
            return None
    if reference.words or _prose(reference):
        if not answer.words and words.key(reference.text) == words.key(answer.text):
            return _match(True, "text", reference, answer)
        return _match(False, "text", reference, answer)
    return None


def _prose(reading: Reading) -> bool:
    """A reference that cannot be parsed but is plainly language (`June 20`): only the same words meet it."""
    if reading.node is not None or reading.reason != "unreadable":
        return False
    bare = words.bare(reading.text)
    return "\\" not in bare and not re.search(r"[=<>+*/^|]", bare) and re.search(r"[^\W\d_]{3,}", bare) is not None


def compare(
    reference: str | Sequence[str],
    answer: str,
    options: MathOptions = DEFAULT,
    stage: Callable[[str], None] | None = None,
) -> Match:
    """Compare an answer with a reference, or with any of several accepted ones.

    Args:
        reference: one reference or the accepted ones; an answer that meets any of them is equal. `bad_reference` is
            the outcome only when the answer meets none and at least one cannot be graded against.
        answer: the extracted answer.
        options: policies.
        stage: called with `reference`, `answer` or `compare` before the last layer works on it, so that who
            kills an overlong call knows whose fault it was.
    """
    if not isinstance(reference, str):
        return any_of(reference, lambda each: compare(each, answer, options, stage))
    match = quick(reference, answer, options)
    if match is None and (len(reference) > IN_PROCESS or len(answer) > IN_PROCESS):
        match = _bounded(reference, answer, options)
    if match is not None:
        return match
    from .symbolic import settle

    return settle(read(reference, options), read(answer, options), stage)


def any_of(references: Sequence[str], compare_one: Callable[[str], Match]) -> Match:
    """The best match over several accepted references: equal, else ungradable, else unequal."""
    if not references:
        return Match(None, "string", "bad_reference", "no accepted answer is given")
    worst: Match | None = None
    for each in references:
        match = compare_one(each)
        if match.equal:
            return match
        if worst is None or match.equal is None:
            worst = match
    assert worst is not None
    return worst
