"""Which optional packages are installed, as the metadata of the distribution says."""

from __future__ import annotations

import re
from functools import cache
from importlib.metadata import PackageNotFoundError, requires, version

_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)(\[[^]]*\])?[^;]*(?:;.*extra\s*==\s*['\"]([^'\"]+)['\"])?")


def installed(distribution: str) -> str | None:
    """The version of a distribution, or None."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


@cache
def requirements() -> dict[str, list[str]]:
    """The distributions that each extra needs; those that everything needs are under the empty name.

    Empty where Rewarden runs from a checkout that was never installed.
    """
    try:
        lines = requires("rewarden") or []
    except PackageNotFoundError:
        return {}
    found: dict[str, list[str]] = {}
    for line in lines:
        match = _REQUIREMENT.match(line)
        if match is not None and match[1].lower() != "rewarden":
            found.setdefault(match[3] or "", []).append(match[1])
    return found


def extra_of(distribution: str) -> str | None:
    """The extra that brings a distribution."""
    for extra, names in requirements().items():
        if extra and distribution.lower() in (name.lower() for name in names):
            return extra
    return None


def missing(distributions: tuple[str, ...]) -> str:
    """How to get what is missing of these; empty when nothing is."""
    absent = [name for name in distributions if installed(name) is None]
    if not absent:
        return ""
    extras = sorted({extra for name in absent if (extra := extra_of(name)) is not None})
    what = f"rewarden[{','.join(extras)}]" if extras else " ".join(absent)
    return f"pip install '{what}'"
