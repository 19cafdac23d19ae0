"""What commands print: tables for people, JSON for machines."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from lignn.features import Column


_SHOWN = 20
"""Columns that have a line of their own; of more, the ignored ones come first."""

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


def say_columns(columns: Sequence[Column]) -> None:
    """Print a line for each column of a table: its name, its kind, and what was done with it."""
    if not columns:
        return
    ignored = [column for column in columns if not column.used]
    shown = columns if len(columns) <= _SHOWN else [*ignored, *(c for c in columns if c.used)][:_SHOWN]
    typer.echo(f"Columns: {len(columns) - len(ignored)} are features, {len(ignored)} are ignored")
    width = max(len(column.name) for column in shown)
    for column in shown:
        typer.echo(f"  {column.name:<{width}}  {column.kind}: {column.treatment}")
    if len(columns) > len(shown):
        typer.echo(f"  and {len(columns) - len(shown)} more; `features_` of the classifier has all")
