"""The one factory for every kind of service."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from .. import __version__
from . import compat, openapi, problems
from .access import Access
from .envelope import Envelope
from .limits import Limits
from .problems import Problem
from .reject import Rejection
from .routes import health, jobs, score, scorers, status, ui
from .service import Service
from .settings import Settings


def create_app(settings: Settings) -> FastAPI:
    """A service as these settings say. Raises a RewardenError where they cannot be used."""
    service = Service(settings)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await service.open()
        try:
            yield
        finally:
            await service.close()

    app = FastAPI(
        title="Rewarden",
        version=__version__,
        summary="Grades what a language model wrote, so that a trainer can learn from it.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.service = service
    for router in (score.router, jobs.router, scorers.router, health.router, status.router, ui.router, *compat.routers):
        app.include_router(router)
    openapi.install(app)
    app.add_exception_handler(Problem, _problem)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _invalid)
    # The last one added is the outermost.
    app.add_middleware(Limits, service=service)
    app.add_middleware(Access, service=service)
    app.add_middleware(Envelope, service=service, api=app)
    return app


def _answer(request: Request, problem: Problem) -> Response:
    request.scope["rewarden.problem"] = problem.code
    if problem.code in ("too_large", "too_slow"):  # there may be more of the body to come
        return Rejection(problem)
    return problem.response(problems.request_id_of(request))


async def _problem(request: Request, error: Exception) -> Response:
    return _answer(request, cast("Problem", error))


async def _http(request: Request, error: Exception) -> Response:
    return _answer(request, problems.of_http_exception(cast("HTTPException", error)))


async def _invalid(request: Request, error: Exception) -> Response:
    return _answer(request, problems.of_validation(cast("RequestValidationError", error).errors()))
