"""`rewarden dead`: rollouts that the workers of a queue have given up."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from .console import say, table

if TYPE_CHECKING:
    from ..client.queue.ledger import DeadLetter, Ledger

app = typer.Typer(
    help="Look at the rollouts that the workers of a queue have given up, try them again, or drop them.",
    no_args_is_help=True,
)

Queue = Annotated[
    str,
    typer.Option("--queue", metavar="URL", envvar="REWARDEN_QUEUE", help="The Redis with the queue, or `embedded`."),
]
Ids = Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Dead letters, as `list` shows them.")]
All = Annotated[bool, typer.Option("--all", help="All of them.")]

Answer = TypeVar("Answer")

_MOST = 10_000


@app.command("list")
def list_(
    queue: Queue = "redis://127.0.0.1:6379/0",
    count: Annotated[int, typer.Option(min=1, max=_MOST, help="The newest so many.")] = 50,
) -> None:
    """List the newest dead letters: when, of which job and row, and why."""
    letters = _ask(queue, lambda ledger: ledger.dead_letters(count=count))
    rows = [
        (
            letter.id,
            datetime.fromtimestamp(letter.time, UTC).isoformat(timespec="seconds"),
            letter.job,
            str(letter.row),
            letter.recipe,
            str(letter.verdict.reason),
            letter.verdict.explanation,
        )
        for letter in letters
    ]
    table(rows, heads=("id", "time", "job", "row", "recipe", "reason", "why"))


@app.command()
def show(ids: Ids = None, queue: Queue = "redis://127.0.0.1:6379/0", every: All = False) -> int:
    """Print dead letters as JSON lines, each with its rollout and what its job was told."""
    import orjson

    letters = _chosen(queue, ids, every)
    for letter in letters:
        about = {"id": letter.id, "time": letter.time, "job": letter.job, "row": letter.row, "recipe": letter.recipe}
        whole = {**about, "rollout": orjson.Fragment(letter.rollout), "verdict": letter.verdict.to_dict()}
        sys.stdout.write(orjson.dumps(whole).decode() + "\n")
    return int(not letters)


@app.command()
def retry(ids: Ids = None, queue: Queue = "redis://127.0.0.1:6379/0", every: All = False) -> int:
    """Grade dead letters again, as a new job for each recipe; print the jobs. They are dead letters no longer.

    The jobs that they came from keep the verdict that they were given.
    """
    letters = _chosen(queue, ids, every)
    works: dict[tuple[str, str], list[DeadLetter]] = {}
    for letter in letters:
        works.setdefault((letter.kind, letter.recipe), []).append(letter)
    for (kind, recipe), some in works.items():
        job = _ask(queue, partial(_start_again, kind, recipe, some))
        sys.stdout.write(f"{job}\n")
        say(f"{len(some)} rollouts of {recipe} are graded again as job {job}")
    return int(not letters)


@app.command()
def drop(ids: Ids = None, queue: Queue = "redis://127.0.0.1:6379/0", every: All = False) -> int:
    """Forget dead letters."""
    letters = _chosen(queue, ids, every)
    gone = _ask(queue, lambda ledger: ledger.drop_dead_letters([letter.id for letter in letters]))
    say(f"{gone} dead letters dropped")
    return int(not letters)


def _chosen(queue: str, ids: list[str] | None, every: bool) -> list[DeadLetter]:
    from ..core.errors import ServiceError

    if bool(ids) is every:
        raise ServiceError("name dead letters by their ids, or give --all")
    letters = _ask(queue, lambda ledger: ledger.dead_letters(count=_MOST, ids=ids or ()))
    if not letters:
        say("no such dead letters")
    return letters


def _ask(queue: str, question: Callable[[Ledger], Awaitable[Answer]]) -> Answer:
    from ..client.queue.connection import connect, redacted
    from ..client.queue.ledger import Ledger
    from ..core.errors import ServiceError
    from ..services.embedded import EmbeddedRedis, default_folder

    async def ask() -> Answer:
        from redis.exceptions import RedisError

        ledger = Ledger(connect(EmbeddedRedis(default_folder()).url if queue == "embedded" else queue))
        try:
            return await question(ledger)
        except (RedisError, OSError) as error:
            raise ServiceError(f"the queue at {redacted(queue)} does not answer: {error}") from None
        finally:
            await ledger.close()

    return asyncio.run(ask())


async def _start_again(kind: str, recipe: str, letters: list[DeadLetter], ledger: Ledger) -> str:
    import uuid

    from ..client.queue.batches import cut_again
    from ..client.queue.ledger import NewJob
    from ..core.wire import decode_rollouts

    rollouts = decode_rollouts(b"[" + b",".join(letter.rollout for letter in letters) + b"]")
    job = NewJob(
        id=uuid.uuid4().hex,
        recipe=recipe,
        total=len(rollouts),
        cut=cut_again(kind, recipe, rollouts),
        ids=[rollout.id for rollout in rollouts],
        digest="",
    )
    await ledger.create(job)  # workers are woken within a second
    await ledger.drop_dead_letters([letter.id for letter in letters])
    return job.id
