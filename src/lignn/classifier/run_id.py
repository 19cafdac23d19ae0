"""What tells a training run from others, so that a checkpoint is taken up by its own run alone."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import is_dataclass
from numbers import Real
from typing import Any

from safetensors.torch import save
from torch import nn

from lignn.classifier.settings import Settings
from lignn.graph import Graph, Split, archive
from lignn.training.checkpoint import flatten


def of(settings: Settings, graph: Graph, split: Split) -> str:
    """Differs where training would: another graph, split or setting."""
    named = [_identity(part) for part in (settings.method, settings.backbone)]
    plain = [
        sorted(options.items()) for options in (settings.values, settings.method_options, settings.backbone_options)
    ]
    text = f"{archive.fingerprint(graph.replace(splits=(split,)))} {named} {plain}"
    return hashlib.sha256(text.encode()).hexdigest()


def _identity(part: Any) -> str:
    """What tells a method or network from others: its name; of a built one also weights and plain values."""
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
    """Type and settings of an object: what is text, a number, or a dataclass, such as a solver."""
    values = {
        name: value
        for name, value in vars(instance).items()
        if name != "training" and (value is None or isinstance(value, str | Real) or is_dataclass(value))
    }
    return f"{type(instance).__qualname__} {sorted(values.items())}"
