"""`lignn store`: build a graph on the disk, in parts, and look at it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from lignn.cli.output import Json, print_json, print_table

app = typer.Typer(
    help="Graphs on the disk, in parts: larger than memory, or for several processes.", no_args_is_help=True
)

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the store.")]


@app.command()
def build(
    source: Annotated[
        str,
        typer.Argument(metavar="SOURCE", help="Folder with nodes and edges (.csv, .parquet), .npz file or dataset."),
    ],
    folder: Folder,
    parts: Annotated[int, typer.Option(metavar="P", help="Number of parts; a multiple of the processes to come.")],
    partition: Annotated[
        str,
        typer.Option(metavar="metis|blocks|FILE", help="Method, or a file with one id per line: the order of nodes."),
    ] = "metis",
    memory: Annotated[str, typer.Option(metavar="SIZE", help="Memory to use, e.g. 4GB.")] = "4GB",
    undirected: Annotated[bool, typer.Option("--undirected", help="Use every edge in both directions.")] = False,
    column: Annotated[
        list[str] | None, typer.Option(metavar="ROLE=NAME", help="Name of the id, label, source, target or weight.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Build a store, whole or not at all; a build that was killed goes on when it is started again."""
    from lignn.classifier.planning import parse_bytes
    from lignn.cli import options
    from lignn.store.build import Options, build

    columns = dict(options.assignment("column", text) for text in column or ())
    wanted = Options(parts, partition, parse_bytes(memory), columns, undirected)
    path = Path(source)
    tables = path.is_dir() and any(path.glob("edges.*"))
    origin: Any = path if tables else options.source(source, False, None).read()
    build(origin, folder, wanted, (lambda _: None) if as_json else (lambda words: typer.echo(words, err=True)))
    info(folder, as_json=as_json)


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
