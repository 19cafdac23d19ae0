"""What tells a training run from others, so that a checkpoint is used by its own run alone."""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Mapping
from dataclasses import is_dataclass
from numbers import Real
from types import CodeType, FunctionType
from typing import Any

from safetensors.torch import save
from torch import nn

from lignn.classifier.settings import Settings
from lignn.graph import Graph, Split
from lignn.training.checkpoint import flatten


def of(settings: Settings, graph: Graph, split: Split) -> str:
    """Return a hash that differs where training would: for another graph, split or setting."""
    named = [_identity(part) for part in (settings.method, settings.backbone, settings.values["features"])]
    values = {name: value for name, value in settings.values.items() if name != "features"}
    plain = [sorted(options.items()) for options in (values, settings.method_options, settings.backbone_options)]
    text = f"{graph.replace(splits=(split,)).fingerprint()} {named} {plain}"
    return hashlib.sha256(text.encode()).hexdigest()


def _identity(part: Any) -> str:
    """Return what tells a method or network from others.

    This is the name of a class, the name and code of a function, and weights and plain values of a built network.
    """
    if isinstance(part, functools.partial):
        keywords = {name: _identity(value) for name, value in sorted(part.keywords.items())}
        return f"{_identity(part.func)} {[_identity(value) for value in part.args]} {keywords}"
    if isinstance(part, nn.Module):
        weights = hashlib.sha256(save(flatten(part.state_dict())[0])).hexdigest()
        return f"{weights} {[(path, _plain_values(module)) for path, module in part.named_modules()]}"
    if isinstance(part, FunctionType):
        return f"{part.__module__}.{part.__qualname__} {_code_identity(part)}"
    if hasattr(part, "__qualname__"):
        return f"{part.__module__}.{part.__qualname__}"
    return _plain_values(part) if callable(part) else repr(part)


def _code_identity(function: FunctionType) -> str:
    """Return the hash of a function's code and of the values that it uses: two lambdas have the same name.

    Functions and classes that it uses are known by their names.
    """
    names = inspect.getclosurevars(function)
    used = {**names.globals, **names.nonlocals}
    values = [function.__defaults__ or (), sorted((function.__kwdefaults__ or {}).items()), sorted(used.items())]
    text = f"{_code(function.__code__)} {_named(values)}"
    return hashlib.sha256(text.encode()).hexdigest()


def _code(code: CodeType) -> str:
    return f"{code.co_code.hex()} {code.co_names} {code.co_varnames} {_named(code.co_consts)}"


def _named(value: Any) -> str:
    """Return the `repr` of a value in which functions, classes and modules are known by their names."""
    if isinstance(value, CodeType):
        return _code(value)
    if isinstance(value, frozenset):
        return f"{sorted(map(_named, value))}"
    if isinstance(value, Mapping):
        return f"{sorted((_named(key), _named(one)) for key, one in value.items())}"
    if isinstance(value, tuple | list):
        return f"{type(value).__name__} {[_named(one) for one in value]}"
    name = getattr(value, "__qualname__", getattr(value, "__name__", None))
    return repr(value) if name is None else f"{getattr(value, '__module__', '')}.{name}"


def _plain_values(instance: Any) -> str:
    """Return type and settings of an object: its texts, numbers and dataclasses, such as a solver."""
    values = {
        name: value
        for name, value in vars(instance).items()
        if name != "training" and (value is None or isinstance(value, str | Real) or is_dataclass(value))
    }
    return f"{type(instance).__qualname__} {sorted(values.items())}"
