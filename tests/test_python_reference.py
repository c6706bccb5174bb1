"""The page on the Python interface names what the code has, no more and no less."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields
from pathlib import Path

import rewarden
from rewarden.core import errors
from rewarden.core.reasons import UNGRADED_REASONS

PAGE = (Path(__file__).resolve().parent.parent / "docs/reference/python.md").read_text()


def table(heading: str, number: int = 0) -> list[list[str]]:
    """The rows of a table under a heading, as cells; the first cell may name several things."""
    section = re.split(r"^#+ ", PAGE.partition(f"# {heading}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    found = re.findall(r"(?:^\|.*\n)+", section, flags=re.MULTILINE)[number]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in found.splitlines()[2:]]


def names(rows: list[list[str]]) -> list[str]:
    """All that the first cells name."""
    return [name for row in rows for name in re.findall(r"`(?:await )?(\w+)", row[0])]


def test_reasons() -> None:
    """Every reason is listed once, and has a reward exactly when the completion is at fault."""
    rows = table("Reasons")
    assert names(rows) == [reason.value for reason in rewarden.Reason]
    for row in rows:
        ungraded = row[0].strip("`") in UNGRADED_REASONS
        assert row[1] == ("no" if ungraded else "yes"), row
        assert (row[2] == "completion") is not ungraded, row


def test_outcomes() -> None:
    """Every outcome is listed once, and only `ungraded` has no reward."""
    rows = table("Outcomes")
    assert names(rows) == [outcome.value for outcome in rewarden.Outcome]
    assert [row[0] for row in rows if row[1] == "None"] == ["`ungraded`"]


def test_fields() -> None:
    """Every field of a rollout and of a verdict is listed once."""
    assert sorted(names(table("Rollout"))) == sorted(rewarden.Rollout.model_fields)
    assert sorted(names(table("Verdict"))) == sorted(field.name for field in fields(rewarden.Verdict))


def test_engine() -> None:
    """Every argument and every public member of an engine is listed once."""
    arguments = [name for name in inspect.signature(rewarden.Engine).parameters if name != "self"]
    assert names(table("Engine")) == arguments
    members = [name for name in vars(rewarden.Engine) if not name.startswith("_")]
    assert sorted(names(table("Engine", 1))) == sorted([*members, "recipe"])


def test_errors() -> None:
    """Every error is listed with the type of the standard library that it also is."""
    found = {
        name: kind.__bases__[1].__name__
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and kind.__bases__[0] is rewarden.RewardenError
    }
    assert {row[0].strip("`"): row[1].strip("`") for row in table("Errors")} == found
