"""What became of the columns of a table, in a few lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from lignn.features import Column

_SHOWN = 20
"""Columns that have a line of their own; of more, the ignored ones come first."""


def say(columns: Sequence[Column]) -> None:
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
