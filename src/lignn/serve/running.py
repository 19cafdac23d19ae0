"""The server process: a socket, uvicorn, and the first words."""

from __future__ import annotations

import socket
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer
import uvicorn
from starlette.types import ASGIApp

from lignn.errors import InputError
from lignn.serve.app import application
from lignn.serve.opening import Place
from lignn.serve.security import Policy, read_token
from lignn.serve.service import Service

_KEEP_ALIVE_SECONDS = 30
_SHUTDOWN_SECONDS = 10
_MOST_CONNECTIONS = 1000


def policy(host: str, token_file: Path | None, hosts: tuple[str, ...], read_only: bool) -> Policy:
    """Return what the service allows; the token is from a file or the environment."""
    return Policy(host, read_token(token_file), hosts, read_only)


def run(
    place: Place,
    policy: Policy,
    port: int,
    page: bool,
    tls: tuple[Path, Path] | None,
    tell: Callable[[dict[str, Any]], None] | None,
) -> None:
    """Serve until a signal ends it.

    Args:
        place: model or graph, and journal.
        policy: what is allowed.
        port: port to listen at; 0 for any that is free.
        page: whether to serve the page.
        tls: certificate and its key, for https.
        tell: called once with where the service is, for machines; None says it in words.
    """
    # NiceGUI looks at all objects of the process when it starts, also at deprecated ones of torch.
    warnings.filterwarnings("ignore", category=FutureWarning, module="nicegui")
    listening = _listen(policy.host, port)
    service = Service(place, policy)
    server = uvicorn.Server(config(application(service, page), tls))
    name = f"[{policy.host}]" if ":" in policy.host else policy.host
    address = f"{'https' if tls else 'http'}://{name}:{listening.getsockname()[1]}"
    threading.Thread(target=_announce, args=(server, service, address, page, tell), daemon=True).start()
    server.run(sockets=[listening])
    if service.engine.failure is not None:
        raise InputError(service.engine.failure)


def config(app: ASGIApp, tls: tuple[Path, Path] | None) -> uvicorn.Config:
    """Return how uvicorn is to run the application."""
    certificate, key = tls or (None, None)
    return uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        limit_concurrency=_MOST_CONNECTIONS,
        server_header=False,
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise InputError(f"--host {host} --port {port}: cannot be used: {error.strerror or error}") from error
    return listening


def _announce(
    server: uvicorn.Server,
    service: Service,
    address: str,
    page: bool,
    tell: Callable[[dict[str, Any]], None] | None,
) -> None:
    """Say where the service is once it is ready, or end the server if it cannot be."""
    engine = service.engine
    engine.opened.wait()
    if engine.failure is not None:
        server.should_exit = True
        return
    state, journal = engine.state, str(engine.place.journal)
    if tell is not None:
        tell({"address": address, "version": state.version, "journal": journal, "skipped": list(engine.skipped)})
        return
    made = "no model yet" if state.fitted is None else f"{state.fitted.spec.name}, {len(state.classes)} classes"
    typer.echo(f"{address}: {state.graph.name}, {state.graph.num_nodes} nodes, {made}, version {state.version}")
    typer.echo(f"labels and other changes: {journal}" + (f"; page: {address}/" if page else ""))
    for line in engine.skipped:
        typer.echo(f"left out, it does not fit the model: {line}")
