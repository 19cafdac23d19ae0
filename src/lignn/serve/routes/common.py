"""What routes share: the service, who asks, versions, answers."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import unquote

import orjson
from fastapi import Depends, Header, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from lignn.errors import InputError
from lignn.serve.schemas import ProblemOut
from lignn.serve.service import Service

ANONYMOUS = "anonymous"
MOST_NAME = 100


def _problem(description: str) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/ProblemOut"}
    return {"description": description, "content": {"application/problem+json": {"schema": schema}}}


PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: _problem("A body that is no JSON."),
    401: _problem("No token, or not the right one."),
    403: _problem("Read-only service, or a page elsewhere."),
    404: _problem("No such node."),
    408: _problem("The body took too long to arrive."),
    409: _problem("Changed meanwhile, or there already."),
    413: _problem("A body that is too large or nested too deep."),
    422: {**_problem("Bad input."), "model": ProblemOut},
    429: _problem("Too many requests wait."),
    503: _problem("Starting, or the journal cannot be written."),
}
"""What any route may answer besides its own."""


class Json(Response):
    """JSON, written by orjson."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Return the bytes of a value."""
        return orjson.dumps(content)


def versioned(content: dict[str, Any]) -> Json:
    """Return an answer with its version as the entity tag."""
    return Json(content, headers={"ETag": f'"{content["version"]}"'})


async def _service(request: Request) -> Service:
    # A plain function would be called in a thread of its own.
    return request.app.state.service


async def _who(lignn_user: Annotated[str, Header(description="Who asks, percent-encoded.")] = "") -> str:
    name = "".join(sign for sign in unquote(lignn_user) if sign.isprintable()).strip()
    return name[:MOST_NAME] or ANONYMOUS


async def _expected(
    if_match: Annotated[
        str | None, Header(description="Refuse the change (409) if the thing was changed after this version.")
    ] = None,
) -> int | None:
    if if_match is None or if_match.strip() == "*":
        return None
    text = if_match.strip().removeprefix("W/").strip('"')
    if not text.isdecimal() or not text.isascii() or len(text) > 18:
        raise InputError(f'If-Match: a version number is needed, such as "42", got {if_match!r}')
    return int(text)


async def _writable(request: Request) -> None:
    service: Service = request.app.state.service
    if service.policy.read_only:
        raise HTTPException(403, "the service is read-only; start it without --read-only to change anything")


TheService = Annotated[Service, Depends(_service)]
Who = Annotated[str, Depends(_who)]
Expected = Annotated[int | None, Depends(_expected)]
Writable = Depends(_writable)
