"""`GET /v1/scorers`: what is on offer."""

from __future__ import annotations

import asyncio
from functools import lru_cache

from fastapi import APIRouter, Request
from pydantic import BaseModel

from ... import __version__
from ...core import registry
from ...core.catalog import Catalog
from ...core.errors import RewardenError
from ...core.scorer import Scorer, Unit
from ..problems import responses
from ..service import Service

router = APIRouter(tags=["scorers"])


class RecipeOffer(BaseModel):
    """A recipe that a request may name."""

    name: str
    version: str
    """What `name@version` pins."""
    description: str
    kinds: list[str]
    """The kinds of work under it."""
    unit: Unit
    """What a verdict depends on: its own rollout, its group, or the whole batch."""
    reads: list[str]
    """The fields of a rollout that decide."""
    needs: str | None = None
    """What is missing in this process, where the work is not done elsewhere."""


class Offer(BaseModel):
    """What a service offers."""

    recipes: list[RecipeOffer]
    kinds: list[str]
    """All kinds of work on offer."""
    version: str
    """Of Rewarden."""
    jobs: bool
    """Whether there is a queue for jobs."""


@router.get(
    "/v1/scorers",
    summary="What is on offer",
    operation_id="scorers",
    responses=responses(),
)
async def scorers(request: Request) -> Offer:
    """The recipes that a request may name, what they read, and the kinds of work under them."""
    service: Service = request.app.state.service
    recipes = await asyncio.to_thread(_offers, service.catalog)
    kinds = {kind for recipe in recipes for kind in recipe.kinds}
    done = kinds & service.catalog.only if service.catalog.only else kinds
    return Offer(recipes=list(recipes), kinds=sorted(done), version=__version__, jobs=service.queue is not None)


@lru_cache(maxsize=8)
def _offers(catalog: Catalog) -> tuple[RecipeOffer, ...]:
    return tuple(_offer(catalog, name) for name in catalog.names())


def _offer(catalog: Catalog, name: str) -> RecipeOffer:
    recipe = catalog.recipe(name)
    local = catalog.is_local(name)
    made: list[Scorer] = []
    needs = None
    for part in (part for step in (*recipe.routes, *recipe.then) for part in step.parts):
        try:
            made.append(registry.create(part.scorer, part.config, local=local))
        except RewardenError as error:
            needs = str(error)
    order = list(Unit)
    units = [scorer.unit for scorer in made]
    units += [Unit.GROUP for follow in recipe.then if follow.on == "group"]
    description = recipe.description
    if not description and len(made) == 1:
        description = (made[0].__doc__ or "").strip().partition("\n")[0]
    return RecipeOffer(
        name=name,
        version=catalog.version(name),
        description=description,
        kinds=sorted(catalog.kinds(name)),
        unit=max(units, key=order.index, default=Unit.ROLLOUT),
        reads=sorted({field for scorer in made for field in scorer.reads}),
        needs=needs,
    )
