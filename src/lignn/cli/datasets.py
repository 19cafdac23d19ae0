"""`lignn datasets`: list the named graphs, or describe one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lignn.cli.output import Json, print_json, print_table

if TYPE_CHECKING:
    from lignn.datasets.statistics import Statistics

app = typer.Typer(help="List the named graphs, or describe one.")

Root = Annotated[Path | None, typer.Option(help="Folder to look in before $LIGNN_DATA and the cache folder.")]


@app.callback(invoke_without_command=True)
def list_datasets(context: typer.Context, root: Root = None, as_json: Json = False) -> None:
    """List the named graphs and where each is stored; `info NAME` describes one."""
    context.obj = {"root": root, "as_json": as_json}
    if context.invoked_subcommand is not None:
        return
    from lignn.datasets import catalogue, places

    files = {entry.name: places.find(entry.name, root) if entry.is_stored else None for entry in catalogue.ENTRIES}
    if as_json:
        records = [
            {"name": e.name, "summary": e.summary, "source": e.source, "embedded": not e.is_stored}
            | {"file": None if files[e.name] is None else str(files[e.name])}
            for e in catalogue.ENTRIES
        ]
        print_json(records)
        return
    rows = []
    for entry in catalogue.ENTRIES:
        file = files[entry.name]
        place = str(file.parent) if file else "to download" if entry.is_stored else "embedded"
        rows.append((entry.name, entry.summary, place))
    print_table(("name", "what it is", "place"), rows)


@app.command()
def info(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name of a graph that `lignn datasets` lists.")],
    plot: Annotated[
        Path | None, typer.Option(help="File for a picture of the label transitions: .png, .svg, .pdf.")
    ] = None,
    root: Root = None,
    as_json: Json = False,
) -> None:
    """Print the statistics of a graph, those of the paper's Table 2 among them; download it if it is not stored."""
    from dataclasses import asdict

    from lignn import datasets
    from lignn.datasets.statistics import check_ending, save_transitions, statistics

    if plot is not None:
        check_ending(plot)
    graph = datasets.load(name, root or context.obj["root"])
    found = statistics(graph)
    if plot is not None:
        save_transitions(graph, plot)
    if as_json or context.obj["as_json"]:
        record: dict[str, Any] = {"name": name, **asdict(found), "class_names": graph.class_names}
        print_json(record | {"plot": None if plot is None else str(plot)})
        return
    print_table((name, ""), _lines(found))
    if plot is not None:
        typer.echo(f"label transitions: {plot}")


def _lines(found: Statistics) -> list[tuple[str, str]]:
    return [
        ("#nodes", f"{found.nodes:,}"),
        ("#edges, as the paper counts", f"{found.edges:,}"),
        ("average degree", f"{found.average_degree:.2f}"),
        ("#features", f"{found.features:,}"),
        ("#classes", f"{found.classes}"),
        ("intra-class edges", f"{found.intra_class_edges:.2%}"),
        ("#edges, undirected and coalesced", f"{found.pairs:,}"),
        ("features that are not zero", f"{found.feature_density:.2%}"),
        ("labelled nodes", f"{found.labelled:,}"),
        ("node homophily", f"{found.node_homophily:.4f}"),
        ("adjusted homophily", f"{found.adjusted_homophily:.4f}"),
        ("median and largest degree", f"{found.median_degree:g}, {found.maximum_degree:,}"),
        ("nodes without edges", f"{found.isolated:,}"),
        ("connected components", f"{found.components:,}"),
        ("components without a label", f"{found.unlabelled_components:.2%}"),
        ("public splits", f"{found.public_splits}"),
    ]
