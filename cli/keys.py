"""`rewarden keys`: API keys for a service."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, cast, get_args

import typer

from .console import say, table

app = typer.Typer(help="Make, list and revoke the API keys of a service.", no_args_is_help=True)

File = Annotated[Path, typer.Option(metavar="FILE", help="The file of keys.")]

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@app.command()
def create(
    name: Annotated[str, typer.Option(help="Whose key it is; several may share a name.")],
    file: File = Path("keys.json"),
    scopes: Annotated[str, typer.Option(help="Of score, admin and metrics, with commas between.")] = "score",
    expires: Annotated[
        str | None, typer.Option(metavar="TIME", help="How long it is valid: 12h, 30d...", show_default=False)
    ] = None,
    max_requests: Annotated[
        int | None, typer.Option(min=1, help="Requests under way at once.", show_default=False)
    ] = None,
    rollouts_per_minute: Annotated[
        int | None, typer.Option(min=1, help="Rollouts a minute.", show_default=False)
    ] = None,
) -> None:
    """Make a key and print it, once: FILE keeps its SHA-256 alone. A running service takes it within a second."""
    from ..core.errors import ServiceError
    from ..services import keys

    given = tuple(dict.fromkeys(part.strip() for part in scopes.split(",") if part.strip()))
    known = get_args(keys.Scope)
    unknown = [scope for scope in given if scope not in known]
    if unknown or not given:
        raise ServiceError(f"--scopes {scopes}: scopes are {', '.join(known)}")
    now = datetime.now(UTC).replace(microsecond=0)
    text, key = keys.make(
        name,
        cast("tuple[keys.Scope, ...]", given),
        created=now,
        expires=None if expires is None else now + _duration(expires),
        max_requests=max_requests,
        rollouts_per_minute=rollouts_per_minute,
    )
    with keys.locked(file):
        present = keys.load(file) if file.exists() else {}
        keys.save(file, present | {key.id: key})
    sys.stdout.write(f"{text}\n")
    say(f"this key is not shown again; {file} keeps its SHA-256 as {key.id} of {name}")


@app.command("list")
def list_keys(file: File = Path("keys.json")) -> None:
    """List the keys of FILE."""
    from ..services import keys

    rows = [
        (
            key.id,
            key.name,
            ", ".join(key.scopes),
            key.created.date().isoformat(),
            "" if key.expires is None else key.expires.isoformat(" ", "minutes") + (" (over)" if key.expired else ""),
            "" if key.max_requests is None else str(key.max_requests),
            "" if key.rollouts_per_minute is None else str(key.rollouts_per_minute),
        )
        for key in keys.load(file).values()
    ]
    table(rows, heads=("id", "name", "scopes", "created", "expires", "requests", "rollouts/min"))


@app.command()
def revoke(
    id: Annotated[str, typer.Argument(metavar="ID", help="The id, as `rewarden keys list` shows it.")],
    file: File = Path("keys.json"),
) -> None:
    """Take a key out of FILE. A running service refuses it within a second."""
    from ..core.errors import ServiceError
    from ..services import keys

    with keys.locked(file):
        present = keys.load(file)
        if id not in present:
            raise ServiceError(f"{file} has no key {id}; it has {', '.join(present) or 'none'}")
        name = present.pop(id).name
        keys.save(file, present)
    say(f"revoked {id} of {name}")


def _duration(text: str) -> timedelta:
    from ..core.errors import ServiceError

    match = re.fullmatch(r"([1-9]\d{0,4})([mhdw])", text)
    if match is None:
        raise ServiceError(f"--expires {text}: give a number and a unit, such as 90m, 12h, 30d or 8w")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})
