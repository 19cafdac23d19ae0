"""What to fit: a classifier's parameters, checked and with the preset's values in place of None."""

from __future__ import annotations

import copy
import functools
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from numbers import Integral, Real
from typing import Any

import torch
from safetensors.torch import save
from torch import Generator, nn

from lignn import methods, training
from lignn.declarations import (
    AUTO,
    BACKBONE_PRESETS,
    CONTRACTIONS,
    DEFAULT_BACKBONE,
    DEFAULT_METHOD,
    DEFAULTS,
    FEATURES,
    HELD_BACK,
    KINDS,
    METHODS,
    METHODS_WITH,
    METRICS,
    NO_MEASURED,
    OF_LOSS,
    OF_NETWORK,
    OF_RACE,
    OF_TAUGHT,
    OF_TRAINING,
    PARAMETERS,
    POLICY,
    PRECISIONS,
    PRESETS,
    QUALITIES,
    RELAXED,
    RESIDUAL_PRESETS,
)
from lignn.equilibrium import GRADIENTS
from lignn.equilibrium.solvers import BY_NAME, Solver
from lignn.errors import ConfigError, did_you_mean, unknown
from lignn.graph import Graph, Split
from lignn.methods import Method
from lignn.methods.registry import network_options, over_rows
from lignn.training.checkpoint import flatten

_PROVED = "proved"
_OPTIONS = ("method_options", "backbone_options")
_NAMED: dict[str, Mapping[str, Any]] = {
    "method": METHODS,
    "preset": PRESETS,
    "precision": dict.fromkeys(PRECISIONS),
    "quality": dict.fromkeys(QUALITIES),
    "features": dict.fromkeys(FEATURES),
    "contraction": dict.fromkeys(CONTRACTIONS),
    "solver": BY_NAME,
    "gradient": GRADIENTS,
    "metric": METRICS,
    OF_LOSS: {"balanced": None},
}
"""What the names of a parameter stand for; solvers and gradients can be added by users."""


@dataclass(frozen=True)
class Spec:
    """Checked parameters with the preset's values in place of None.

    Attributes:
        given: the parameters as they were given.
        method: name, or an instance to be copied.
        backbone: name, class, factory, or an instance to be copied.
        values: all resolved parameters by name; those that the method does not have are left out.
        explicit: names of the parameters that were given and not taken from the preset.
        method_options: more options of the method.
        backbone_options: more options of the backbone.
    """

    given: Mapping[str, Any]
    method: str | Method
    backbone: Any
    values: Mapping[str, Any]
    explicit: frozenset[str]
    method_options: Mapping[str, Any]
    backbone_options: Mapping[str, Any]

    @classmethod
    def resolve(cls, parameters: Mapping[str, Any], resolved: Mapping[str, Any] | None = None) -> Spec:
        """Check the parameters of a classifier.

        Args:
            parameters: by name, as `NodeClassifier` has them; without a method, they are of the default one.
            resolved: values of a saved model, used instead of the preset's, which may have changed since.
        """
        check_values(parameters)
        as_given, parameters = parameters, _completed(parameters)
        method, backbone = parameters["method"], parameters["backbone"]
        if not isinstance(method, str | Method):
            raise ConfigError(f"method: a name or a Method is needed, got {method!r}")
        features = parameters.get("features")
        if not isinstance(features, str | None) and not hasattr(features, "transform"):
            raise ConfigError(f"features: 'auto', 'raw' or a fitted transformer is needed, got {features!r}")
        given = {key: _plain(value) for key, value in parameters.items() if value is not None}
        given = {key: value for key, value in given.items() if key not in ("method", "backbone")}
        options = [dict(given.pop(key, {})) for key in _OPTIONS]
        preset: Mapping[str, Any] = PRESETS[parameters["preset"]]
        if isinstance(method, str):
            _check_applies(method, given)
            if over_rows(method, options[0].get("base")):
                _check_rows(method, options[0]["base"], given)
            else:
                preset = _preset_of(method, backbone, parameters["preset"], options[1])
            if given.get("contraction", _PROVED) not in (AUTO, _PROVED):
                preset = {**preset, **METHODS[method].unproved.get(parameters["preset"], {})}
        else:
            _check_beside(method, backbone, given, options)
        _check_solver(given)
        rules = {name: rule.default for name, rule in POLICY.items()}
        own = _checked_rules(given.pop("policy", {}))
        if resolved is not None and given.get("contraction") == AUTO:
            del given["contraction"]  # the saved model has the one that was chosen
        defaults = preset if resolved is None else resolved
        values = {**rules, **defaults, **given, **own}
        return cls(dict(as_given), method, backbone, values, frozenset(given), *options)

    @property
    def name(self) -> str:
        """The method's name, for messages and records."""
        return self.method if isinstance(self.method, str) else type(self.method).__name__

    @property
    def learns_rows(self) -> bool:
        """Whether a classifier of rows takes the place of the network."""
        return isinstance(self.method, str) and over_rows(self.method, self.method_options.get("base"))

    @property
    def needs(self) -> frozenset[str]:
        """What the graph must have: "features", "edges"."""
        return METHODS[self.method].needs if isinstance(self.method, str) else frozenset({"edges"})

    @property
    def chooses_contraction(self) -> bool:
        """Whether `fit` is to choose between a proved and a free contraction."""
        return self.values.get("contraction") == AUTO

    def with_contraction(self, kind: str) -> Spec:
        """Return the same settings with a contraction that was chosen, and what follows from it."""
        follows = {} if kind == _PROVED else self.unproved
        return replace(self, values={**self.values, **follows, "contraction": kind})

    def plain(self) -> dict[str, Any]:
        """Return every parameter as a file of settings has it, the preset's among them.

        A value that only a preset can have is left out: the preset sets it again. So is one that the network does not
        have, and one that a fit may still change, since it follows from a choice that the fit makes.
        """
        relaxed = {} if self.relaxed is None else self.relaxed.values
        left_out = {name for name, value in relaxed.items() if value != self.values[name]}
        left_out |= {*(self.unproved if self.chooses_contraction else ())}
        left_out |= {name for name in OF_NETWORK if name not in self.network()}
        offered = [name for name in PARAMETERS if name not in left_out]
        values = {name: value for name, value in self.values.items() if name in offered and value != HELD_BACK}
        options = {"policy": self.given.get("policy") or {}} | {name: getattr(self, name) for name in _OPTIONS}
        tables = {name: dict(table) for name, table in options.items()}
        return {"method": self.method, "backbone": self.backbone, **values, **tables}

    @property
    def relaxed(self) -> Spec | None:
        """The same settings without weight decay and dropped features; None if the preset has none or they were given.

        Only methods whose loss is the cross-entropy can tell by it whether they learn their labels.
        """
        if not (isinstance(self.method, str) and "loss" in METHODS[self.method].parameters):
            return None
        without = {name: 0.0 for name in RELAXED if name not in self.explicit and self.values.get(name)}
        return replace(self, values={**self.values, **without}) if without else None

    @property
    def unproved(self) -> dict[str, Any]:
        """What the preset has instead of its values if the contraction is not proved."""
        if not isinstance(self.method, str):
            return {}
        values = METHODS[self.method].unproved.get(self.values["preset"], {})
        return {name: value for name, value in values.items() if name not in self.explicit}

    @property
    def dtype(self) -> torch.dtype:
        """Precision of all numbers."""
        return getattr(torch, self.values["precision"])

    @property
    def log_loss_decides(self) -> bool:
        """Whether the log loss decides between epochs of the same score; in the paper the first of them is kept."""
        return self.values.get("ties") == "log_loss"

    @property
    def device(self) -> str:
        """Where to compute."""
        return self.values.get("device", "cpu")

    @property
    def training(self) -> training.Training:
        """How to train."""
        return training.Training(**{name: self.values[name] for name in OF_TRAINING if name in self.values})

    def identity(self, graph: Graph, split: Split) -> str:
        """Return a hash that differs where training would: for another graph, split or setting."""
        named = [_identity(part) for part in (self.method, self.backbone, self.values["features"])]
        values = {name: value for name, value in self.values.items() if name != "features"}
        plain = [sorted(options.items()) for options in (values, self.method_options, self.backbone_options)]
        text = f"{graph.replace(splits=(split,)).fingerprint()} {named} {plain}"
        return hashlib.sha256(text.encode()).hexdigest()

    def build(
        self, num_features: int, num_classes: int, generator: Generator, edge_types: Sequence[str] | None = None
    ) -> Method:
        """Return the method with fresh weights from `generator`; an instance is copied."""
        if isinstance(self.method, Method):
            return copy.deepcopy(self.method)
        own = () if self.learns_rows else METHODS[self.method].parameters
        chosen = self.with_contraction("free") if self.chooses_contraction else self  # `fit` has not chosen yet
        options = {name: value for name, value in chosen.values.items() if name in own}
        return methods.build(
            self.method,
            num_features,
            num_classes,
            backbone=copy.deepcopy(self.backbone) if isinstance(self.backbone, nn.Module) else self.backbone,
            backbone_options=self.network(),
            generator=generator,
            edge_types=edge_types,
            **(options | dict(self.method_options)),
        )

    def network(self) -> dict[str, Any]:
        """Return the options of the network.

        Preset values are used only if the network accepts them; explicit values always, so that a wrong one raises.
        """
        known: set[str] = set()
        if isinstance(self.method, str):
            known = network_options(self.method, self.backbone, self.method_options.get("base"))
        known &= self.values.keys()
        wanted = {name: self.values[name] for name in OF_NETWORK if name in self.explicit or name in known}
        return wanted | dict(self.backbone_options)


def _completed(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return all parameters of a single method, with the defaults of those that are not given."""
    there = {name: value for name, value in parameters.items() if value is not None}
    found = {"method": DEFAULT_METHOD, "backbone": DEFAULT_BACKBONE, **DEFAULTS, **there}
    return {name: found.get(name) for name in PARAMETERS if name not in OF_RACE or name in there}


def _preset_of(method: str, backbone: Any, name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return a preset's values for a method over a network."""
    values = {**PRESETS[name], **METHODS[method].presets.get(name, {})}
    if isinstance(backbone, str):
        values |= BACKBONE_PRESETS[name].get(backbone, {})
    if options.get("residual") is True or getattr(backbone, "residual", False) is True:
        values = {**values, **RESIDUAL_PRESETS[name], **METHODS[method].residual.get(name, {})}
    return values


def _check_applies(method: str, given: Mapping[str, Any]) -> None:
    for key in given:
        if method not in METHODS_WITH[key]:
            raise ConfigError(f"{key}: method {method!r} has no such parameter, only {', '.join(METHODS_WITH[key])}")


def _check_rows(method: str, base: str, given: Mapping[str, Any]) -> None:
    """Refuse parameters of a method that it has over a network only."""
    for key in given:
        if key in METHODS[method].parameters:
            raise ConfigError(f"{key}: method {method!r} over {base!r} has no such parameter; see its label_folds")


def _check_beside(method: Method, backbone: Any, given: Mapping[str, Any], options: list[dict[str, Any]]) -> None:
    """Refuse parameters that a built method would ignore: it has its network and options already."""
    every = {OF_LOSS, OF_TAUGHT, *(name for name in given if len(METHODS_WITH[name]) == len(METHODS))} - set(OF_NETWORK)
    settled = [name for name in given if name not in every]
    settled += [name for name, value in zip(_OPTIONS, options, strict=True) if value]
    if backbone != DEFAULT_BACKBONE:
        settled.insert(0, "backbone")
    if settled:
        raise ConfigError(f"method: {type(method).__name__} is built already and cannot take {', '.join(settled)}")


def _check_solver(given: Mapping[str, Any]) -> None:
    """Refuse parameters that a built solver would ignore."""
    solver, settled = given.get("solver"), [name for name in ("tol", "max_steps") if name in given]
    if isinstance(solver, Solver) and settled:
        raise ConfigError(f"solver: {type(solver).__name__} is built already and cannot take {', '.join(settled)}")


def check_values(parameters: Mapping[str, Any]) -> None:
    """Raise if a parameter cannot have its value, whatever the method."""
    for name, value in parameters.items():
        if name not in PARAMETERS:
            raise ConfigError(f"NodeClassifier has no parameter {name!r}; {did_you_mean(name, PARAMETERS)}")
        _check_value(name, value)


def _checked_rules(given: Mapping[str, Any]) -> dict[str, float]:
    """Return the rules that were given; refuse unknown ones, and values that they cannot have."""
    for name, value in given.items():
        if name not in POLICY:
            raise unknown("policy", name, POLICY)
        whole = isinstance(POLICY[name].default, int)
        if not isinstance(value, Integral if whole else Real) or isinstance(value, bool) or float(value) < 0:
            raise ConfigError(f"policy: {name} needs a {'whole ' * whole}number of at least 0, got {value!r}")
    return {name: _plain(value) for name, value in given.items()}


def _check_value(name: str, value: Any) -> None:
    """Check types and names here, and ranges only if no other place does."""
    declared = PARAMETERS[name]
    if (value is None and declared.optional) or (declared.takes_objects and not isinstance(value, str)):
        return
    if name == "refit" and value == HELD_BACK:  # as files of settings have it
        return
    types = KINDS[declared.kind]
    fits: bool = isinstance(value, types) and (bool in types or not isinstance(value, bool))
    if not fits:
        article = "" if declared.kind == "true or false" else "a "
        raise ConfigError(f"{name}: {article}{declared.kind} is needed, got {value!r}")
    if name == "contraction" and value == "measured":
        raise ConfigError(NO_MEASURED)
    if name in _NAMED and isinstance(value, str) and value not in _NAMED[name]:
        raise unknown(name, value, _NAMED[name])
    if name in ("hidden", "max_steps", "folds", "jobs") and value < 1:
        raise ConfigError(f"{name}: at least 1 is needed, got {value}")
    if name == "seed" and not 0 <= value < 2**63:
        raise ConfigError(f"seed: a whole number of at least 0 and below 2^63 is needed, got {value}")
    if name == "time" and not value > 0:
        raise ConfigError(f"time: a positive number of seconds is needed, got {value!r}")
    if name == "device":
        _check_device(value)


def _check_device(name: str) -> None:
    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f"device: {name!r} cannot be used here ({reason}); use 'cpu'") from error


def _plain(value: Any) -> Any:
    """Return NumPy's numbers as Python's."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return value
    return int(value) if isinstance(value, Integral) else float(value)


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
