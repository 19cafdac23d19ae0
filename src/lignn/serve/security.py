"""Who may ask: hosts, origins, a token, limits on bodies, read-only mode.

One layer around the whole application, page included. It speaks ASGI itself, so that it costs a request little.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import os
import re
from dataclasses import dataclass
from functools import cached_property
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lignn.errors import InputError
from lignn.serve.problems import problem

MOST_BYTES = 16 * 2**20
"""Largest body that is read."""
BODY_SECONDS = 20.0
"""Longest time that a body may take to arrive."""
MOST_DEPTH = 32
"""Deepest nesting of a JSON body."""
COOKIE = "lignn_session"
FEWEST_CHARACTERS = 16
TOKEN_VARIABLE = "LIGNN_TOKEN"
_LOCAL = ("localhost", "127.0.0.1", "::1")
_OPEN = ("/health", "/login")
"""Paths that need no token."""
_SAFE = ("GET", "HEAD", "OPTIONS")
_TEXTS = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def is_loopback(host: str) -> bool:
    """Return whether an address is this machine's own."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def read_token(file: Path | None) -> str | None:
    """Return the token from a file, or from the environment; None if there is none."""
    if file is not None:
        try:
            lines = file.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"--token-file {file}: cannot be read: {error}") from error
        token, where = (lines[0].strip() if lines else ""), f"--token-file {file}"
    else:
        token, where = os.environ.get(TOKEN_VARIABLE, "").strip(), TOKEN_VARIABLE
        if not token:
            return None
    if len(token) < FEWEST_CHARACTERS or not token.isascii():
        raise InputError(
            f"{where}: a token has at least {FEWEST_CHARACTERS} ASCII characters; "
            "make one by: python -c 'import secrets; print(secrets.token_urlsafe(32))'"
        )
    return token


@dataclass(frozen=True)
class Policy:
    """What is allowed.

    Attributes:
        host: address that the service is bound to.
        token: what a request must show; None: nothing.
        hosts: more names under which the service is reached, e.g. that of a proxy.
        read_only: refuse all changes.
    """

    host: str = "127.0.0.1"
    token: str | None = None
    hosts: tuple[str, ...] = ()
    read_only: bool = False

    def __post_init__(self) -> None:
        if self.token is None and not is_loopback(self.host):
            raise InputError(
                f"--host {self.host}: other machines can reach this address, so a token is needed; "
                f"give --token-file FILE, or set {TOKEN_VARIABLE}"
            )

    @property
    def session(self) -> str:
        """What the page's cookie holds: it shows that the token was known, but does not tell it."""
        return hashlib.sha256(f"lignn page {self.token}".encode()).hexdigest()

    def knows(self, token: str) -> bool:
        """Return whether a token is right, in a time that does not depend on it."""
        return self.token is None or hmac.compare_digest(token.encode(), self.token.encode())

    @cached_property
    def _names(self) -> frozenset[str] | None:
        """Names under which the service may be reached; None: any, since the name of this machine is not known."""
        return frozenset((*_LOCAL, self.host, *self.hosts)) if is_loopback(self.host) or self.hosts else None

    def allows_host(self, name: str) -> bool:
        """Return whether the service may be reached under a name: a page elsewhere may point its own here."""
        return self._names is None or name in self._names  # with any name, the token decides


class Gate:
    """The layer that checks each request before the application sees it.

    Args:
        app: the application.
        policy: what is allowed.
    """

    def __init__(self, app: ASGIApp, policy: Policy) -> None:
        self._app, self._policy = app, policy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that is not allowed; pass on all others."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self._refusal(scope, headers)
        if refusal is None:
            try:
                if scope["type"] == "http" and scope["method"] not in _SAFE:
                    receive = await _with_body(receive)
            except _RefusedError as error:
                await problem(error.status, error.detail, {"Connection": "close"})(scope, receive, send)
                return
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": refusal[1]})
        else:
            status, detail = refusal
            more = {"WWW-Authenticate": "Bearer"} if status == 401 else None
            if status == 401 and "text/html" in headers.get(b"accept", ""):
                status, more = 303, {"Location": f"{scope.get('root_path', '')}/login"}
            await problem(status, detail, more)(scope, receive, send)

    def _refusal(self, scope: Scope, headers: dict[bytes, str]) -> tuple[int, str] | None:
        """Return status and sentence for a request that is refused."""
        host = headers.get(b"host", "")
        if not self._policy.allows_host(_name(host)):
            return 421, f"this service is not reached under the name {host!r}; add --allow-host to allow it"
        unsafe = scope["type"] == "websocket" or scope["method"] not in _SAFE
        origin = headers.get(b"origin")
        foreign = origin is not None and urlsplit(origin).netloc.lower() != host.lower()
        if unsafe and (foreign or headers.get(b"sec-fetch-site") in ("cross-site", "same-site")):
            return 403, "this request comes from a page elsewhere"
        path = scope["path"]
        if self._policy.token is not None and path not in _OPEN and not self._is_known(headers):
            return 401, "a token is needed: send it as Authorization: Bearer TOKEN, or open /login"
        length = headers.get(b"content-length", "0")
        if not length.isdecimal() or int(length) > MOST_BYTES:
            return 413, f"a body may have at most {MOST_BYTES} bytes"
        return None

    def _is_known(self, headers: dict[bytes, str]) -> bool:
        kind, _, token = headers.get(b"authorization", "").partition(" ")
        if kind.lower() == "bearer":
            return self._policy.knows(token.strip())
        try:
            cookie = SimpleCookie(headers.get(b"cookie", "")).get(COOKIE)
        except CookieError:
            return False
        return cookie is not None and hmac.compare_digest(cookie.value.encode(), self._policy.session.encode())


class _RefusedError(Exception):
    """A body that is too large, too deep or too slow."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status, self.detail = status, detail


def _name(host: str) -> str:
    """Return a host without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if ":" in host else host


async def _with_body(receive: Receive) -> Receive:
    """Read the whole body within its limits; return a `receive` that hands it over at once."""
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while True:
                message = await receive()
                body += message.get("body", b"")
                if len(body) > MOST_BYTES:
                    raise _RefusedError(413, f"a body may have at most {MOST_BYTES} bytes")
                if not message.get("more_body", False):
                    break
    except TimeoutError:
        raise _RefusedError(408, f"the body took longer than {BODY_SECONDS:g} s to arrive") from None
    _check_depth(bytes(body))
    pending: list[Message] = [{**message, "body": bytes(body)}]

    async def replayed() -> Message:
        return pending.pop() if pending else await receive()

    return replayed


def _check_depth(body: bytes) -> None:
    """Refuse JSON that is nested so deep that a parser may fail."""
    if body.count(b"[") + body.count(b"{") <= MOST_DEPTH:
        return
    depth = 0
    for sign in _TEXTS.sub(b"", body).translate(None, _NO_BRACKETS):
        depth += 1 if sign in b"[{" else -1
        if depth > MOST_DEPTH:
            raise _RefusedError(413, f"a body may be nested at most {MOST_DEPTH} deep")
