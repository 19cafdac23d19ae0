"""`lignn inspect`: what a graph holds and what will be done with it, before anything is trained."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lignn.cli.options import (
    Column,
    EdgesName,
    Ignore,
    Link,
    Missing,
    NamedGraph,
    Order,
    SkipBad,
    Strict,
    Undirected,
    command_of,
    complete_graph,
)
from lignn.cli.output import Json, print_json, print_table

if TYPE_CHECKING:
    from lignn.classifier.suspects import Suspects
    from lignn.evaluation.inspection import Inspection


def inspect(
    graph: Annotated[
        str | None,
        typer.Argument(
            metavar="GRAPH",
            help="Graph as for lignn fit; may be left out with --suspects.",
            autocompletion=complete_graph,
            show_default=False,
        ),
    ] = None,
    edges: EdgesName = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE.html", help="HTML page with all of it, in pictures.")
    ] = None,
    undirected: Undirected = False,
    missing: Missing = None,
    column: Column = None,
    ignore: Ignore = None,
    link: Link = None,
    order: Order = None,
    skip_bad: SkipBad = False,
    strict: Strict = False,
    suspects: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL",
            help="List labels of this model's graph that its predictions without them contradict; trains five times.",
        ),
    ] = None,
    count: Annotated[int, typer.Option(min=1, help="With --suspects: number of labels to list.")] = 10,
    as_json: Json = False,
) -> None:
    """Say what a graph holds: columns and what will be done with each, edges, labels, and what looks wrong."""
    from lignn.cli import fit_summary
    from lignn.errors import InputError

    if graph is None:
        if suspects is None:
            raise InputError("GRAPH is missing: name the graph to inspect, or a model by --suspects MODEL")
        _refuse({"-o": out, "--undirected": undirected, "--missing": missing, "--column": column, "--ignore": ignore})
        _refuse({"--link": link, "--order": order, "--skip-bad": skip_bad, "--strict": strict})
    if out is not None:
        fit_summary.check(out)
    named = (
        None
        if graph is None
        else NamedGraph(
            graph, edges, undirected, missing, column, ignore, link, order, skip_bad=skip_bad, strict=strict
        )
    )
    found = None if named is None else _inspected(named, quiet=as_json)
    doubtful = None if suspects is None else _suspects(suspects, count)
    if out is not None and found is not None:
        from lignn.evaluation import inspection_page

        inspection_page.write(out, found, doubtful)
    if as_json:
        print_json(
            ({} if found is None else found.plain() | {"command": _proposed(found, named)})
            | {"suspects": None if doubtful is None else doubtful.plain(), "page": None if out is None else str(out)}
        )
        return
    if found is not None:
        _print(found)
        if (command := _proposed(found, named)) is not None:
            typer.echo(f"  {command}" if found.proposal is not None else f"To fit a model to it:\n  {command}")
    if doubtful is not None:
        typer.echo(str(doubtful))
    if out is not None:
        typer.echo(f"Page: {out}")


def _refuse(given: dict[str, object]) -> None:
    """Raise for an option that says how to inspect a graph if there is none."""
    from lignn.errors import InputError

    for option, value in given.items():
        if value:
            raise InputError(f"{option} is for a graph; name the GRAPH to inspect")


def _inspected(named: NamedGraph, quiet: bool) -> Inspection:
    from lignn.cli import reading
    from lignn.evaluation import inspection, stored_inspection

    if (store := reading.opened(named)) is not None:
        return stored_inspection.inspect(store)
    graph = reading.read(named.source(), quiet)
    reading.tell(graph, quiet)
    return inspection.inspect(graph)


def _suspects(model: Path, count: int) -> Suspects:
    from lignn import classifier

    return classifier.load(model).suspects(count)


def _proposed(found: Inspection, named: NamedGraph | None) -> str | None:
    """Return the command that fits a model to these tables, with the proposed rules; None without tables."""
    from lignn.cli import reading

    if named is None or reading.opened(named) is not None:
        return None
    if found.proposal is not None:
        return found.proposal.command(named.arguments())
    tables = named.source().read().reading  # the graph is cached
    return None if tables is None else command_of(named, tables)


def _print(found: Inspection) -> None:
    from lignn.evaluation.inspected_columns import HEADER, tables
    from lignn.evaluation.inspection_page import CLASSES, SHOWN, class_rows

    print_table((found.name, ""), found.facts())
    for table in tables(found.columns, SHOWN):
        typer.echo(f"\n {table.title}")
        print_table(HEADER, table.rows, folded=2)
    if found.known:
        typer.echo()
        print_table(CLASSES, class_rows(found))
    for text in found.warnings:
        typer.echo(f"warning: {text}")
    if found.proposal is not None:
        typer.echo("\nValues of these columns name something that rows share; to join rows through them:")
        for column in found.proposal.columns:
            typer.echo(f"  {column.note}")
