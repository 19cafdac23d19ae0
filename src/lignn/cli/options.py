"""Options that verbs share: the parameters of `NodeClassifier` under their own names, a config file, a graph."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lignn.declarations import PARAMETERS, Parameter

if TYPE_CHECKING:
    from lignn.datasets.sources import Source


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


def assignment(option: str, text: str) -> tuple[str, Any]:
    """Return name and value of an option of the form name=value."""
    key, equals, value = text.partition("=")
    if not (key and equals):
        flag = f"--{option.replace('_', '-')}"
        raise typer.BadParameter(f"{text!r} is not of the form name=value", param_hint=flag)
    return key.strip(), _scalar(value.strip())


_TYPES: dict[str, Any] = {
    "whole number": int,
    "number": float,
    "number or 'adaptive'": str,
    "true or false": bool,
    "text": str,
    "table": list[str],
}


def _option(parameter: Parameter) -> Any:
    """Return an option without a default; choices are completed, but checked by the classifier, which can say more."""
    choices = parameter.choices
    option = typer.Option(
        help=parameter.help + ", ".join(choices),
        rich_help_panel=parameter.panel,
        show_default=False,
        metavar=parameter.metavar,
        # a fixed list, so that pressing Tab imports nothing
        autocompletion=(lambda incomplete: [c for c in choices if c.startswith(incomplete)]) if choices else None,
    )
    return Annotated[_TYPES[parameter.kind] | None, option]


OPTIONS: dict[str, Any] = {name: _option(parameter) for name, parameter in PARAMETERS.items()}
"""Every parameter of `NodeClassifier` as an option of the same name."""

GraphName = Annotated[
    str,
    typer.Argument(
        metavar="GRAPH",
        help="Name of a dataset, folder with nodes.csv and edges.csv, or .npz file.",
        autocompletion=_complete_graph,
    ),
]
Undirected = Annotated[bool, typer.Option("--undirected", help="Use every edge in both directions.")]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        "--missing",
        metavar="LABEL,…",
        help="Labels in the tables that mean unknown, --missing= for none; default: -1 and marks such as NA, NaN, ?.",
        show_default=False,
    ),
]
Config = Annotated[
    Path | None, typer.Option(help="TOML file with values of the options below; the command line wins over it.")
]


def source(graph: str, undirected: bool, missing: list[str] | None) -> Source:
    """Return the graph that a command names; `--missing` may be repeated or hold a list with commas."""
    from lignn.datasets.sources import Source

    marks = None if missing is None else tuple(mark for text in missing for mark in text.split(",") if mark)
    return Source(graph, undirected, marks)


def with_parameters(without: Iterable[str] = ()) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command `--config` and an option for each parameter of `NodeClassifier` but those in `without`.

    The command's own argument `parameters` receives the ones that were given, in a dictionary.
    """
    offered = {name: annotation for name, annotation in OPTIONS.items() if name not in set(without)}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command, eval_str=True)
        own = [parameter for parameter in signature.parameters.values() if parameter.name != "parameters"]
        more = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
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
    return dict(assignment(name, text) for text in value) if name.endswith("_options") else value
