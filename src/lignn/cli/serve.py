"""`lignn serve`: a model as an HTTP service, with a page to label nodes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lignn.cli.options import Column, Ignore, Missing, NamedGraph, Undirected
from lignn.cli.output import Json, print_json

if TYPE_CHECKING:
    from lignn.serve.opening import Place

Served = Annotated[
    str, typer.Argument(metavar="MODEL", help="Folder that `lignn fit` has written; or a graph, to start from nothing.")
]
JournalFile = Annotated[
    Path | None,
    typer.Option("--journal", help="File of the labels and other changes; default: MODEL.journal.sqlite."),
]
ModelFolder = Annotated[
    Path | None, typer.Option("--out", "-o", help="For a graph: folder of the model to be made; default: GRAPH.model.")
]


def serve(
    model: Served,
    host: Annotated[str, typer.Option(help="Address; one that others can reach needs a token.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for any that is free.")] = 8800,
    journal: JournalFile = None,
    out: ModelFolder = None,
    token_file: Annotated[
        Path | None, typer.Option(help="File with the token that requests must show; or set LIGNN_TOKEN.")
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Another name of this service, e.g. that of a proxy.")
    ] = None,
    tls_cert: Annotated[Path | None, typer.Option(help="Certificate (PEM), for https.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Its private key (PEM).")] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Refuse all changes.")] = False,
    no_page: Annotated[bool, typer.Option("--no-page", help="Serve HTTP only.")] = False,
    undirected: Undirected = False,
    missing: Missing = None,
    column: Column = None,
    ignore: Ignore = None,
    as_json: Json = False,
) -> None:
    """Serve predictions over HTTP, and a page to label nodes; labels are kept in a journal."""
    from lignn.atomic import locked
    from lignn.errors import InputError

    place = place_of(model, out, journal, undirected, missing, column, ignore)
    from lignn.serve import running

    if (tls_cert is None) != (tls_key is None):
        raise InputError("--tls-cert and --tls-key: give both, or none")
    tls = None if tls_cert is None or tls_key is None else (tls_cert, tls_key)
    for file in tls or ():
        if not file.is_file():
            raise InputError(f"{file}: there is no such file")
    policy = running.policy(host, token_file, tuple(allow_host or ()), read_only)
    with locked(lock_of(place.journal), f"{place.journal}: another lignn serve is using this journal; stop it first"):
        running.run(place, policy, port, not no_page, tls, print_json if as_json else None)


def place_of(
    model: str,
    out: Path | None,
    journal: Path | None,
    undirected: bool = False,
    missing: list[str] | None = None,
    column: list[str] | None = None,
    ignore: list[str] | None = None,
) -> Place:
    """Return where model, graph and journal are; raise if the extra is not installed, or a folder cannot be used."""
    from lignn.errors import InputError

    try:
        from lignn.serve import app  # noqa: F401
        from lignn.serve.opening import Place
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("lignn"):
            raise
        raise InputError(
            f"lignn serve needs {error.name}, which is not installed; pip install 'lignn[serve]'"
        ) from error
    place = Place.of(model, NamedGraph(model, None, undirected, missing, column, ignore).source(), out, journal)
    if not place.journal.parent.is_dir():
        raise InputError(
            f"{place.journal.parent}: there is no such folder for the journal; create it, or give --journal"
        )
    return place


def lock_of(journal: Path) -> Path:
    """Return the file that says that a journal is in use."""
    return journal.with_name(f".{journal.name}.lock")
