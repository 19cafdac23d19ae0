"""The application: routes, page, errors and checks put together."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.types import ASGIApp

import lignn
from lignn.serve import login, problems
from lignn.serve.metrics import Measured
from lignn.serve.routes import changes, insight, labels, predictions
from lignn.serve.security import Gate
from lignn.serve.service import Service

DESCRIPTION = """Predictions of a half-labelled graph that take new labels into account at once.

Every answer has the `version` of the state that it is from. A change is answered after it is on the disk. Give
`If-Match: "VERSION"` to have a change refused (409) if the thing was changed after that version, and `Lignn-User: NAME`
to say who you are. Errors are problem JSON (RFC 9457)."""


def application(service: Service, page: bool = False) -> ASGIApp:
    """Return the application of a service, with the page if it is wanted."""

    @asynccontextmanager
    async def running(_: FastAPI) -> AsyncIterator[None]:
        service.start()
        yield
        await service.stop()

    app = FastAPI(
        title="lignn",
        version=lignn.__version__,
        description=DESCRIPTION,
        lifespan=running,
        docs_url=None,
        redoc_url=None,
    )
    app.state.service = service
    problems.install(app)
    for part in (predictions, labels, changes, insight):
        app.include_router(part.router)
    if service.policy.token is not None:
        app.include_router(login.router(service.policy))
    measured = Measured(Gate(app, service.policy), service)
    app.add_route("/metrics", measured.answer, include_in_schema=False)
    if page:
        from lignn.serve.page import mount

        mount(app, service)
    return measured
