"""The command line: one file a verb. Verbs import what they need when they run, so that `--help` is quick."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from platform import platform, python_version
from typing import Annotated, Any

import typer
from typer.exceptions import TyperException

from lignn.cli import (
    bench,
    compare,
    datasets,
    diagnose,
    fit,
    inspect,
    labels,
    predict,
    report,
    reproduce,
    serve,
    store,
    tune,
    workers,
)
from lignn.cli.process import ending_signals, prepare_streams
from lignn.errors import ConvergenceWarning, DataWarning, ImbalanceWarning, InputError, LignnError

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for verb in (inspect.inspect, fit.fit, predict.predict, workers.with_ray(compare.compare), diagnose.diagnose):
    app.command()(verb)
for verb in (workers.with_ray(tune.tune), serve.serve, workers.with_ray(reproduce.reproduce), report.report):
    app.command()(verb)
app.command()(bench.bench)
app.add_typer(datasets.app, name="datasets")
app.add_typer(labels.app, name="labels")
app.add_typer(store.app, name="store")


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


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Without the place in the code, which says nothing to a user.

    To what `sys.stderr` is by then, not by `typer.echo`, so that a live progress line makes room for it.
    """
    sys.stderr.write(f"warning: {message}\n")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line. Exit codes: 0, 1 (failed), 2 (bad input), 128 + n (signal n; Ctrl-C: 130)."""
    with ending_signals() as exit_code, warnings.catch_warnings():
        for kind in (ConvergenceWarning, DataWarning, ImbalanceWarning):
            warnings.simplefilter("always", kind)
        warnings.showwarning = _show_warning
        try:
            prepare_streams()
            workers.remember(arguments)
            code = app(arguments, standalone_mode=False)
        except LignnError as error:
            if workers.is_first() or not isinstance(error, InputError):  # all processes meet the same bad input
                typer.echo(f"error: {error}", err=True)
            code = 2 if isinstance(error, InputError) else 1
        except TyperException as error:
            if message := error.format_message():  # `lignn` alone has printed its help
                typer.echo(f"error: {message}", err=True)
            code = error.exit_code
        except OSError as error:  # of the output, or of a file that has no words of its own
            sys.stdout = None  # what is left in its buffer would fail once more
            place = f"{error.filename}: " if isinstance(error.filename, str) else ""
            typer.echo(f"error: {place}{error.strerror or error}", err=True)
            code = 1
        except (MemoryError, RuntimeError) as error:
            if not isinstance(error, MemoryError) and "allocate memory" not in str(error):
                raise
            typer.echo(
                "error: there is not enough memory for this; try fewer or narrower layers, or a smaller graph", err=True
            )
            code = 1
    sys.exit(exit_code(code))
