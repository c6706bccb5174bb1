"""From what a user calls the graders' place to the transport that leads there."""

from __future__ import annotations

from pathlib import Path

from ..core import recipe as recipes
from ..core.catalog import Catalog
from ..core.engine import Engine
from ..core.engines import Engines
from ..core.recipe import Recipe
from .transport import Transport

Target = str | Path | Recipe | Engine | Engines | Transport | None
"""None or `local`, a recipe or its TOML file, an Engine or Engines: graded in this process. `http://...`,
`https://...`: a service. `redis://...`, `rediss://...`: workers behind that queue. Or a Transport."""


def connect(target: Target, api_key: str | None = None) -> tuple[Transport, str]:
    """The transport that leads there, and the recipe that it uses unless another is asked for."""
    if target is None or target == "local":
        return _local(Engines(Catalog()), owned=True), "auto"
    if isinstance(target, Engines):
        return _local(target), "auto"
    if isinstance(target, Engine):
        return _local(target), target.recipe.name
    if isinstance(target, (Path, Recipe)) or (isinstance(target, str) and target.endswith(".toml")):
        recipe = recipes.load(target, local=True)
        return _local(Engines(Catalog({recipe.name: recipe})), owned=True), recipe.name
    if not isinstance(target, str):
        if not hasattr(target, "follow"):
            raise TypeError(
                f"target: a {type(target).__name__} leads nowhere; give an address, an Engine or a Transport"
            )
        return target, "auto"
    scheme = target.partition("://")[0]
    if scheme in ("http", "https"):
        from .http import HttpTransport

        return HttpTransport(target, api_key), "auto"
    if scheme in ("redis", "rediss", "unix"):
        from .queue.transport import QueueTransport

        return QueueTransport(target), "auto"
    raise ValueError(
        f"target={target[:100]!r} leads nowhere: give `local`, a recipe file (.toml), or an address that begins with "
        "http://, https://, redis://, rediss:// or unix://. The name of a recipe is the option `recipe`."
    )


def can_remake(target: Target) -> bool:
    """Whether the same target can be reached anew from another process."""
    return target is None or isinstance(target, (str, Path, Recipe))


def _local(engines: Engines | Engine, *, owned: bool = False) -> Transport:
    from .in_process import InProcessTransport

    return InProcessTransport(engines, owned=owned)
