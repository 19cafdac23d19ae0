"""What a classifier's parameters mean: presets, checks, and the method that they describe."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import torch
from torch import Generator, nn

from lignn import backbones, methods, training
from lignn.backbones.registry import BACKBONES
from lignn.equilibrium import GRADIENTS, gradient_named
from lignn.equilibrium.solvers import BY_NAME, Solver, by_name
from lignn.errors import ConfigError, did_you_mean
from lignn.methods import EIGNN, IGNN, LIGNN, Method

DEFAULT_BACKBONE = "gcn"
PRECISIONS = ("float32", "float64")

TRAINING = ("lr", "weight_decay", "max_epochs", "patience")
NETWORK = ("hidden", "dropout")
SOLVING = ("solver", "tol", "max_steps")

_HALF: dict[str, Any] = {"mask_rate": 0.5}

PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    "practical": {
        "all": {
            "hidden": 64,
            "dropout": 0.5,
            "lr": 0.01,
            "weight_decay": 0.0,
            "max_epochs": 1000,
            "patience": 100,
        },
        "lignn": {
            "mask_rate": 0.5,
            "feature_mask": 0.5,
            "forward_mask": False,
            "solver": "anderson",
            "tol": 1e-4,
            "max_steps": 50,
            "gradient": "exact",
            "warm_start": True,
        },
        "lae": {"feature_mask": 0.5, **_HALF},
        "label_input": _HALF,
        "label_reuse": _HALF,
        "reslpa": _HALF,
    },
    "paper": {
        "all": {
            "hidden": 64,
            "dropout": 0.0,
            "lr": 0.01,
            "weight_decay": 0.0,
            "max_epochs": 1000,
            "patience": 100,
        },
        "lignn": {
            "mask_rate": 0.5,
            "feature_mask": 0.0,
            "forward_mask": False,
            "solver": "picard",
            "tol": None,
            "max_steps": 10,
            "gradient": "paper",
            "warm_start": False,
        },
        "lae": _HALF,
        "label_input": _HALF,
        "label_reuse": _HALF,
        "reslpa": _HALF,
    },
}
"""Values for what is not given: for all methods, and for single ones. `tol` None is the paper's rule."""

_SOLVED = ("lignn", "lpa", "reslpa", "threeference", "ignn", "eignn")

APPLIES_TO: dict[str, tuple[str, ...]] = {
    "mask_rate": ("lignn", "lae", "label_input", "label_reuse", "reslpa"),
    "feature_mask": ("lignn", "lae"),
    "forward_mask": ("lignn",),
    "gradient": ("lignn",),
    "warm_start": ("lignn",),
    "solver": _SOLVED,
    "tol": (*_SOLVED, "lae"),
    "max_steps": (*_SOLVED, "lae"),
}
"""The methods that have a parameter; those not listed here are everybody's."""

_NUMBER, _COUNT, _FLAG, _TEXT, _TABLE = (Real,), (Integral,), (bool,), (str,), (Mapping,)
_TYPES: dict[str, tuple[tuple[type, ...], str]] = {
    "preset": (_TEXT, "a text"),
    "hidden": (_COUNT, "a whole number"),
    "dropout": (_NUMBER, "a number"),
    "feature_mask": (_NUMBER, "a number"),
    "lr": (_NUMBER, "a number"),
    "weight_decay": (_NUMBER, "a number"),
    "max_epochs": (_COUNT, "a whole number"),
    "patience": (_COUNT, "a whole number"),
    "seed": (_COUNT, "a whole number"),
    "inductive": (_FLAG, "true or false"),
    "mask_rate": ((Real, str), "a number or 'adaptive'"),
    "forward_mask": (_FLAG, "true or false"),
    "max_steps": (_COUNT, "a whole number"),
    "tol": (_NUMBER, "a number"),
    "solver": (_TEXT, "a text"),
    "gradient": (_TEXT, "a text"),
    "warm_start": (_FLAG, "true or false"),
    "calibrate": (_FLAG, "true or false"),
    "refit": (_FLAG, "true or false"),
    "precision": (_TEXT, "a text"),
    "method_options": (_TABLE, "a table"),
    "backbone_options": (_TABLE, "a table"),
}
_NEVER_NONE = ("preset", "seed", "inductive", "calibrate", "refit", "precision")
_BACKWARD_TOL = 1e-2
"""Of the adjoint, relative: the gradient of one random mask need not be more exact than this."""


def parameters_of(method: str) -> set[str]:
    """The parameters among `APPLIES_TO` that a method has."""
    return {name for name, names in APPLIES_TO.items() if method in names}


@dataclass(frozen=True)
class Settings:
    """Checked parameters with the preset's values in place of None.

    Attributes:
        parameters: as they were given.
        method: name, or an instance to be copied.
        backbone: name, class, factory, or an instance to be copied.
        values: all resolved parameters by name, plain values; those that the method does not have are left out.
        explicit: names of the parameters that were given, not taken from the preset.
        method_options: more options of the method.
        backbone_options: more options of the backbone.
    """

    parameters: Mapping[str, Any]
    method: str | Method
    backbone: Any
    values: Mapping[str, Any]
    explicit: frozenset[str]
    method_options: Mapping[str, Any]
    backbone_options: Mapping[str, Any]

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> Settings:
        """Check parameters as a classifier has them."""
        for name, value in parameters.items():
            _check_type(name, value)
        method, preset = parameters["method"], parameters["preset"]
        _check_choice("preset", preset, PRESETS)
        _check_choice("precision", parameters["precision"], PRECISIONS)
        name = method if isinstance(method, str) else ""
        if name:
            _check_choice("method", name, methods.NAMES)
        elif not isinstance(method, Method):
            raise ConfigError(f"method: a name or a Method is needed, got {method!r}")
        given = {key: _plain(value) for key, value in parameters.items() if key in _TYPES and value is not None}
        if not name:
            _check_beside(method, parameters["backbone"], given)
        for key in given:
            if name and name not in APPLIES_TO.get(key, (name,)):
                raise ConfigError(f"{key}: method {name!r} has no such parameter, only {', '.join(APPLIES_TO[key])}")
        defaults = PRESETS[preset]["all"] | PRESETS[preset].get(name, {})
        options = (given.pop("method_options", {}), given.pop("backbone_options", {}))
        return cls(dict(parameters), method, parameters["backbone"], defaults | given, frozenset(given), *options)

    @property
    def name(self) -> str:
        """The method's name, for messages and records."""
        return self.method if isinstance(self.method, str) else type(self.method).__name__

    @property
    def dtype(self) -> torch.dtype:
        """Precision of everything."""
        return getattr(torch, self.values["precision"])

    @property
    def training(self) -> training.Settings:
        """How to train."""
        return training.Settings(**{name: self.values[name] for name in TRAINING})

    def build(self, num_features: int, num_classes: int, generator: Generator) -> Method:
        """The method with fresh weights from `generator`; an instance is copied."""
        if isinstance(self.method, Method):
            return copy.deepcopy(self.method)
        backbone = copy.deepcopy(self.backbone) if isinstance(self.backbone, nn.Module) else self.backbone
        network = self.network()
        if self.method == "lignn" and self.values["tol"] is not None:
            if self.method_options:
                option = next(iter(self.method_options))
                raise ConfigError(
                    f"method 'lignn' has no option {option!r}; {did_you_mean(option, parameters_of('lignn'))}"
                )
            resolved = backbones.resolve(backbone, num_features, num_classes, num_classes, generator, **network)
            return self._lignn(resolved)
        options = {**self._options(), **self.method_options}
        return methods.build(
            self.method, num_features, num_classes, backbone=backbone, backbone_options=network, generator=generator,
            **options,
        )  # fmt: skip

    def _lignn(self, backbone: backbones.Backbone) -> LIGNN:
        """LI-GNN with one absolute tolerance forward and a relative one backward."""
        values = self.values
        growth = 1.1 if values["mask_rate"] == "adaptive" else 1.0
        kind = by_name(values["solver"])
        forward = kind(tol=values["tol"], max_steps=values["max_steps"])
        backward = kind(tol=_BACKWARD_TOL, max_steps=values["max_steps"], norm="relative", growth=growth)
        return LIGNN(
            backbone,
            values["mask_rate"],
            values["forward_mask"],
            forward,
            gradient_named(values["gradient"], backward),
            values["warm_start"],
            values["feature_mask"],
        )

    def _options(self) -> dict[str, Any]:
        """The method's own options as `methods.build` takes them."""
        options = {name: self.values[name] for name in parameters_of(self.name) if name in self.values}
        if self.method == "lignn":
            del options["tol"]
        elif self.method != "lae" and any(name in options for name in SOLVING):
            options["solver"] = self._solver({name: options.pop(name) for name in SOLVING if name in options})
        return options

    @staticmethod
    def _solver(given: dict[str, Any]) -> Solver:
        return by_name(given.pop("solver", "anderson"))(**given)

    def network(self) -> dict[str, Any]:
        """Options of the network: the preset's only where it has them, those given whether it has them or not."""
        base = self.method_options.get("base", "backbone")
        known = _options_of(base if self.name == "correct_and_smooth" else self.name, self.backbone)
        wanted = {name: self.values[name] for name in NETWORK if name in self.explicit or name in known}
        return wanted | dict(self.backbone_options)


def _options_of(method: str, backbone: Any) -> set[str]:
    """Which of `NETWORK` the network of a method takes."""
    if method == "lpa" or isinstance(backbone, nn.Module):
        return set()
    factory: Any = {"ignn": IGNN, "eignn": EIGNN, "threeference": BACKBONES["sgc"]}.get(method)
    if factory is None and isinstance(backbone, str):
        _check_choice("backbone", backbone, BACKBONES)
        factory = BACKBONES[backbone]
    elif factory is None and not callable(backbone):
        raise ConfigError(f"backbone: a name, a class or a module is needed, got {backbone!r}")
    parameters = inspect.signature(factory or backbone).parameters
    names = {"hidden" if name == "hidden_channels" else name for name in parameters}
    return set(NETWORK) & names


def _check_beside(method: Method, backbone: Any, given: Mapping[str, Any]) -> None:
    """A built method has its network and options already: those given besides would do nothing."""
    names = (*APPLIES_TO, *NETWORK, "method_options", "backbone_options")
    settled = [name for name in names if given.get(name, {}) != {}]
    if backbone != DEFAULT_BACKBONE:
        settled.insert(0, "backbone")
    if settled:
        raise ConfigError(f"method: {type(method).__name__} is built already and cannot take {', '.join(settled)}")


def _plain(value: Any) -> Any:
    """NumPy's numbers as Python's."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return value
    return int(value) if isinstance(value, Integral) else float(value)


def _check_choice(what: str, value: str, choices: Any) -> None:
    if value not in choices:
        raise ConfigError(f"{what} {value!r} is unknown; {did_you_mean(value, choices)}")


def _check_type(name: str, value: Any) -> None:
    """Types here; ranges where they are used, except for what no other place checks."""
    if name not in _TYPES or (value is None and name not in _NEVER_NONE):
        return
    kinds, wanted = _TYPES[name]
    fits: bool = isinstance(value, kinds) and (kinds is _FLAG or not isinstance(value, bool))
    if not fits:
        raise ConfigError(f"{name}: {wanted} is needed, got {value!r}")
    if name in ("hidden", "max_steps") and value < 1:
        raise ConfigError(f"{name}: at least 1 is needed, got {value}")
    if name == "seed" and not 0 <= value < 2**63:
        raise ConfigError(f"seed: a whole number of at least 0 and below 2^63 is needed, got {value}")
    if name == "solver":
        _check_choice(name, value, BY_NAME)
    if name == "gradient":
        _check_choice(name, value, GRADIENTS)
