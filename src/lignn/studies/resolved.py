"""Every setting of a run as it was used: those of its config, and the defaults of the code for all others."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields, is_dataclass
from typing import Any

from torch import nn

from lignn.backbones import Backbone
from lignn.datasets import catalogue
from lignn.declarations import METHODS
from lignn.methods import Method
from lignn.methods.registry import FACTORIES, ONE_HOP
from lignn.studies.config import RunConfig
from lignn.training import Settings

_PARTS = ("masking", "solver", "inference", "gradient")
"""Attributes of a built method that its options were turned into, e.g. a tolerance that depends on c."""


def resolved(config: RunConfig, method: Method, training: Settings) -> dict[str, Any]:
    """Return the options of the dataset, the backbone, the method and the training in plain values.

    Args:
        config: config of the run.
        method: the method built from it.
        training: the training settings built from it.
    """
    network, options = without_name(config.backbone), without_name(config.method)
    return {
        "dataset": _defaults(catalogue.find(config.dataset).maker()) | config.dataset_options,
        "backbone": _backbone(config.method["name"], network, method),
        "method": _method(config.method["name"], options, network, method),
        "training": asdict(training),
    }


def without_name(named: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a backbone or method."""
    return {key: value for key, value in named.items() if key != "name"}


def _method(name: str, options: dict[str, Any], network: dict[str, Any], method: nn.Module) -> dict[str, Any]:
    kind = METHODS[name].network
    given = network | options if kind == "own" else options
    built = {part: _plain(getattr(method, part)) for part in _PARTS if hasattr(method, part)}
    found = {"name": name} | _defaults(FACTORIES[name]) | given | built
    if kind == "base":
        found["base"] = _method(options.get("base", "backbone"), {}, network, method.get_submodule("base"))
    return found


def _backbone(name: str, options: dict[str, Any], method: Method) -> dict[str, Any]:
    """Return the options of the backbone; empty for a method without one."""
    network = next((module for module in method.modules() if isinstance(module, Backbone)), None)
    if network is None:
        return {}
    fixed = ONE_HOP if METHODS[name].network == "one hop" else {}
    return {"class": type(network).__name__} | _defaults(type(network)) | options | fixed


def _defaults(factory: Callable[..., Any]) -> dict[str, Any]:
    """Return the defaults of all arguments that are settings."""
    arguments = inspect.signature(factory).parameters.values()
    others = ("label_inputs", "edge_types", "generator")
    return {a.name: a.default for a in arguments if a.default is not a.empty and a.name not in others}


def _plain(value: Any) -> Any:
    if not is_dataclass(value):
        return value
    return {"class": type(value).__name__} | {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
