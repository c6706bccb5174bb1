"""The last layer: math-verify's LaTeX parser and sympy, for what the bounded layers cannot read or settle.

Nothing here limits time or memory: it runs in a worker whose CPU budget is enforced by killing it. Unlike math-verify,
an answer must be parsed whole (no fallback to a leading number), an equation is never its right side, and a yes is
confirmed by evaluation at high precision, so small numbers are not zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .nodes import contains

if TYPE_CHECKING:
    from .compare import Match
    from .reading import Reading

_DIGITS = 60
_MAX_DIGITS = 2_000
_POINTS = (
    (0.731, 1.379, 2.113), (1.9137, 0.5171, 1.2713), (2.3713, 1.7131, 0.6137), (-1.3791, 0.7313, -2.2131),
    (0.3717, -1.9131, 2.7171), (7.3719, -11.7131, 4.9137), (-41.3719, 97.1317, -63.7131),
)  # fmt: skip
"""Values of the symbols, in the order of their names. Beyond the positive ones only real values say anything."""

_POSITIVE = 3

_EXAMPLES = (
    r"\frac{1}{2}",
    r"\int_0^1 x^2 dx",
    r"\sum_{n=1}^{\infty} \frac{1}{n^2}",
    r"\lim_{x \to 0} \frac{\sin x}{x}",
    r"(1, 2)",
    r"x = 3",
    r"\{1, 2\}",
    r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}",
    r"[1, 2) \cup (3, 4]",
)


class NotParsedError(Exception):
    """math-verify's parser rejects the text."""


def warm() -> None:
    """Pay for the imports and the parser's tables: one example of each shape."""
    for text in _EXAMPLES:
        try:
            _same(_parse(text), _parse(text))
        except NotParsedError:
            continue


def settle(reference: Reading, answer: Reading, stage: Callable[[str], None] | None = None) -> Match:
    """Decide a pair with computer algebra. May take unbounded time; raises nothing of its own."""
    from .compare import Match

    tell = stage or (lambda _: None)

    def match(equal: bool | None, reason: str | None = None, detail: str = "") -> Match:
        return Match(equal, "symbolic", reason, detail, reference.text[:200], answer.text[:200])

    def unsettled(why: str) -> Match:
        """Nobody can tell: the reference's fault where it alone holds an integral, a sum or a limit."""
        hard = [each.node is not None and contains(each.node, "big") for each in (reference, answer)]
        if hard == [True, False]:
            return match(None, "bad_reference", f"{why} (the reference is an unevaluated integral, sum or limit)")
        return match(False, "too_complex", why)

    tell("reference")
    try:
        expected = _parse(reference.text)
    except NotParsedError:
        if reference.node is None:
            return match(None, "bad_reference", "no parser can read the reference")
        return unsettled("not settled within the precision allowed")
    tell("answer")
    if (
        answer.node is not None
        and answer.node.op in ("equation", "named", "false")
        and (reference.node is None or reference.node.op != answer.node.op)
    ):
        return match(False, None, "a statement is not a value")
    try:
        given = _parse(answer.text)
    except NotParsedError:
        return match(False, "unreadable", "no parser can read the answer as a whole")
    tell("compare")
    verdict = _same(expected, given)
    if verdict is None:
        return unsettled("algebra does not settle it")
    return match(verdict)


def _parse(text: str) -> Any:
    from latex2sympy2_extended import NormalizationConfig, latex2sympy

    config = NormalizationConfig(
        basic_latex=True, units=False, malformed_operators=True, nits=False, boxed="none", equations=False
    )
    try:
        parsed = latex2sympy(text, is_real=None, convert_degrees=False, normalization_config=config)
    except MemoryError:
        raise
    except Exception as error:
        raise NotParsedError(text[:80]) from error
    if parsed is None or isinstance(parsed, list | tuple):
        raise NotParsedError(text[:80])
    return parsed


def _same(first: Any, second: Any) -> bool | None:
    """Equality of two sympy objects; None where simplification does not settle it."""
    import sympy

    try:
        if first == second:
            return True
        if isinstance(first, sympy.Expr) and isinstance(second, sympy.Expr):
            return _same_expressions(first, second)
        if isinstance(first, sympy.MatrixBase) and isinstance(second, sympy.MatrixBase):
            if first.shape != second.shape:
                return False
            return all(_same_expressions(a, b) for a, b in zip(first, second, strict=True))
        if isinstance(first, sympy.Equality) and isinstance(second, sympy.Equality):
            f, g = first.lhs - first.rhs, second.lhs - second.rhs
            ratio = sympy.simplify(f / g) if g != 0 else sympy.nan
            return bool(ratio.is_number and ratio.is_finite and ratio != 0)
        if isinstance(first, sympy.Set) and isinstance(second, sympy.Set):
            return bool(sympy.simplify(first) == sympy.simplify(second))
        if isinstance(first, sympy.logic.boolalg.Boolean) and isinstance(second, sympy.logic.boolalg.Boolean):
            return bool(sympy.simplify(first) == sympy.simplify(second))
        if isinstance(first, sympy.Expr | sympy.Set | sympy.MatrixBase) and isinstance(
            second, sympy.Basic | sympy.MatrixBase
        ):
            return False
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - sympy raises anything on expressions that it cannot handle
        return None
    return None


def _same_expressions(first: Any, second: Any) -> bool | None:
    import sympy

    first, second = first.doit(), second.doit()
    difference = first - second
    if difference == 0:
        return True
    numeric = _differ_numerically(first, second)
    if numeric is not None:
        return not numeric
    simplified = sympy.simplify(difference)
    if simplified == 0:
        return True
    return False if simplified.is_number and simplified.is_comparable and simplified.evalf(_DIGITS) != 0 else None


def _differ_numerically(first: Any, second: Any) -> bool | None:
    """Whether evaluation at fixed points shows a difference, or agreement to all digits; None where it cannot."""
    import sympy

    names = sorted(first.free_symbols | second.free_symbols, key=str)
    digits = _DIGITS + _hidden(first) + _hidden(second)
    if digits > _MAX_DIGITS:
        return None
    for number, point in enumerate(_POINTS):
        values = {name: point[i % 3] + i // 3 for i, name in enumerate(names)}
        a, b = first.evalf(digits, subs=values), second.evalf(digits, subs=values)
        usable = a.is_number and b.is_number and a.is_finite and b.is_finite
        if not usable and number < _POSITIVE:
            return None
        if not usable or (number >= _POSITIVE and not (a.is_real and b.is_real)):
            continue
        scale = max(abs(a), abs(b))
        if abs(a - b) * sympy.Integer(10) ** (digits - 20) > scale:
            return True
        if not names:
            return False
    return False


def _hidden(expression: Any) -> int:
    """Digits that the numbers in an expression, and the arguments of its functions, may hide from an evaluation."""
    import sympy

    total = 0
    for number in expression.atoms(sympy.Rational):
        total += max(0, (int(number.p).bit_length() + int(number.q).bit_length() - 10) * 3 // 10)
    for node in expression.atoms(sympy.Function, sympy.Pow):
        for arg in node.args:
            if arg.is_number and not arg.is_Integer:
                size = abs(arg.evalf(15))
                if size.is_finite and size != 0:
                    total += 2 * abs(int(sympy.log(size, 10).evalf(15)))
                    total += int(min(size, _MAX_DIGITS)) if size > 9 else 0
            elif arg.is_Integer and not isinstance(node, sympy.Pow):
                total += int(min(2 * abs(arg), _MAX_DIGITS))
    return total
