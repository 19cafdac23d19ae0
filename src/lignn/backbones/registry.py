"""Creation of a backbone from its name, a class, a factory or an instance."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib import import_module
from numbers import Integral, Real
from typing import Any, Literal, TypeAlias

import torch
from torch import Generator, nn

from lignn import declarations
from lignn.backbones.adapter import Adapter
from lignn.backbones.backbone import Backbone
from lignn.errors import ConfigError, did_you_mean, unknown


def _network(name: str) -> type[Backbone]:
    """Return the network in the module of its name."""
    module = import_module(f"lignn.backbones.{name}")
    return next(kind for kind in vars(module).values() if isinstance(kind, type) and kind.__name__.lower() == name)


BACKBONES: dict[str, type[Backbone]] = {name: _network(name) for name in declarations.BACKBONES}
"""The networks that can be asked for by name. Add your own."""

Spec: TypeAlias = str | nn.Module | Callable[..., nn.Module]

SIZES = {"num_features", "num_classes", "label_inputs", "edge_types", "generator"}

_TYPES: dict[str, tuple[type, str]] = {
    "int": (Integral, "a whole number"),
    "float": (Real, "a number"),
    "bool": (bool, "true or false"),
}


def names() -> list[str]:
    """Return the names of all backbones."""
    return sorted(BACKBONES)


def names_with(attribute: Literal["streams", "bounded", "knows_types"]) -> list[str]:
    """Return the names of the backbones whose class has an attribute that is true, see `Backbone`."""
    return [name for name, kind in BACKBONES.items() if getattr(kind, attribute)]


def resolve(
    spec: Spec,
    num_features: int,
    num_classes: int,
    label_inputs: int = 0,
    generator: Generator | None = None,
    edge_types: Sequence[str] | None = None,
    **options: Any,
) -> Backbone:
    """Return a backbone for a problem of this size.

    Args:
        spec: one of `names()`; a `Backbone` class, or a factory with the same arguments; a class or factory of any
            other modules, which is called with `in_channels` (label_inputs + num_features), `out_channels` and the
            options, as PyG's models are; or an instance, which is returned as it is or in an `Adapter`.
        num_features: width of X; 0 for a graph without features.
        num_classes: number of classes, c.
        label_inputs: width of the label state S; 0 for a network without label input.
        generator: random numbers for the initial weights; None uses PyTorch's global random state.
        edge_types: names of the types of edges, for networks that tell them apart; None for edges without types.
        options: further arguments of the network. `hidden` is passed as `hidden_channels` to a factory that has an
            argument of that name.
    """
    if isinstance(spec, nn.Module):
        if options:
            raise ConfigError(f"backbone: {type(spec).__name__} is built already and cannot take {', '.join(options)}")
        return _from_instance(spec, num_features, num_classes, label_inputs)
    factory = factory_of(spec)
    parameters = inspect.signature(factory).parameters
    what = f"backbone {getattr(factory, '__name__', type(factory).__name__)}"
    if "label_inputs" in parameters:
        check_options(what, factory, options, set(parameters) - SIZES)
        types = {"edge_types": tuple(edge_types or ())} if "edge_types" in parameters else {}
        return factory(num_features, num_classes, label_inputs, generator=generator, **types, **options)
    options = _foreign_options(parameters, options)
    if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        check_options(what, factory, options, set(parameters) - {"in_channels", "out_channels"})
    seed = int(torch.randint(2**31, (), generator=generator))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module = factory(in_channels=label_inputs + num_features, out_channels=num_classes, **options)
    return Adapter(module, num_features, num_classes, label_inputs)


def factory_of(spec: Spec) -> Callable[..., Any]:
    """Return the class or factory that `spec` names or is."""
    if isinstance(spec, str):
        if spec not in BACKBONES:
            raise unknown("backbone", spec, BACKBONES)
        return BACKBONES[spec]
    if not callable(spec):
        raise ConfigError(f"backbone: a name, a class or a module is needed, got {spec!r}")
    return spec


def check_options(
    what: str, factory: Callable[..., Any], options: Mapping[str, Any], known: Collection[str] | None = None
) -> None:
    """Raise if `factory` does not have one of the options, or if a value is not of the annotated type.

    Only the annotations `int`, `float` and `bool` are checked.

    Args:
        what: what has the options, for error messages.
        factory: the function or class that will be called with the options.
        options: values of the options by name.
        known: names of the options that may be given; by default all parameters of `factory`.
    """
    parameters = inspect.signature(factory).parameters
    known = parameters if known is None else known
    for option, value in options.items():
        if option not in known:
            advice = did_you_mean(option, known) if known else "it has none"
            raise ConfigError(f"{what} has no option {option!r}; {advice}")
        annotation = parameters[option].annotation if option in parameters else ""
        kind, wanted = _TYPES.get(getattr(annotation, "__name__", annotation), (object, ""))
        if not isinstance(value, kind) or (isinstance(value, bool) and kind in (Integral, Real)):
            raise ConfigError(f"{what}: {option}: {wanted} is needed, got {value!r}")


def _from_instance(module: nn.Module, num_features: int, num_classes: int, label_inputs: int) -> Backbone:
    if not isinstance(module, Backbone):
        return Adapter(module, num_features, num_classes, label_inputs)
    has = (module.num_features, module.num_classes, module.label_inputs)
    if has != (num_features, num_classes, label_inputs):
        raise ConfigError(
            f"backbone: {type(module).__name__} was built for {has[0]} features, {has[1]} classes and {has[2]} label "
            f"inputs, but {num_features}, {num_classes} and {label_inputs} are needed; give its class instead"
        )
    return module


def _foreign_options(parameters: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options under PyG's names, with this package's defaults for those that PyG requires."""
    options = dict(options)
    if "hidden_channels" in parameters:
        options["hidden_channels"] = options.pop("hidden", options.get("hidden_channels", 64))
    required = inspect.Parameter.empty
    if "num_layers" in parameters and parameters["num_layers"].default is required:
        options.setdefault("num_layers", 2)
    return options
