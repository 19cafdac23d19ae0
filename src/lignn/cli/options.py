"""Options that verbs share: the parameters of `NodeClassifier` under their own names, a config file, a graph."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Callable, Iterable
from functools import wraps
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any

import typer

METHODS = (
    "lignn",
    "lae",
    "label_input",
    "label_reuse",
    "lpa",
    "reslpa",
    "threeference",
    "correct_and_smooth",
    "ignn",
    "eignn",
    "backbone",
)
BACKBONES = ("gcn", "gat", "sage", "gin", "mlp", "sgc", "jknet", "gcnii")


def _complete_graph(incomplete: str) -> list[str]:
    from lignn.datasets import catalogue

    paths = [str(path) for path in Path().glob(f"{incomplete}*") if path.is_dir() or path.suffix == ".npz"]
    return [name for name in catalogue.names() if name.startswith(incomplete)] + sorted(paths)


def _scalar(text: str) -> Any:
    """A value in TOML's notation, else the text itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _assignment(option: str, text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not (key and equals):
        flag = f"--{option.replace('_', '-')}"
        raise typer.BadParameter(f"{text!r} is not of the form name=value", param_hint=flag)
    return key.strip(), _scalar(value.strip())


def _option(
    kind: Any, panel: str, help_text: str = "", choices: tuple[str, ...] = (), metavar: str | None = None
) -> Any:
    """An option without a default; the choices are completed, but checked by the classifier, which can say more."""
    option = typer.Option(
        help=help_text + ", ".join(choices),
        rich_help_panel=panel,
        show_default=False,
        metavar=metavar,
        # a fixed list, so that pressing Tab imports nothing
        autocompletion=(lambda incomplete: [c for c in choices if c.startswith(incomplete)]) if choices else None,
    )
    return Annotated[kind | None, option]


_METHOD, _TRAINING, _SOLVE = "Method and network", "Training", "Equilibrium"
_PAIRS = "More options of the {} by name, e.g. {}; may be repeated."
PARAMETERS: dict[str, Any] = {
    "preset": _option(str, _METHOD, "Values of all that is not given: ", ("practical", "paper")),
    "method": _option(str, _METHOD, choices=METHODS),
    "backbone": _option(str, _METHOD, choices=BACKBONES),
    "hidden": _option(int, _METHOD, "Width of the hidden layers."),
    "dropout": _option(float, _METHOD, "Share of the hidden units that is dropped in training."),
    "feature_mask": _option(float, _METHOD, "Share of the nodes whose features are hidden in an epoch."),
    "backbone_options": _option(list[str], _METHOD, _PAIRS.format("backbone", "num_layers=3"), metavar="NAME=VALUE"),
    "method_options": _option(list[str], _METHOD, _PAIRS.format("method", "lam=0.5"), metavar="NAME=VALUE"),
    "lr": _option(float, _TRAINING, "Learning rate of Adam."),
    "weight_decay": _option(float, _TRAINING, "Weight decay of Adam."),
    "max_epochs": _option(int, _TRAINING, "The most epochs."),
    "patience": _option(int, _TRAINING, "Stop after so many epochs without a better validation score."),
    "seed": _option(int, _TRAINING, "Of weights, masks and splits."),
    "precision": _option(str, _TRAINING, choices=("float32", "float64")),
    "inductive": _option(bool, _TRAINING, "Train without the edges of held-out nodes."),
    "calibrate": _option(bool, _TRAINING, "Fit a temperature to the held-out labels."),
    "refit": _option(bool, _TRAINING, "Train once more, on all known labels."),
    "mask_rate": _option(
        str, _SOLVE, "Share of the nodes whose label input is hidden in an epoch.", metavar="SHARE|adaptive"
    ),
    "forward_mask": _option(bool, _SOLVE, "Hide them in the forward solve too."),
    "max_steps": _option(int, _SOLVE, "Budget of a solve."),
    "tol": _option(float, _SOLVE, "Tolerance of a solve."),
    "solver": _option(str, _SOLVE, choices=("picard", "anderson", "broyden")),
    "gradient": _option(str, _SOLVE, choices=("paper", "exact", "last_step")),
    "warm_start": _option(bool, _SOLVE, "Start a solve from the last epoch's state."),
}
"""Every parameter of `NodeClassifier`, as an option of the same name."""

GraphName = Annotated[
    str,
    typer.Argument(
        metavar="GRAPH",
        help="Name of a dataset, folder with nodes.csv and edges.csv, or .npz file.",
        autocompletion=_complete_graph,
    ),
]
Undirected = Annotated[bool, typer.Option("--undirected", help="Use every edge in both directions.")]
Config = Annotated[
    Path | None, typer.Option(help="TOML file with values of the options below; the command line wins over it.")
]


def with_parameters(without: Iterable[str] = ()) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command `--config` and an option for each parameter of `NodeClassifier` but those in `without`.

    The command's own argument `parameters` receives the ones that were given, in a dictionary.
    """
    offered = {name: annotation for name, annotation in PARAMETERS.items() if name not in set(without)}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command, eval_str=True)
        own = [parameter for parameter in signature.parameters.values() if parameter.name != "parameters"]
        more = [
            Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
            for name, annotation in {"config": Config, **offered}.items()
        ]

        @wraps(command)
        def extended(**values: Any) -> None:
            from lignn.cli import config

            options = {name: values.pop(name) for name in offered}
            file = values.pop("config")
            given = {name: _value(name, value) for name, value in options.items() if value is not None}
            settled = ({} if file is None else config.read(file, offered)) | given
            command(**values, parameters=settled)

        extended.__signature__ = signature.replace(parameters=[*own, *more])  # type: ignore[attr-defined]
        return extended

    return decorate


def _value(name: str, value: Any) -> Any:
    """An option's value as `NodeClassifier` takes it."""
    if name == "mask_rate":
        return _scalar(value)
    return dict(_assignment(name, text) for text in value) if name.endswith("_options") else value
