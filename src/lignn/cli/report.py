"""`lignn report`: write the paper's figures and tables from records, and the numbers of documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def report(
    folder: Annotated[Path, typer.Argument(help="Folder of the records that `lignn reproduce` wrote.")],
    out: Annotated[Path | None, typer.Option(help="Folder of the report; default: that of the records.")] = None,
    docs: Annotated[
        list[Path] | None,
        typer.Option(
            "--docs",
            metavar="FILE|FOLDER",
            help="Write no report; fill the numbers and tables of these Markdown files from the records.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
) -> None:
    """Write the paper's figures and tables beside the published numbers: Markdown, PNG, SVG and one HTML page."""
    if docs:
        from lignn import documents

        there = documents.Records.of(folder)
        places = {str(file): documents.fill(file, there) for file in documents.documents(docs)}
        lines = [f"{file}: filled {len(found)} places" for file, found in places.items() if found]
        typer.echo(json.dumps(places, indent=2) if as_json else "\n".join(lines))
        return
    from lignn.studies.report import report as write

    files = [str(file) for file in write(folder, out)]
    typer.echo(json.dumps(files, indent=2) if as_json else "\n".join(files))
