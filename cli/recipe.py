"""`rewarden recipe`: look at a recipe before anything is graded with it."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from .console import complain, count

app = typer.Typer(help="Look at recipes: which scorer a rollout goes to, and what follows.", no_args_is_help=True)


@app.command()
def check(
    recipe: Annotated[str, typer.Argument(metavar="FILE", help="A .toml file, or the name of a recipe.")],
) -> int:
    """Read a recipe for mistakes.

    Exit status: 0 none, 1 it can be read but has mistakes, 2 it cannot be read.
    """
    from ..core.recipe import check, load

    found = load(recipe, local=True)
    faults = check(found, local=True)
    for fault in faults:
        complain(f"{recipe}: {fault}")
    if not faults:
        follows = f" and {count(len(found.then), 'follow-up')}" if found.then else ""
        sys.stdout.write(
            f"{recipe}: {found.name} {found.version}, {count(len(found.routes), 'route')}{follows}: fine\n"
        )
    return int(bool(faults))


@app.command()
def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A recipe or scorer by name, or a .toml file.")],
) -> None:
    """Print a recipe, to look at or to begin your own with."""
    from ..core.recipe import load
    from .toml import dumps

    found = load(name, local=True)
    sys.stdout.write(dumps(found.model_dump(mode="json", exclude_defaults=True)))
