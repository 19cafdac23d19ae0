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

from lignn import __version__
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

EXAMPLES = {
    "inspect": "lignn inspect payments -o inspect.html",
    "fit": "lignn fit payments -o model",
    "predict": "lignn predict model -o predictions.csv",
    "compare": "lignn compare payments --runs 3",
    "diagnose": "lignn diagnose model",
    "tune": "lignn tune payments --trials 20 -o tuned.toml",
    "serve": "lignn serve model",
    "reproduce": "lignn reproduce table2 --only 'LI-GCN/chameleon' --jobs 2",
    "report": "lignn report results",
    "bench": "lignn bench epoch --quick",
    "datasets": "lignn datasets",
    "datasets info": "lignn datasets info karate",
    "labels": "lignn labels export model --to labels.csv",
    "labels export": "lignn labels export model --to labels.csv",
    "labels import": "lignn labels import model new_labels.csv --who Ada",
    "store": "lignn store build payments payments.store --parts 4",
    "store build": "lignn store build payments payments.store --parts 4",
    "store info": "lignn store info payments.store --check",
}
"""An example of each command, which its help shows."""

_STEPS = """Labels for a half-labelled graph, in five steps:

  1. lignn inspect GRAPH                      look at the tables: columns, edges, labels, what looks wrong
  2. lignn fit GRAPH -o MODEL                 train on the known labels
  3. lignn predict MODEL -o predictions.csv   a label, a confidence and the evidence for every node
  4. lignn compare GRAPH                      do labels help here? against GCN, C&S and label propagation
  5. lignn diagnose MODEL                     can the equilibrium be relied on?

GRAPH is a folder with nodes.csv and edges.csv, or the name of a dataset: try `lignn fit karate -o model`.
`lignn --help` lists all commands, `lignn fit --help` all options with their defaults."""

app = typer.Typer(
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for verb in (inspect.inspect, fit.fit, predict.predict, compare.compare, diagnose.diagnose, tune.tune):
    app.command(epilog=f"Example: {EXAMPLES[verb.__name__]}")(verb)
for verb in (serve.serve, reproduce.reproduce, report.report, bench.bench):
    app.command(epilog=f"Example: {EXAMPLES[verb.__name__]}")(verb)
for name, group in {"datasets": datasets.app, "labels": labels.app, "store": store.app}.items():
    app.add_typer(group, name=name, epilog=f"Example: {EXAMPLES[name]}")
    for below in group.registered_commands:
        own = below.name or getattr(below.callback, "__name__", "")
        below.epilog = f"Example: {EXAMPLES[f'{name} {own}']}"


def _print_versions(wanted: bool) -> None:
    if not wanted:
        return
    typer.echo(f"lignn {__version__}, Python {python_version()}, {platform()}")
    for package in ("torch", "torch_geometric", "numba", "numpy", "scipy", "scikit-learn", "pyarrow"):
        try:
            typer.echo(f"{package} {version(package)}")
        except PackageNotFoundError:
            typer.echo(f"{package} not installed")
    raise typer.Exit


@app.callback()
def lignn(
    context: typer.Context,
    _: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_versions, is_eager=True, help="Print the versions a bug report needs."
        ),
    ] = False,
) -> None:
    """Label-inputted implicit graph neural networks: the labels of a half-labelled graph."""
    if context.invoked_subcommand is None:
        typer.echo(_STEPS)


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
