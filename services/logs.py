"""Logs as JSON lines on standard error. They name requests, rollouts and scorers, and never quote a completion."""

from __future__ import annotations

import logging
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

REQUEST = "rewarden.request"

LOUD = ("uvicorn", "uvicorn.error", "uvicorn.access", "uvicorn.asgi")


class Counts:
    """What one request was about."""

    __slots__ = ("outcomes", "recipe", "rollouts")

    def __init__(self) -> None:
        self.recipe = ""
        self.rollouts = 0
        self.outcomes: Counter[str] = Counter()

    def add(self, recipe: str, numbers: Counter[tuple[str, str]]) -> None:
        """Rollouts were graded; `numbers` by scorer and outcome."""
        self.recipe = recipe
        for (_, outcome), number in numbers.items():
            self.rollouts += number
            self.outcomes[outcome] += number


def configure(level: str = "INFO") -> None:
    """Send every log of this process to standard error, one JSON object a line."""
    import orjson
    import structlog

    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]

    def render(_: Any, __: str, event: Any) -> str:
        return orjson.dumps(event, default=str, option=orjson.OPT_NON_STR_KEYS).decode()

    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared, processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, render]
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)
    for name in LOUD:
        logger = logging.getLogger(name)
        logger.handlers = []
        logger.propagate = name != "uvicorn.access"
        logger.setLevel("WARNING")
    logging.getLogger("httpx").setLevel("WARNING")


def log_request(fields: dict[str, Any], *, failed: bool = False) -> None:
    """The one line of a request."""
    logging.getLogger(REQUEST).log(logging.ERROR if failed else logging.INFO, "request", extra=fields)


def log_slow(rows: Sequence[dict[str, Any]]) -> None:
    """A line for each rollout that took long."""
    for row in rows:
        logging.getLogger("rewarden.slow").warning(
            "slow rollout", extra={"rollout": row["id"], "recipe": row["recipe"], "scorer": row["scorer"],
                                   "seconds": row["seconds"], "outcome": row["outcome"]},
        )  # fmt: skip
