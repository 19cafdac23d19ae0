"""The config file of a model: read, checked and upgraded from older formats; checksums of all its files."""

from __future__ import annotations

import hashlib
import json
import warnings
from pathlib import Path
from typing import Any

import torch

from lignn.declarations import PARAMETERS
from lignn.errors import DataWarning, InputError

FORMAT = 3
CONFIG, WEIGHTS, GRAPH, HISTORY = "config.json", "weights.safetensors", "graph.npz", "history.jsonl"
FILES = (WEIGHTS, GRAPH, HISTORY)
MISFITS = (ArithmeticError, AttributeError, LookupError, RecursionError, RuntimeError, TypeError, ValueError)
"""Errors that a config raises whose parts do not fit together."""
OBJECTS = tuple(name for name, parameter in PARAMETERS.items() if parameter.takes_objects)


def read(path: Path) -> dict[str, Any]:
    """Read and check the config file of the model in the folder `path`."""
    if not (path / CONFIG).is_file():
        raise InputError(f"{path}: there is no model here (no {CONFIG}); make one by lignn fit, or save")
    try:
        config = json.loads((path / CONFIG).read_text(encoding="utf-8"))
        if config["format"] > FORMAT:
            raise InputError(
                f"{path}: saved by a newer lignn (format {config['format']}, this one reads {FORMAT}); update lignn"
            )
        checksum = config.pop("checksum")
        intact = checksum == own_checksum(config)
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"{path / CONFIG}: cannot be read: {error.strerror}") from error
    except MISFITS as error:
        raise InputError(f"{path / CONFIG}: is damaged ({error}); copy the model again") from error
    if not intact:
        raise InputError(f"{path / CONFIG}: was changed after the model was saved; copy the model again, or fit anew")
    _check_config(path / CONFIG, config)
    return _without_measured(path, config)


def _check_config(path: Path, config: dict[str, Any]) -> None:
    """Refuse a config that names other files, parameters or objects than a model has."""
    for part, known in (("files", FILES), ("parameters", PARAMETERS), ("objects", OBJECTS)):
        names = config.get(part)
        if not isinstance(names, list if part == "objects" else dict) or not all(name in known for name in names):
            raise InputError(f"{path}: its {part!r} are not those of a model; copy the model again, or fit anew")
    if missing := set(FILES).difference(config["files"], () if config.get("graph") else (GRAPH,)):
        raise InputError(f"{path}: does not name {min(missing)}; copy the model again, or fit anew")


def _without_measured(path: Path, config: dict[str, Any]) -> dict[str, Any]:
    """Return the config with contraction "free" for "measured", which lignn 0.2 had, and warn if there was any."""

    def freed(value: Any) -> Any:
        if isinstance(value, list):
            return [freed(each) for each in value]
        if not isinstance(value, dict):
            return value
        own = {"contraction": "free"} if value.get("contraction") == "measured" else {}
        return {name: freed(each) for name, each in value.items()} | own

    changed = {part: freed(config[part]) for part in ("parameters", "resolved") if part in config}
    if had := any(config[part] != value for part, value in changed.items()):
        warnings.warn(
            f"{path}: the model was fitted with contraction 'measured', which is gone; "
            "it is used as 'free': nothing checks any more that its equilibrium is the only one",
            DataWarning,
            stacklevel=2,
        )
    return config | changed | {"dropped_weight": "kappa" if had else None}


def upgraded(config: dict[str, Any]) -> dict[str, Any]:
    """Return the config of an older format as the present one would have it."""
    config.setdefault("more_weights", {})
    if config["format"] < 3:
        config["features"] = None
        unnamed = dict.fromkeys(("feature_names", "edge_types", "reading"))
        config["inputs"] = {"num_features": config["graph"]["features"], **unnamed}
        config["resolved"]["features"] = "raw"
    if config["format"] == 1:
        extra, told, resolved = config.pop("extra"), config["training"], config["resolved"]
        told.setdefault("further", 0)
        told["mask_rate"] = extra.get("extra/rate", extra.get("extra/base/rate"))
        if "extra/chosen" in extra:  # Correct and Smooth kept its choice beside the weights
            config["more_weights"] = {"_extra_state": torch.tensor(extra["extra/chosen"] or [-1, -1])}
        if "tol" in resolved:  # a given tolerance used to change the adjoint, whatever the preset
            resolved["adjoint"] = "paper" if resolved["tol"] is None else "relative"
    return config


def check_file(path: Path, expected: str) -> None:
    """Raise if a file is not there, or has another checksum than expected."""
    if not path.is_file():
        raise InputError(f"{path}: is missing from the model; copy the model again")
    if checksum(path) != expected:
        raise InputError(f"{path}: is not what was saved (cut short or changed); copy the model again, or fit anew")


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def own_checksum(config: dict[str, Any]) -> str:
    """Return the SHA-256 of a config."""
    return hashlib.sha256(json.dumps(config, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
