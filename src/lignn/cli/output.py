"""What commands print: tables for people, JSON for machines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]


def print_json(value: Any) -> None:
    """One JSON document on the standard output."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table without lines; cells that are too long for the terminal are folded, except in the first column."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*header, box=None, header_style="bold")
    for column in table.columns[1:]:
        column.overflow = "fold"
    table.columns[0].no_wrap = True
    for row in rows:
        table.add_row(*map(Text, row))
    Console().print(table)
