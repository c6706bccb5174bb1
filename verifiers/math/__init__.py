"""Equivalence of mathematical answers: bounded layers first, computer algebra last.

`quick` and `canonical` run in the caller; `compare` may go on to the last layer and belongs in a killable worker.
"""

from __future__ import annotations

from .canonical import canonical
from .compare import Match, any_of, compare, quick
from .options import DEFAULT, MathOptions

__all__ = ["DEFAULT", "Match", "MathOptions", "any_of", "canonical", "compare", "quick"]
