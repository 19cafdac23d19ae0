"""`lignn store`: build a graph on the disk, in parts, and look at it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lignn.cli.options import Column, Ignore, Missing, NamedGraph, Undirected
from lignn.cli.output import Json, print_json, print_table

if TYPE_CHECKING:
    from lignn.store.build import Origin

app = typer.Typer(
    help="Graphs on the disk, in parts: larger than memory, or for several processes.", no_args_is_help=True
)

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the store.")]


@app.command()
def build(
    source: Annotated[
        str,
        typer.Argument(metavar="SOURCE", help="Folder with nodes and edges, table of the nodes, .npz file or dataset."),
    ],
    folder: Folder,
    parts: Annotated[int, typer.Option(metavar="P", help="Number of parts; a multiple of the processes to come.")],
    partition: Annotated[
        str,
        typer.Option(metavar="metis|blocks|FILE", help="Method, or a file with one id per line: the order of nodes."),
    ] = "metis",
    memory: Annotated[str, typer.Option(metavar="SIZE", help="Memory to use, e.g. 4GB.")] = "4GB",
    edges: Annotated[
        str | None, typer.Option(metavar="EDGES", help="Table of the edges, if SOURCE is that of the nodes.")
    ] = None,
    undirected: Undirected = False,
    missing: Missing = None,
    column: Column = None,
    ignore: Ignore = None,
    features: Annotated[
        str, typer.Option(metavar="auto|raw", help="Prepare columns as lignn fit does, or take numbers as they are.")
    ] = "auto",
    as_json: Json = False,
) -> None:
    """Build a store, whole or not at all; a build that was killed goes on when it is started again."""
    from lignn.classifier.planning import parse_bytes
    from lignn.graph.opening import Options as Reading
    from lignn.store.build import Options, build

    named = NamedGraph(source, edges, undirected, missing, column, ignore).source(features)
    reading = Reading(named.missing, named.by_role, named.ignore, features)
    wanted = Options(parts, partition, parse_bytes(memory), undirected, reading)
    told = (lambda _: None) if as_json else (lambda words: typer.echo(words, err=True))
    build(_origin(named), folder, wanted, told)
    info(folder, as_json=as_json)


def _origin(named: Any) -> Origin:
    """Return tables by their paths, which may be larger than memory, or a graph that is read here."""
    from dataclasses import replace

    if named.edges is not None:
        return Path(named.name), Path(named.edges)
    if named.is_path and not named.name.endswith(".npz"):
        return Path(named.name)
    return replace(named, undirected=False).read()


@app.command()
def info(
    folder: Folder,
    check: Annotated[
        bool, typer.Option("--check", help="Read all files and compare them with their checksums.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Describe a store."""
    from lignn import store

    if check:
        store.verify(folder)
    told = store.describe(folder)
    if as_json:
        print_json(told)
        return
    print_table((told["name"], ""), [(name.replace("_", " "), _shown(value)) for name, value in told.items()])


def _shown(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "", True: "yes", False: "no"}[value]
    if isinstance(value, list):
        return ", ".join(value)
    return f"{value:.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else value
