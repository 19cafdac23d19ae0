"""Options that verbs share: the parameters of `NodeClassifier` under their own names, a config file, a graph."""

from __future__ import annotations

import inspect
import re
import shlex
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lignn.declarations import (
    DEFAULT_BACKBONE,
    DEFAULT_METHOD,
    DEFAULT_QUALITY,
    DEFAULTS,
    METHODS,
    PARAMETERS,
    PRESETS,
    Parameter,
)
from lignn.errors import ConfigError

if TYPE_CHECKING:
    from lignn.datasets.sources import Source
    from lignn.graph.reading import Reading


_GRAPHS = (".npz", ".csv", ".tsv", ".gz", ".jsonl", ".ndjson", ".parquet", ".db", ".sqlite", ".sqlite3")
"""Endings of files that may hold a graph, or its nodes."""


def complete_graph(incomplete: str) -> list[str]:
    """Return the datasets, folders and files of graphs whose names start so."""
    from lignn.datasets import catalogue

    paths = [str(path) for path in Path().glob(f"{incomplete}*") if path.is_dir() or path.suffix in _GRAPHS]
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


_TYPES: dict[str, Any] = {
    "whole number": int,
    "number": float,
    "number or 'adaptive'": str,
    "duration": str,
    "true or false": bool,
    "text": str,
    "table": list[str],
    "text or table": list[str],
    "names": str,
}


_WORDS = {
    "method": "auto; lignn if an option of a single method is given",
    "backbone": DEFAULT_BACKBONE,
    "quality": DEFAULT_QUALITY,
    "time": "no limit",
    "backbones": "by the quality",
    "jobs": "one per core",
    "metric": "f1_micro; f1_macro if one class has over 90 %",
    "class_weight": "none",
    "teaching": "1; paper: 0",
    "mask_rate": "0.5; lignn: 0.8 if the contraction is proved; paper: 0.5",
    "both_directions": "no",
    "batch_parts": "no batches",
}


def _default(name: str) -> str:
    """Return the default of a parameter as help shows it: that of the default preset, and others that differ."""
    if name in _WORDS:
        return _WORDS[name]
    if name in DEFAULTS:
        return _shown(DEFAULTS[name])
    own = METHODS[DEFAULT_METHOD].presets
    by_preset = {preset: {**values, **own.get(preset, {})}.get(name) for preset, values in PRESETS.items()}
    first, *others = by_preset.items()
    parts = [_shown(first[1]), *(f"{preset}: {_shown(value)}" for preset, value in others if value != first[1])]
    return "; ".join(parts)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "by its rule" if value is None else str(value)


def _option(name: str, parameter: Parameter) -> Any:
    """Return an option whose default is shown only; choices are checked by the classifier, which can say more."""
    choices = parameter.choices
    option = typer.Option(
        help=parameter.help + ", ".join(choices),
        rich_help_panel=parameter.panel,
        show_default=False if parameter.kind == "table" else _default(name),
        metavar=parameter.metavar,
        # a fixed list, so that pressing Tab imports nothing
        autocompletion=(lambda incomplete: [c for c in choices if c.startswith(incomplete)]) if choices else None,
    )
    return Annotated[_TYPES[parameter.kind] | None, option]


OPTIONS: dict[str, Any] = {name: _option(name, parameter) for name, parameter in PARAMETERS.items()}
"""Every parameter of `NodeClassifier` as an option of the same name."""

GraphName = Annotated[
    str,
    typer.Argument(
        metavar="GRAPH",
        help="Name of a dataset, folder with nodes.csv and edges.csv, table of the nodes, SQLite or .npz file.",
        autocompletion=complete_graph,
    ),
]
Undirected = Annotated[bool, typer.Option("--undirected", help="Use every edge in both directions.")]
Directed = Annotated[
    bool,
    typer.Option("--directed", help="Use edges from source to target only; a race over own tables chooses else."),
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        "--missing",
        metavar="LABEL,…",
        help="Labels in the tables that mean unknown, --missing= for none; default: -1 and marks such as NA, NaN, ?.",
        show_default=False,
    ),
]
EdgesName = Annotated[
    str | None,
    typer.Argument(metavar="EDGES", help="Table of the edges, if GRAPH is that of the nodes.", show_default=False),
]
Column = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="ROLE=NAME",
        help="Column of a role: id, label, labels, split, time, group, type, source, target, weight or edge_type, or of"
        " a kind: number, category, date or text; may be repeated. Default: the usual headers, and what the cells say.",
        show_default=False,
    ),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option("--ignore", metavar="NAME", help="Column to leave out; may be repeated.", show_default=False),
]
Link = Annotated[
    list[str] | None,
    typer.Option(
        "--link",
        metavar="COLUMN",
        help="For one table: join rows that share a value of this column, or, by `nearest` or `nearest:5`, the rows "
        "that are nearest by the other columns; may be repeated. Default: nearest.",
        show_default=False,
    ),
]
Order = Annotated[
    str | None,
    typer.Option(
        "--order",
        metavar="COLUMN",
        help="For one table: join each row to the two before and after it in this order that share a linked value. For "
        "edges that carry columns: which of a node's edges is the last. Default there: a column of times.",
        show_default=False,
    ),
]
SkipBad = Annotated[
    bool,
    typer.Option("--skip-bad", help="Leave out rows of tables that have faults, and say how many; else all are told."),
]
Strict = Annotated[
    bool,
    typer.Option("--strict", help="Mend nothing in tables: no repeated rows, no 1,151.37, no nodes without a row."),
]
GRAPH_OPTIONS: dict[str, tuple[Any, Any]] = {
    "edges": (EdgesName, None),
    "undirected": (Undirected, False),
    "directed": (Directed, False),
    "missing": (Missing, None),
    "column": (Column, None),
    "ignore": (Ignore, None),
    "link": (Link, None),
    "order": (Order, None),
    "skip_bad": (SkipBad, False),
    "strict": (Strict, False),
}
"""Annotation and default of each option that says how a graph is read."""
Config = Annotated[
    Path | None, typer.Option(help="TOML file with values of the options below; the command line wins over it.")
]


@dataclass(frozen=True)
class NamedGraph:
    """A graph as a command names it, with the options of the same names."""

    graph: str
    edges: str | None = None
    undirected: bool = False
    missing: list[str] | None = None
    column: list[str] | None = None
    ignore: list[str] | None = None
    link: list[str] | None = None
    order: str | None = None
    directed: bool = False
    skip_bad: bool = False
    strict: bool = False

    def source(self, features: Any = None, like: Reading | None = None) -> Source:
        """Return the graph; `--missing` may be repeated or hold a list with commas.

        Args:
            features: the setting of this name; "raw" takes them as they are.
            like: the reading of another graph, whose roles are the default.
        """
        from lignn.datasets.sources import Source

        marks = self.missing
        missing = None if marks is None else tuple(mark for text in marks for mark in text.split(",") if mark)
        columns = tuple(_role(text) for text in self.column or ())
        ignore, raw = tuple(self.ignore or ()), features == "raw"
        links = tuple(self.link or ())
        return Source(
            self.graph,
            self.undirected,
            missing,
            self.edges,
            columns,
            ignore,
            raw,
            like,
            links,
            self.order,
            self.directed,
            self.skip_bad,
            self.strict,
        )

    @property
    def stem(self) -> str:
        """The name without folders and endings."""
        name = Path(self.graph).name
        return (name.partition(".")[0] if name.endswith(_GRAPHS) else name) or "graph"

    def arguments(self) -> list[str]:
        """Return the arguments that name the graph so."""
        more = [
            *["--undirected"] * self.undirected,
            *["--directed"] * self.directed,
            *(f"--missing={marks}" for marks in self.missing or ()),
        ]
        more += [f"--column={text}" for text in self.column or ()] + [f"--ignore={name}" for name in self.ignore or ()]
        more += [f"--link={name}" for name in self.link or ()] + [f"--order={self.order}"] * (self.order is not None)
        more += ["--skip-bad"] * self.skip_bad + ["--strict"] * self.strict
        return [self.graph, *([] if self.edges is None else [self.edges]), *more]


def command_of(named: NamedGraph, reading: Reading) -> str:
    """Return the command that fits a model to a graph of tables, with the roles and kinds that were found."""
    pairs = [pair for table in reading.tables for pair in table.roles]
    pairs += [(kind, name) for table in reading.tables for name, kind in table.kinds]
    column = list(dict.fromkeys(f"{role}={name}" for role, name in pairs if role != "split"))
    return shlex.join(["lignn", "fit", *replace(named, column=column).arguments(), "-o", "model"])


def _role(text: str) -> tuple[str, str]:
    role, equals, name = text.partition("=")
    if not (role and equals and name):
        raise typer.BadParameter(f"{text!r} is not of the form ROLE=NAME", param_hint="--column")
    return role.strip(), name.strip()


def with_parameters(without: Iterable[str] = ()) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command `--config` and an option for each parameter of `NodeClassifier` but those in `without`.

    The command's own argument `parameters` receives the ones that were given, in a dictionary. A command with an
    argument `graph`, a `NamedGraph`, gets the options that say how the graph is read.
    """
    offered = {name: annotation for name, annotation in OPTIONS.items() if name not in set(without)}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command, eval_str=True)
        replaced = ("parameters", "graph")
        own = [parameter for parameter in signature.parameters.values() if parameter.name not in replaced]
        of_graph: dict[str, tuple[Any, Any]] = {}
        if "graph" in signature.parameters:
            own.insert(0, signature.parameters["graph"].replace(annotation=GraphName))
            of_graph = GRAPH_OPTIONS
        added = {"config": Config, **offered}
        more = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
            for name, (annotation, default) in {**of_graph, **{n: (each, None) for n, each in added.items()}}.items()
        ]

        @wraps(command)
        def extended(**values: Any) -> None:
            from lignn.cli import config

            options = {name: values.pop(name) for name in offered}
            file = values.pop("config")
            given = {name: _value(name, value) for name, value in options.items() if value is not None}
            settled = ({} if file is None else config.read(file, offered)) | given
            if of_graph:
                values["graph"] = NamedGraph(values["graph"], **{name: values.pop(name) for name in of_graph})
            command(**values, parameters=settled)

        extended.__signature__ = signature.replace(parameters=[*own, *more])  # type: ignore[attr-defined]
        return extended

    return decorate


def _value(name: str, value: Any) -> Any:
    """An option's value as `NodeClassifier` takes it."""
    if PARAMETERS[name].kind == "duration":
        return seconds(value, f"--{name}")
    if name == "mask_rate":
        return _scalar(value)
    if PARAMETERS[name].kind == "text or table" and "=" not in value[0]:
        return ", ".join(value)
    return dict(_assignment(name, text) for text in value) if isinstance(value, list) else value


_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}


def seconds(text: str, option: str = "--time") -> float:
    """Return a duration such as 90, 90s, 2m or 1.5h in seconds."""
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([smh]?)\s*", text)
    if found is None or float(found[1]) == 0:
        raise ConfigError(f"{option} {text}: a duration such as 90s, 2m or 1h is needed")
    return float(found[1]) * _UNITS[found[2]]
