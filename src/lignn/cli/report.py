"""`lignn report`: write the paper's figures and tables from records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def report(
    folder: Annotated[Path, typer.Argument(help="Folder of the records that `lignn reproduce` wrote.")],
    out: Annotated[Path | None, typer.Option(help="Folder of the report; default: that of the records.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
) -> None:
    """Write the paper's figures and tables beside the published numbers: Markdown, PNG, SVG and one HTML page."""
    from lignn.studies.report import report as write

    files = [str(file) for file in write(folder, out)]
    typer.echo(json.dumps(files, indent=2) if as_json else "\n".join(files))
