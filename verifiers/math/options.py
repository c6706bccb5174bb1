"""The policies of the math verifier, by name.

Every choice on which reasonable graders differ is a field here, so that a run states its choices and two runs can be
compared. Not covered: how an answer is found in a completion (`core.extraction`) and how much CPU the last layer may
spend (the pool's budget).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args, get_origin, get_type_hints


@dataclass(frozen=True, slots=True)
class MathOptions:
    """Policies of equivalence; the defaults reward what a careful examiner would call the same answer.

    Instances are hashable: parsed references are cached by string and options.
    """

    relative_tolerance: float = 0.0
    """Accept a decimal within this share of the reference, from 0 to below 1. 0 = exact, because any slack turns near
    misses into rewards."""

    float_digits: int | None = 12
    """An answer decimal with at least this many significant digits may stand for an exact reference that it rounds
    (`0.0833333333333333` for `1/12`): that is how programs print. Fewer digits are a rounding, and wrong."""

    percent: Literal["optional", "required"] = "optional"
    """`optional`: `35\\%` is met by `35`, `35\\%` and `0.35`; most references of percent questions drop the
    sign. `required`: a percentage equals only the same ratio (`35\\%` = `0.35`)."""

    units: Literal["optional", "required"] = "optional"
    """`optional`: a known unit may be missing on either side, as references often leave it out; two units that are
    both given must agree (after conversion within a dimension). `required`: both or neither carry one."""

    degrees: Literal["either", "degrees", "radians"] = "either"
    """`90^\\circ` equals `90` (`degrees`), `\\pi/2` (`radians`) or both (`either`): the question fixes the
    measure, and the sign is often left out."""

    list_order: Literal["any", "given"] = "any"
    """Order of bare lists (`1, 2`); solutions of an equation have none. Tuples are always ordered, sets never."""

    assignment: Literal["optional", "required"] = "optional"
    """`optional`: `x = 5` meets `5`, as the name is the question's. The left side must be a plain name."""

    chain: Literal["stated", "all"] = "stated"
    """`x = a = b = c` states `c`. `stated`: after a name, working in between may hold a slip, but a plain number
    there must agree with `c` (`f(3) = 0 = 3` is nothing), unless the first and last member agree. `all`: every
    member must agree. A chain without a name always needs all: `5 = 7` is never 7."""

    interval_inequality: bool = True
    """`x > 3`, `x \\in (3, \\infty)` and `(3, \\infty)` are the same set."""

    decimal_comma: bool = True
    """`1000,99` may be read as 1000.99 where the other side is one number: much of the world writes so."""

    case_sensitive_text: bool = False
    """Whether `\\text{Sunday}` differs from `sunday`. Single letters always keep their case."""

    constant_of_integration: bool = True
    """A free added constant named `c` or `C` may carry either name: `x^2 + C` = `x^2 + c`."""

    max_length: int = 40_000
    """Characters of an answer that are read, 40,000 at most; a longer one is `too_complex` unless it is the reference's
    own text or a plain integer."""

    max_nodes: int = 12_000
    """Tokens of an answer, 12,000 at most, and terms of its expression. Beyond it the answer is `too_complex`."""

    def __post_init__(self) -> None:
        """Raises ValueError for what is no policy: a recipe with a slip in it must not grade at all."""
        for name, kind in _KINDS.items():
            value, choices = getattr(self, name), get_args(kind)
            if get_origin(kind) is Literal:
                if value not in choices:
                    raise ValueError(f"{name} must be {' or '.join(map(repr, choices))}, not {value!r}")
            elif kind is bool:
                if not isinstance(value, bool):
                    raise ValueError(f"{name} must be true or false, not {value!r}")
            elif isinstance(value, bool) or not isinstance(value, kind if kind is not float else int | float):
                raise ValueError(f"{name} must be a number, not {value!r}")
        if not 0 <= self.relative_tolerance < 1:
            raise ValueError(f"relative_tolerance must be at least 0 and below 1, not {self.relative_tolerance!r}")
        if self.float_digits is not None and self.float_digits < 1:
            raise ValueError(f"float_digits must be at least 1, not {self.float_digits!r}")
        for name, most in _CAPS.items():
            if not 1 <= getattr(self, name) <= most:
                raise ValueError(
                    f"{name} must be from 1 to {most} (more could stall a grader), not {getattr(self, name)!r}"
                )


_CAPS = {"max_length": 40_000, "max_nodes": 12_000}
_KINDS = get_type_hints(MathOptions)

DEFAULT = MathOptions()
