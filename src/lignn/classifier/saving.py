"""Models as folders: JSON, safetensors and the graph; nothing that is loaded is unpickled.

The files of a model are in a folder `generation-N` inside of the model's, and a small file `current` names it. A save
writes a new generation, then replaces that file. Models of lignn 0.1 have the files in their folder itself.

| file | what |
|---|---|
| `config.json` | format, versions, parameters as given and resolved, classes, statistics of the graph, checksums |
| `weights.safetensors` | weights, fitted features, known labels, the equilibrium, the split |
| `graph.npz` | the graph, so that a model predicts, explains and takes new labels by itself; about its size on disk |
| `history.jsonl` | one record an epoch |
| `settings.toml` | every setting, for `lignn fit --config`, if `lignn fit` made the model; loading does not need it |
| `leaderboard.json` | the models that `auto` tried, if it made the model; loading does not need it |

A model that is saved without its graph has no `graph.npz`, and of tensors only weights and fitted features.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from dataclasses import asdict, replace
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

import lignn
from lignn.classifier import columns, config_file, generations, imbalance
from lignn.classifier.calibration import Calibration, Outcome
from lignn.classifier.certificate import warn_if_unsolved
from lignn.classifier.columns import Inputs
from lignn.classifier.config_file import CONFIG, FILES, FORMAT, GRAPH, HISTORY, MISFITS, WEIGHTS
from lignn.classifier.model import Fitted, HandedOn, Model
from lignn.classifier.spec import Spec
from lignn.declarations import AUTO, OF_LOSS
from lignn.equilibrium import Gradient, Solution, Status
from lignn.equilibrium.solvers import Solver
from lignn.errors import InputError
from lignn.graph import Graph, Split
from lignn.graph.reading import Reading
from lignn.labels import Classes, KnownLabels
from lignn.methods import Method, Prediction, Problem
from lignn.store import read_reference, rows_of, share_of
from lignn.training import End, History, Metric
from lignn.training.checkpoint import flatten, unflatten

if TYPE_CHECKING:
    from lignn.classifier.node import NodeClassifier
    from lignn.classifier.race.leaderboard import Leaderboard

SETTINGS, LEADERBOARD = "settings.toml", "leaderboard.json"
_ALL = (*FILES, SETTINGS, LEADERBOARD)


def check(folder: str | PathLike[str]) -> None:
    """Refuse a folder that `write` would not replace."""
    generations.check(folder, CONFIG, _ALL)


def write(
    folder: str | PathLike[str],
    model: Model,
    settings: str | None = None,
    graph: bool = True,
) -> None:
    """Save a model completely or not at all; an earlier model in the folder is replaced.

    Args:
        folder: the folder of the model.
        model: the model; of several processes only the first one writes, see `sharing.gathered`.
        settings: content of the file `settings.toml`.
        graph: write the graph and what is known of its nodes too; the model must have one.
    """
    if isinstance(model, Fitted) and not model.prediction.problem.processes.is_first:
        return
    weight = {OF_LOSS: imbalance.by_name(model.classes, model.spec.given.get(OF_LOSS))}
    plain, objects = _plain_parameters({**model.spec.given, **weight})
    record, arrays = columns.state(model.preparation, graph)
    own = model if isinstance(model, Fitted) and graph else None
    files = FILES if own else (WEIGHTS, HISTORY)
    with generations.new_generation(folder, CONFIG, _ALL) as temporary:
        if settings is not None:
            (temporary / SETTINGS).write_text(settings, encoding="utf-8")
        if model.leaderboard is not None:
            told = json.dumps(model.leaderboard.plain(), indent=2, ensure_ascii=False)
            (temporary / LEADERBOARD).write_text(told, encoding="utf-8")
        # save_file would make the file readable for its owner only
        (temporary / WEIGHTS).write_bytes(save(_tensors(model, own, arrays)))
        if own:
            own.graph.replace(splits=()).write(temporary / GRAPH)
        lines = [json.dumps(epoch, ensure_ascii=False) + "\n" for epoch in model.history.epochs]
        (temporary / HISTORY).write_text("".join(lines), encoding="utf-8")
        config = {
            "format": FORMAT,
            "versions": {"lignn": lignn.__version__, "python": platform.python_version(), "torch": version("torch")},
            "parameters": plain,
            "objects": objects,
            "resolved": {
                name: weight.get(name, value) for name, value in model.spec.values.items() if name not in objects
            },
            "classes": {"names": model.classes.names, "multilabel": model.classes.multilabel},
            "graph": _statistics(own.graph) if own else None,
            "inputs": asdict(model.inputs),
            "features": record,
            "training": {
                "best": model.history.best,
                "end": model.history.end,
                "final": model.history.final,
                "further": own.further if own else 0,
                "mask_rate": own.mask_rate if own else None,
                "metric": asdict(model.metric),
            },
            "calibration": None if model.calibration is None else asdict(model.calibration),
            "solution": _solution_record(own.prediction.solution) if own else None,
            "files": {name: config_file.checksum(temporary / name) for name in files},
        }
        text = json.dumps(config | {"checksum": config_file.own_checksum(config)}, indent=2, ensure_ascii=False)
        (temporary / CONFIG).write_text(text + "\n", encoding="utf-8")


def settings_file(folder: str | PathLike[str]) -> Path:
    """Return the path of the settings of a model, for `lignn fit --config`."""
    return generations.current(folder) / SETTINGS


def identity(folder: str | PathLike[str]) -> str | None:
    """Return the checksum of the config in a folder, which no other model has; None if there is no model."""
    config = generations.current(folder) / CONFIG
    return config_file.checksum(config) if config.is_file() else None


def read(folder: str | PathLike[str], objects: Mapping[str, Any]) -> tuple[dict[str, Any], Model]:
    """Return the parameters and the fitted state of a saved classifier.

    Args:
        folder: a folder that `write` wrote.
        objects: `method` or `backbone`, for a model that was given one as an object.
    """
    path = generations.current(folder)
    while True:
        try:
            return _read(path, objects)
        except InputError:
            before, path = path, generations.current(folder)
            if path == before:
                raise  # otherwise another process has saved a model meanwhile, and removed the one that was being read


def _read(path: Path, objects: Mapping[str, Any]) -> tuple[dict[str, Any], Model]:
    try:
        config = config_file.read(path)
        for name, checksum in config["files"].items():
            config_file.check_file(path / name, checksum)
    except OSError as error:
        raise InputError(f"{error.filename or path}: cannot be read: {error.strerror}") from error
    parameters = dict(config["parameters"])
    for name in config["objects"]:
        if objects.get(name) is None:
            raise InputError(f"{path}: the model was made with a {name} of your own; give load(…, {name}=…)")
        parameters[name] = objects[name]
    try:
        model = replace(
            _restored(path, config_file.upgraded(config), parameters), leaderboard=_leaderboard(path / LEADERBOARD)
        )
    except InputError as error:
        raise error if str(path) in str(error) else InputError(f"{path}: {error}") from error
    except (*MISFITS, SafetensorError, FileNotFoundError) as error:
        raise InputError(f"{path}: the parts of the model do not fit together ({error})") from error
    if model.leaderboard is not None:  # a new fit is a race too
        own = {name: parameters[name] for name in config["objects"]}
        parameters = {"method": AUTO, **model.leaderboard.given, **own}
    return parameters, model


def _leaderboard(file: Path) -> Leaderboard | None:
    """Return the race that made a model; None if its method was named."""
    from lignn.classifier.race.leaderboard import Leaderboard

    if not file.is_file():
        return None
    try:
        return Leaderboard.restored(json.loads(file.read_text(encoding="utf-8")))
    except (OSError, *MISFITS) as error:
        raise InputError(f"{file}: is damaged ({error}); copy the model again, or delete this file") from error


def load(
    folder: str | PathLike[str],
    method: Method | None = None,
    backbone: Any = None,
    solver: Solver | None = None,
    gradient: Gradient | None = None,
    features: Any = None,
) -> NodeClassifier:
    """Load a classifier that `NodeClassifier.save` wrote.

    Args:
        folder: the folder it was saved to.
        method: the method, if the model was made with an object of your own.
        backbone: likewise.
        solver: likewise.
        gradient: likewise.
        features: likewise, the fitted transformer.
    """
    from lignn.classifier.node import NodeClassifier  # which imports this module

    objects = {"method": method, "backbone": backbone, "solver": solver, "gradient": gradient, "features": features}
    parameters, model = read(folder, objects)
    classifier = NodeClassifier(**parameters)
    classifier._take(model)
    if isinstance(model, Fitted):
        warn_if_unsolved(model.prediction)
    return classifier


def _restored(path: Path, config: dict[str, Any], parameters: dict[str, Any]) -> Fitted | HandedOn:
    spec = Spec.resolve(parameters, config["resolved"])
    with safe_open(path / WEIGHTS, "pt") as file:
        tensors = unflatten({key: file.get_tensor(key) for key in file.keys()})  # noqa: SIM118
    model = _without_graph(path, config, spec, tensors)
    return _with_graph(path, config, model, tensors) if config["graph"] else model


def _without_graph(path: Path, config: dict[str, Any], spec: Spec, tensors: dict[str, Any]) -> HandedOn:
    classes = Classes(tuple(config["classes"]["names"]), config["classes"]["multilabel"])
    told = config["inputs"]
    names, types = (None if told[part] is None else tuple(told[part]) for part in ("feature_names", "edge_types"))
    reading = None if told["reading"] is None else Reading.restored(told["reading"])
    inputs = Inputs(told["num_features"], names, types, reading)
    generator = torch.Generator().manual_seed(0)
    method = spec.build(inputs.num_features, len(classes), generator, inputs.edge_types)
    method.to(spec.device, spec.dtype)
    weights = config["more_weights"] | tensors.get("weights", {})
    dropped = config["dropped_weight"]
    method.load_state_dict({name: value for name, value in weights.items() if name.split(".")[-1] != dropped})
    method.eval()
    told, end = config["training"], config["training"]["end"]
    epochs = [json.loads(line) for line in (path / HISTORY).read_text(encoding="utf-8").splitlines()]
    history = History(epochs, told["best"], None if end is None else End(end), told["final"])
    calibration = None if config["calibration"] is None else Calibration(**config["calibration"])
    preparation = columns.restored(config["features"], tensors.get("features", {}), spec.values["features"])
    metric = Metric(**told.get("metric", {}))
    return HandedOn(spec, classes, history, calibration, preparation, metric, method, inputs)


def _with_graph(path: Path, config: dict[str, Any], model: HandedOn, tensors: dict[str, Any]) -> Fitted:
    spec, told = model.spec, config["training"]
    graph = _graph(path / GRAPH).replace(name=config["graph"]["name"], reading=model.inputs.reading)
    rows, held = rows_of(graph), tensors["known"]
    known = KnownLabels(held["mask"][rows], held["onehot"][rows], model.classes.multilabel, share=share_of(graph))
    ready = columns.prepared(graph, model.preparation, model.spec)
    bound = model.method.on(Problem.with_labels(ready, known).to(spec.device))
    moved = {name: tensors[name][rows].to(spec.device) for name in ("probabilities", "state") if name in tensors}
    solution = _solution(config["solution"], moved.get("state"))
    return Fitted(
        spec,
        model.classes,
        graph,
        Split(**{part: mask[rows] for part, mask in tensors["split"].items()}),
        model.history,
        Prediction(bound, moved["probabilities"], solution),
        model.calibration,
        told["mask_rate"],
        further=told["further"],
        preparation=model.preparation,
        metric=model.metric if "metric" in told else Metric.of(model.metric.name, known),
        held_out=Outcome(**tensors["held_out"]) if "held_out" in tensors else None,
    )


def _graph(path: Path) -> Graph:
    """Return the graph of a model; of one in a store, the rows of this process."""
    stored = read_reference(path)
    return Graph.read(path) if stored is None else stored.mine()


def _plain_parameters(parameters: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Parameters as JSON has them, and the names of those that are objects."""
    objects = [name for name in config_file.OBJECTS if not isinstance(parameters.get(name), str | None)]
    plain = {}
    for name, value in parameters.items():
        try:
            plain[name] = None if name in objects else json.loads(json.dumps(value, default=_number))
        except TypeError as error:
            raise InputError(f"{name}: only plain values can be saved ({error})") from error
    return plain, objects


def _number(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} is none")


def _tensors(model: Model, fitted: Fitted | None, features: dict[str, Any]) -> dict[str, Tensor]:
    """Return all tensors by path; `fitted` is None for a model without its graph."""
    tree: dict[str, Any] = {"weights": model.method.state_dict(), "features": features}
    if fitted is not None:
        prediction, split = fitted.prediction, fitted.split
        labels, solution = prediction.problem.labels, prediction.solution
        tree |= {
            "known": {"mask": labels.mask, "onehot": labels.onehot},
            "probabilities": prediction.probabilities,
            "split": {"train": split.train, "val": split.val, "test": split.test},
        }
        tree |= {} if solution is None else {"state": solution.value}
        tree |= {} if fitted.held_out is None else {"held_out": vars(fitted.held_out)}
    return flatten(tree)[0]


def _statistics(graph: Graph) -> dict[str, Any]:
    return {
        "name": graph.name,
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "features": graph.num_features,
        "classes": graph.num_classes,
        "labelled": int(graph.labelled.sum()),
        "undirected": graph.is_undirected,
    }


def _solution_record(solution: Solution | None) -> dict[str, Any] | None:
    if solution is None:
        return None
    return solution.record() | {"residuals": solution.residuals, "tol": solution.tol}


def _solution(record: Mapping[str, Any] | None, state: Tensor | None) -> Solution | None:
    if record is None or state is None:
        return None
    status, residuals = Status(record["status"]), tuple(record["residuals"])
    return Solution(state, status, record["steps"], residuals, record["contraction"], record["tol"])
