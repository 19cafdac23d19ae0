"""The form that asks a person for the token; a cookie remembers that it was right."""

from __future__ import annotations

from urllib.parse import parse_qs

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from lignn.serve.security import COOKIE, Policy

_FORM = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>lignn</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<style>body{{font:16px/1.5 system-ui,sans-serif;max-width:22rem;margin:15vh auto;padding:0 1rem}}
input,button{{font:inherit;width:100%;box-sizing:border-box;padding:.5rem;margin:.25rem 0}}</style></head>
<body><main><h1>lignn</h1><form method="post" action="login"><label for="token">Token of this service</label>
<input id="token" name="token" type="password" required autofocus autocomplete="current-password">
<p role="alert">{message}</p><button>Open the page</button></form></main></body></html>"""


def router(policy: Policy) -> APIRouter:
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
