"""The application: routes, page, errors and checks put together."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import parse_qs

from fastapi import APIRouter, FastAPI, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp

import lignn
from lignn.serve import problems
from lignn.serve.metrics import Measured
from lignn.serve.routes import changes, insight, labels, predictions
from lignn.serve.security import COOKIE, Gate, Policy
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
        app.include_router(_login(service.policy))
    measured = Measured(Gate(app, service.policy), service)
    app.add_route("/metrics", measured.answer, include_in_schema=False)
    if page:
        from lignn.serve.page import mount

        mount(app, service)
    return measured


_FORM = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>lignn</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<style>body{{font:16px/1.5 system-ui,sans-serif;max-width:22rem;margin:15vh auto;padding:0 1rem}}
input,button{{font:inherit;width:100%;box-sizing:border-box;padding:.5rem;margin:.25rem 0}}</style></head>
<body><main><h1>lignn</h1><form method="post" action="login"><label for="token">Token of this service</label>
<input id="token" name="token" type="password" required autofocus autocomplete="current-password">
<p role="alert">{message}</p><button>Open the page</button></form></main></body></html>"""


def _login(policy: Policy) -> APIRouter:
    """Return the routes of the form."""
    routes = APIRouter(include_in_schema=False)

    @routes.get("/login")
    async def form() -> Response:
        return HTMLResponse(_FORM.format(message=""))

    @routes.post("/login")
    async def check(request: Request) -> Response:
        fields = parse_qs((await request.body()).decode("utf-8", "replace"))
        if not policy.knows(fields.get("token", [""])[0].strip()):
            return HTMLResponse(_FORM.format(message="This is not the token."), 401)
        answer = RedirectResponse("./", 303)
        secure = request.url.scheme == "https"
        answer.set_cookie(COOKIE, policy.session, httponly=True, samesite="strict", secure=secure)
        return answer

    return routes
