"""Models as folders: JSON, safetensors and the graph; nothing that is loaded is unpickled.

The files of a model are in a folder `generation-N` inside of the model's, and a small file `current` names it. A save
writes a new generation, then replaces that file. Models of lignn 0.1 have the files in their folder itself.

| file | what |
|---|---|
| `config.json` | format, versions, parameters as given and resolved, classes, statistics of the graph, checksums |
| `weights.safetensors` | weights, known labels, the equilibrium, the split |
| `graph.npz` | the graph, so that a model predicts, explains and takes new labels by itself; about its size on disk |
| `history.jsonl` | one record an epoch |
| `settings.toml` | every setting, for `lignn fit --config`, if `lignn fit` made the model; loading does not need it |
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from dataclasses import asdict
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
from lignn.classifier import generations
from lignn.classifier.calibration import Calibration
from lignn.classifier.fitting import Fitted, warn_if_unsolved
from lignn.classifier.settings import Settings
from lignn.declarations import PARAMETERS
from lignn.equilibrium import Gradient, Solution, Status
from lignn.equilibrium.solvers import Solver
from lignn.errors import InputError
from lignn.graph import Graph, Split
from lignn.labels import Classes, KnownLabels
from lignn.methods import Method, Prediction, Problem
from lignn.store import read_reference, rows_of
from lignn.training import End, History
from lignn.training.checkpoint import flatten, unflatten

if TYPE_CHECKING:
    from lignn.classifier.node import NodeClassifier

FORMAT = 2
CONFIG, WEIGHTS, GRAPH, HISTORY = "config.json", "weights.safetensors", "graph.npz", "history.jsonl"
SETTINGS = "settings.toml"
_FILES = (WEIGHTS, GRAPH, HISTORY)
_MISFITS = (ArithmeticError, AttributeError, LookupError, RecursionError, RuntimeError, TypeError, ValueError)
"""Errors that a config raises whose parts do not fit together."""
_OBJECTS = tuple(name for name, parameter in PARAMETERS.items() if parameter.takes_objects)


def check(folder: str | PathLike[str]) -> None:
    """Refuse a folder that `write` would not replace."""
    generations.check(folder, CONFIG, (*_FILES, SETTINGS))


def write(folder: str | PathLike[str], fitted: Fitted, settings: str | None = None) -> None:
    """Save a fitted classifier completely or not at all; an earlier model in the folder is replaced.

    Args:
        folder: the folder of the model.
        fitted: the fitted state; of several processes only the first one writes, see `sharing.gathered`.
        settings: content of the file `settings.toml`.
    """
    if not fitted.prediction.problem.processes.is_first:
        return
    plain, objects = _plain_parameters(fitted.settings.parameters)
    with generations.new_generation(folder, CONFIG, (*_FILES, SETTINGS)) as temporary:
        if settings is not None:
            (temporary / SETTINGS).write_text(settings, encoding="utf-8")
        # save_file would make the file readable for its owner only
        (temporary / WEIGHTS).write_bytes(save(_tensors(fitted)))
        fitted.graph.replace(splits=()).write(temporary / GRAPH)
        lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in fitted.history.epochs]
        (temporary / HISTORY).write_text("".join(lines), encoding="utf-8")
        config = {
            "format": FORMAT,
            "versions": {"lignn": lignn.__version__, "python": platform.python_version(), "torch": version("torch")},
            "parameters": plain,
            "objects": objects,
            "resolved": {name: value for name, value in fitted.settings.values.items() if name not in objects},
            "classes": {"names": fitted.classes.names, "multilabel": fitted.classes.multilabel},
            "graph": _statistics(fitted.graph),
            "training": {
                "best": fitted.history.best,
                "end": fitted.history.end,
                "final": fitted.history.final,
                "further": fitted.further,
                "mask_rate": fitted.mask_rate,
            },
            "calibration": None if fitted.calibration is None else asdict(fitted.calibration),
            "solution": _solution_record(fitted.prediction.solution),
            "files": {name: _checksum(temporary / name) for name in _FILES},
        }
        text = json.dumps(config | {"checksum": _own_checksum(config)}, indent=2, ensure_ascii=False)
        (temporary / CONFIG).write_text(text + "\n", encoding="utf-8")


def settings_file(folder: str | PathLike[str]) -> Path:
    """Return the path of the settings of a model, for `lignn fit --config`."""
    return generations.current(folder) / SETTINGS


def read(folder: str | PathLike[str], objects: Mapping[str, Any]) -> tuple[dict[str, Any], Fitted]:
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


def _read(path: Path, objects: Mapping[str, Any]) -> tuple[dict[str, Any], Fitted]:
    try:
        config = _config(path)
        for name, checksum in config["files"].items():
            _check_file(path / name, checksum)
    except OSError as error:
        raise InputError(f"{error.filename or path}: cannot be read: {error.strerror}") from error
    parameters = dict(config["parameters"])
    for name in config["objects"]:
        if objects.get(name) is None:
            raise InputError(f"{path}: the model was made with a {name} of your own; give load(…, {name}=…)")
        parameters[name] = objects[name]
    try:
        return parameters, _restored(path, _upgraded(config), parameters)
    except InputError as error:
        raise error if str(path) in str(error) else InputError(f"{path}: {error}") from error
    except (*_MISFITS, SafetensorError, FileNotFoundError) as error:
        raise InputError(f"{path}: the parts of the model do not fit together ({error})") from error


def load(
    folder: str | PathLike[str],
    method: Method | None = None,
    backbone: Any = None,
    solver: Solver | None = None,
    gradient: Gradient | None = None,
) -> NodeClassifier:
    """Load a classifier that `NodeClassifier.save` wrote.

    Args:
        folder: the folder it was saved to.
        method: the method, if the model was made with an object of your own.
        backbone: likewise.
        solver: likewise.
        gradient: likewise.
    """
    from lignn.classifier.node import NodeClassifier  # which imports this module

    objects = {"method": method, "backbone": backbone, "solver": solver, "gradient": gradient}
    parameters, fitted = read(folder, objects)
    classifier = NodeClassifier(**parameters)
    classifier._take(fitted)
    warn_if_unsolved(fitted.prediction)
    return classifier


def _config(path: Path) -> dict[str, Any]:
    if not (path / CONFIG).is_file():
        raise InputError(f"{path}: there is no model here (no {CONFIG}); make one by lignn fit, or save")
    try:
        config = json.loads((path / CONFIG).read_text(encoding="utf-8"))
        if config["format"] > FORMAT:
            raise InputError(
                f"{path}: saved by a newer lignn (format {config['format']}, this one reads {FORMAT}); update lignn"
            )
        checksum = config.pop("checksum")
        intact = checksum == _own_checksum(config)
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"{path / CONFIG}: cannot be read: {error.strerror}") from error
    except _MISFITS as error:
        raise InputError(f"{path / CONFIG}: is damaged ({error}); copy the model again") from error
    if not intact:
        raise InputError(f"{path / CONFIG}: was changed after the model was saved; copy the model again, or fit anew")
    _check_config(path / CONFIG, config)
    return config


def _check_config(path: Path, config: dict[str, Any]) -> None:
    """Refuse a config that names other files, parameters or objects than a model has."""
    for part, known in (("files", _FILES), ("parameters", PARAMETERS), ("objects", _OBJECTS)):
        names = config.get(part)
        if not isinstance(names, list if part == "objects" else dict) or not all(name in known for name in names):
            raise InputError(f"{path}: its {part!r} are not those of a model; copy the model again, or fit anew")
    if missing := set(_FILES).difference(config["files"]):
        raise InputError(f"{path}: does not name {min(missing)}; copy the model again, or fit anew")


def _restored(path: Path, config: dict[str, Any], parameters: dict[str, Any]) -> Fitted:
    settings = Settings.of(parameters, config["resolved"])
    classes = Classes(tuple(config["classes"]["names"]), config["classes"]["multilabel"])
    with safe_open(path / WEIGHTS, "pt") as file:
        tensors = unflatten({key: file.get_tensor(key) for key in file.keys()})  # noqa: SIM118
    graph = _graph(path / GRAPH).replace(name=config["graph"]["name"])
    method = settings.build(graph.num_features, len(classes), torch.Generator().manual_seed(0))
    method.to(settings.device, settings.dtype)
    method.load_state_dict(config["more_weights"] | tensors.get("weights", {}))
    method.eval()
    rows = rows_of(graph)
    known = KnownLabels(tensors["known"]["mask"][rows], tensors["known"]["onehot"][rows], classes.multilabel)
    bound = method.on(Problem.with_labels(graph, known).to(settings.device))
    moved = {name: tensors[name][rows].to(settings.device) for name in ("probabilities", "state") if name in tensors}
    solution = _solution(config["solution"], moved.get("state"))
    told, end = config["training"], config["training"]["end"]
    epochs = [json.loads(line) for line in (path / HISTORY).read_text(encoding="utf-8").splitlines()]
    return Fitted(
        settings,
        classes,
        graph,
        Split(**{part: mask[rows] for part, mask in tensors["split"].items()}),
        History(epochs, told["best"], None if end is None else End(end), told["final"]),
        Prediction(bound, moved["probabilities"], solution),
        None if config["calibration"] is None else Calibration(**config["calibration"]),
        told["mask_rate"],
        further=told["further"],
    )


def _graph(path: Path) -> Graph:
    """Return the graph of a model, or of a stored one the rows of this process."""
    stored = read_reference(path)
    return Graph.read(path) if stored is None else stored.mine()


def _upgraded(config: dict[str, Any]) -> dict[str, Any]:
    """Return the config of an older format as the present one would have it."""
    config.setdefault("more_weights", {})
    if config["format"] == 1:
        extra, told, resolved = config.pop("extra"), config["training"], config["resolved"]
        told.setdefault("further", 0)
        told["mask_rate"] = extra.get("extra/rate", extra.get("extra/base/rate"))
        if "extra/chosen" in extra:  # Correct and Smooth kept its choice beside the weights
            config["more_weights"] = {"_extra_state": torch.tensor(extra["extra/chosen"] or [-1, -1])}
        if "tol" in resolved:  # a given tolerance used to change the adjoint, whatever the preset
            resolved["adjoint"] = "paper" if resolved["tol"] is None else "relative"
    return config


def _plain_parameters(parameters: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Parameters as JSON has them, and the names of those that are objects."""
    objects = [name for name in _OBJECTS if not isinstance(parameters[name], str | None)]
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


def _tensors(fitted: Fitted) -> dict[str, Tensor]:
    """Return all tensors by path."""
    prediction, split = fitted.prediction, fitted.split
    labels, solution = prediction.problem.labels, prediction.solution
    tensors, _ = flatten(
        {
            "weights": prediction.bound.method.state_dict(),
            "known": {"mask": labels.mask, "onehot": labels.onehot},
            "probabilities": prediction.probabilities,
            "split": {"train": split.train, "val": split.val, "test": split.test},
        }
        | ({} if solution is None else {"state": solution.value})
    )
    return tensors


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


def _check_file(path: Path, checksum: str) -> None:
    if not path.is_file():
        raise InputError(f"{path}: is missing from the model; copy the model again")
    if _checksum(path) != checksum:
        raise InputError(f"{path}: is not what was saved (cut short or changed); copy the model again, or fit anew")


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _own_checksum(config: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(config, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
