"""What a service is told at its start."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from ..core.errors import ServiceError
from ..core.recipe import Recipe

MIB = 1 << 20

ANY_KIND = "*"
"""The route of the kinds that have none of their own."""

QUEUE = "queue"
"""The target of a route that goes to workers over the queue."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that decides how a service behaves. Raises ServiceError for settings that contradict each other."""

    host: str = "127.0.0.1"
    port: int = 8321
    """0 takes a free one."""
    only: tuple[str, ...] = ()
    """The kinds of work that are done in this process; none means all."""
    recipes: Mapping[str, Recipe] = field(default_factory=dict)
    """A local user's own recipes by the alias that requests name."""
    workers: int | None = None
    """Worker processes; one for each CPU when None."""
    cache: Path | str | None = "memory"
    """A file, `memory`, or None for no cache."""
    keys: Path | None = None
    """The file of API keys. Without one the service is for this machine alone."""
    routes: Mapping[str, str] = field(default_factory=dict)
    """Kind of work (or `*`) to who does it: `http://host:port` or `queue`. The other kinds are done here."""
    peer_key: str | None = field(default=None, repr=False)
    """The API key that peers are shown."""
    queue: str | None = None
    """`embedded`, or the address of a Redis (`redis://...`, `rediss://...`, `unix://...`)."""
    queue_dir: Path | None = None
    """Where an embedded queue is kept."""
    keep_s: float = 6 * 3600.0
    """How long the verdicts of a finished job can be read."""
    max_queued_batches: int = 10_000
    """Batches that may wait in the queue; jobs are refused while there are more."""

    max_body_bytes: int = 16 * MIB
    """Of one request, as it is sent and unpacked."""
    max_rollouts: int = 4096
    """In one request."""
    max_requests: int = 256
    """Under way at once."""
    max_rollouts_in_flight: int = 32_768
    max_bytes_in_flight: int = 256 * MIB
    """Bodies under way at once, as they are sent."""
    threads: int = 32
    """Requests that are graded at once; others that were admitted wait for their turn."""
    max_timeout_s: float = 600.0
    """The longest that a request may take; also the time limit of those that ask for none."""
    body_timeout_s: float = 30.0
    """How long a request may take to send its body."""
    drain_s: float = 30.0
    """How long requests under way may take to end once the service is asked to stop."""
    slow_s: float = 1.0
    """Rollouts that take longer than this are logged by name."""

    def __post_init__(self) -> None:
        if self.keys is None and not self.loopback:
            raise ServiceError(
                f"without API keys the service listens on this machine only, not on {self.host}; "
                "make a key with `rewarden keys create --file keys.json` and give --keys keys.json"
            )
        for kind, target in self.routes.items():
            if target == QUEUE:
                if self.queue is None:
                    raise ServiceError(f"--route {kind}=queue needs a queue; give --queue too")
            elif urlsplit(target).scheme not in ("http", "https") or not urlsplit(target).hostname:
                raise ServiceError(f"--route {kind}={target[:200]}: a target is http://HOST:PORT or `queue`")
        if self.queue is not None and self.queue != "embedded":
            scheme = urlsplit(self.queue).scheme
            if scheme not in ("redis", "rediss", "unix"):
                raise ServiceError("--queue is `embedded` or the address of a Redis: redis://HOST:PORT/0")

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def backend_of(self, kind: str) -> str | None:
        """Who does this kind of work: the target of its route, or None for this process."""
        return self.routes.get(kind) or (None if kind in self.only else self.routes.get(ANY_KIND))

    @property
    def offered(self) -> tuple[str, ...]:
        """The kinds of work that a request may ask for here; none means all."""
        if not self.only or ANY_KIND in self.routes:
            return ()
        return (*self.only, *self.routes)
