"""`rewarden verify`: one completion against one reference, with the evidence."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from ..core.verdict import Verdict


def verify(
    completion: Annotated[
        str, typer.Option("--completion", "-c", metavar="TEXT", help="What the model wrote; @FILE, or - to read it.")
    ],
    reference: Annotated[
        str | None,
        typer.Option(
            "--reference", "-r", metavar="TEXT", help="The right answer; @FILE to read it.", show_default=False
        ),
    ] = None,
    recipe: Annotated[
        str, typer.Option(metavar="RECIPE", help="A recipe or scorer by name, a .toml file, or module:Scorer.")
    ] = "math",
    as_json: Annotated[bool, typer.Option("--json", help="Print the verdict as JSON.")] = False,
) -> int:
    """Grade one completion, and show what the verdict rests on.

    Exit status: 0 graded (right or wrong), 1 could not be graded, 2 usage.
    """
    from ..core.engine import Engine
    from ..core.rollout import Rollout
    from .stop import stoppable

    rollout = Rollout.parse({"id": "1", "completion": _text(completion), "reference": _text(reference)})
    with stoppable(), Engine(recipe, workers=1, cache=None, local=True) as engine:
        (verdict,) = engine.score([rollout])
    if as_json:
        sys.stdout.write(verdict.to_json().decode() + "\n")
    else:
        sys.stdout.write("".join(f"{line}\n" for line in _lines(verdict)))
    return int(not verdict.graded)


def _text(option: str | None) -> str | None:
    from ..core.errors import DumpError

    try:
        if option == "-":
            return sys.stdin.buffer.read().decode()
        if option is not None and option.startswith("@"):
            return Path(option[1:]).read_bytes().decode()
    except OSError as error:
        raise DumpError(f"cannot read {option[1:] if option else ''}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise DumpError(f"{option} is not UTF-8 text: {error.reason} at byte {error.start + 1}") from None
    return option


def _lines(verdict: Verdict) -> list[str]:
    stamp = verdict.scorer
    first = [verdict.outcome.value, "no reward" if verdict.reward is None else f"reward {verdict.reward:g}"]
    rows: list[tuple[str, Any]] = [
        ("reason", verdict.reason),
        ("why", verdict.explanation),
        *(verdict.components or {}).items(),
        *(verdict.evidence or {}).items(),
        ("scorer", f"{stamp.name} {stamp.version} ({stamp.digest})" if stamp is not None else None),
    ]
    shown = [(name, _shown(value)) for name, value in rows if value not in (None, "", [], {})]
    width = max((len(name) for name, _ in shown), default=0)
    return [", ".join(first), *(f"  {name:{width}}  {value}" for name, value in shown)]


def _shown(value: Any) -> str:
    from ..dumps.row import dumps

    return str(value) if isinstance(value, str) else dumps(value).decode()
