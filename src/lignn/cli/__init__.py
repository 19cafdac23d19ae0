"""The command line: one file a verb. Verbs import what they need when they run, so that `--help` is quick."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, version
from platform import platform, python_version
from typing import Annotated

import typer

from lignn.cli import bench, datasets, reproduce
from lignn.errors import InputError, LignnError

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode="rich")
app.add_typer(datasets.app, name="datasets")
app.command()(bench.bench)
app.command()(reproduce.reproduce)


def _print_versions(wanted: bool) -> None:
    if not wanted:
        return
    typer.echo(f"lignn {version('lignn')}, Python {python_version()}, {platform()}")
    for package in ("torch", "torch_geometric", "numba", "numpy", "scipy", "scikit-learn", "pyarrow"):
        try:
            typer.echo(f"{package} {version(package)}")
        except PackageNotFoundError:
            typer.echo(f"{package} not installed")
    raise typer.Exit


@app.callback()
def lignn(
    _: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_versions, is_eager=True, help="Print the versions a bug report needs."
        ),
    ] = False,
) -> None:
    """Label-inputted implicit graph neural networks: the labels of a half-labelled graph."""


def main() -> None:
    """Run the command line. Exit codes: 0, 1 (failed), 2 (bad input), 130 (interrupted)."""
    try:
        app()
    except LignnError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(2 if isinstance(error, InputError) else 1)
