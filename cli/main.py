"""The `rewarden` command: its parts, and what becomes of their errors.

Exit status: 0 all is well, 1 the work is done and something in it is not well, 2 the work could not be done (usage,
files, recipes), 128 + N stopped by signal N. Errors are one line; REWARDEN_DEBUG=1 adds where they come from.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from .. import __version__
from ..core.errors import RewardenError
from . import dead, doctor, keys, recipe, score, scorers, serve, verify, worker
from .console import complain
from .stop import Stopped

app = typer.Typer(
    name="rewarden",
    help="Grades what a language model wrote, so that a trainer can learn from it.",
    no_args_is_help=True,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
app.command("score")(score.score)
app.command("verify")(verify.verify)
app.command("scorers")(scorers.scorers)
app.add_typer(recipe.app, name="recipe")
app.command("serve")(serve.serve)
app.command("worker")(worker.worker)
app.add_typer(dead.app, name="dead")
app.add_typer(keys.app, name="keys")
app.command("doctor")(doctor.doctor)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rewarden {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Grades what a language model wrote, so that a trainer can learn from it."""


def main() -> None:
    """Run the command line, and end the process with its exit status."""
    try:
        status = app(standalone_mode=False) or 0
    except Stopped as stop:
        # Threads of a scorer may never end, and the interpreter would wait for them.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(128 + stop.number)
    except KeyboardInterrupt:
        status = 130
    except (typer.Exit, typer.Abort) as end:
        status = getattr(end, "exit_code", 1)
    except Exception as error:  # noqa: BLE001 - the last place where an error can become a line
        status = _failed(error)
    sys.exit(status)


def _failed(error: Exception) -> int:
    if os.environ.get("REWARDEN_DEBUG"):
        import traceback

        traceback.print_exc()
    show = getattr(error, "format_message", None)
    if show is not None:  # what the command line does not allow; typer keeps these classes to itself
        context = getattr(error, "ctx", None)
        path = context.command_path if context is not None else "rewarden"
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()  # type: ignore[attr-defined]
        else:
            complain(f"{show()} ({path} --help lists what there is)")
        return 2
    if isinstance(error, (RewardenError, OSError)):
        complain(str(error))
    else:
        complain(
            f"{type(error).__name__}: {error}. This is a fault of Rewarden or of a scorer; REWARDEN_DEBUG=1 shows where"
        )
    return 2
