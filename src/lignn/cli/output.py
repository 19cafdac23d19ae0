"""What commands print: tables for people, JSON for machines."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]


def print_json(value: Any) -> None:
    """One JSON document on the standard output; JSON has no infinity and no NaN, null stands for them."""
    typer.echo(json.dumps(_finite(value), indent=2, ensure_ascii=False, allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]], folded: int | None = None) -> None:
    """Print a table without lines.

    Args:
        header: the first row.
        rows: the others.
        folded: number of the last columns whose cells are folded if the terminal is too narrow; default: all but one.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*header, box=None, header_style="bold")
    first = 1 if folded is None else len(header) - folded
    for number, column in enumerate(table.columns):
        if number < first:
            column.no_wrap = True
        else:
            column.overflow = "fold"
    for row in rows:
        table.add_row(*map(Text, row))
    Console().print(table)
