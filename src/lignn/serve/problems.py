"""Errors as answers: RFC 9457 problem details with the library's one sentence."""

from __future__ import annotations

import logging
from http import HTTPStatus

import orjson
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from lignn.errors import ConflictError, InputError, JournalError, LignnError, UnknownNodeError
from lignn.serve.engine import OverloadedError, StartingError

MEDIA = "application/problem+json"
_STATUS: dict[type[Exception], int] = {
    UnknownNodeError: 404,
    ConflictError: 409,
    InputError: 422,
    OverloadedError: 429,
    JournalError: 503,
    StartingError: 503,
    LignnError: 500,
}
_RETRY = {429: "1", 503: "2"}
_log = logging.getLogger("lignn.serve")


def problem(status: int, detail: str, headers: dict[str, str] | None = None) -> Response:
    """Return an error as problem JSON."""
    body = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail}
    more = {"Retry-After": _RETRY[status]} if status in _RETRY else {}
    return Response(orjson.dumps(body), status, more | (headers or {}), MEDIA)


def status_of(error: Exception, in_path: bool = True) -> int:
    """Return the status of an error; a node that is not there is bad input if it is not named by the path."""
    status = next((number for kind, number in _STATUS.items() if isinstance(error, kind)), 500)
    return 422 if status == 404 and not in_path else status


def install(app: FastAPI) -> None:
    """Let every error of an application be answered as a problem."""
    app.add_exception_handler(LignnError, _of_library)
    app.add_exception_handler(RequestValidationError, _of_body)
    app.add_exception_handler(HTTPException, _of_framework)
    app.add_exception_handler(Exception, _of_bug)


def _of_library(request: Request, error: Exception) -> Response:
    return problem(status_of(error, "node_id" in request.path_params), str(error))


def _of_body(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first, count = error.errors()[0], len(error.errors())
    place = ".".join(str(part) for part in first["loc"])
    more = f" (and {count - 1} more)" if count > 1 else ""
    return problem(422, _printable(f"{place}: {first['msg']}{more}; see /openapi.json for what is expected"))


def _of_framework(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    headers = dict(error.headers) if error.headers else None
    return problem(error.status_code, _printable(str(error.detail)), headers)


def _of_bug(request: Request, error: Exception) -> Response:
    _log.exception("%s %s failed", request.method, request.url.path, exc_info=error)
    return problem(500, "the service has a fault; its log says more")


def _printable(text: str) -> str:
    """Return a text that UTF-8 can hold."""
    return text.encode("utf-8", "replace").decode("utf-8")
