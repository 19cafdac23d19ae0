"""What tells a training run from others, so that a checkpoint is used by its own run alone."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import is_dataclass
from numbers import Real
from typing import Any

from safetensors.torch import save
from torch import nn

from lignn.classifier.spec import Spec
from lignn.graph import Graph, Split
from lignn.training.checkpoint import flatten


def of(spec: Spec, graph: Graph, split: Split) -> str:
    """Return a hash that differs where training would: for another graph, split or setting."""
    named = [_identity(part) for part in (spec.method, spec.backbone, spec.values["features"])]
    values = {name: value for name, value in spec.values.items() if name != "features"}
    plain = [sorted(options.items()) for options in (values, spec.method_options, spec.backbone_options)]
    text = f"{graph.replace(splits=(split,)).fingerprint()} {named} {plain}"
    return hashlib.sha256(text.encode()).hexdigest()


def _identity(part: Any) -> str:
    """Return what tells a method, network or transformer from others: its name, plain values and weights.

    Functions and classes are known by their names alone, so two lambdas of one function are the same.
    """
    if isinstance(part, functools.partial):
        keywords = {name: _identity(value) for name, value in sorted(part.keywords.items())}
        return f"{_identity(part.func)} {[_identity(value) for value in part.args]} {keywords}"
    if isinstance(part, nn.Module):
        weights = hashlib.sha256(save(flatten(part.state_dict())[0])).hexdigest()
        return f"{weights} {[(path, _plain_values(module)) for path, module in part.named_modules()]}"
    if hasattr(part, "__qualname__"):
        return f"{part.__module__}.{part.__qualname__}"
    return _plain_values(part) if callable(part) else repr(part)


def _plain_values(instance: Any) -> str:
    """Return type and settings of an object: its texts, numbers and dataclasses, such as a solver."""
    values = {
        name: value
        for name, value in vars(instance).items()
        if name != "training" and (value is None or isinstance(value, str | Real) or is_dataclass(value))
    }
    return f"{type(instance).__qualname__} {sorted(values.items())}"
