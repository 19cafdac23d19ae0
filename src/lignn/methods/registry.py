"""Creation of methods from their names and plain options."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Generator, nn

from lignn.backbones import resolve
from lignn.backbones.registry import Spec, check_options, factory_of
from lignn.declarations import BASELINE, METHODS, OF_SOLVER
from lignn.equilibrium.solvers import BY_NAME, Solver
from lignn.errors import ConfigError, did_you_mean, unknown
from lignn.methods.correct_and_smooth import CorrectAndSmooth
from lignn.methods.eignn import EIGNN
from lignn.methods.ensemble import Ensemble
from lignn.methods.ignn import IGNN
from lignn.methods.method import Method
from lignn.methods.network import Network
from lignn.methods.presets import LIGNN, LabelInput, LabelReuse, LaE
from lignn.methods.propagated import LPA, ResLPA, ThreeFerence
from lignn.methods.tabular import Boosted, Logistic

NAMES = tuple(METHODS)
"""Names of all methods."""

FACTORIES: dict[str, Callable[..., Method]] = {
    "lignn": LIGNN,
    "lae": LaE,
    "label_input": LabelInput,
    "label_reuse": LabelReuse,
    "lpa": LPA,
    "reslpa": ResLPA,
    "threeference": ThreeFerence,
    "correct_and_smooth": CorrectAndSmooth,
    "ignn": IGNN,
    "eignn": EIGNN,
    "backbone": Network,
    "logistic": Logistic,
    "boosted": Boosted,
    "ensemble": Ensemble,
}

ROWS = ("logistic", "boosted")
"""The classifiers of rows."""

AS_INPUTS: dict[str, dict[str, Any]] = {
    "label_input": {"hops": 2, "shares": True, "label_folds": 10},
    "label_reuse": {"hops": 2, "shares": True, "label_folds": 10, "max_steps": 1},
}
"""Methods that a classifier of rows can be the base of, and the options that make it this method."""

MEMBERS: tuple[Mapping[str, Any], ...] = ({"method": BASELINE}, {"method": "label_input"})
"""Members of an ensemble that names none."""

ONE_HOP = {"hops": 1, "head": "mlp"}
"""Options of the SGC that is 3ference's network; they cannot be changed."""


def build(
    name: str,
    num_features: int,
    num_classes: int,
    *,
    backbone: Spec = "gcn",
    backbone_options: Mapping[str, Any] | None = None,
    base: str | None = None,
    generator: Generator | None = None,
    edge_types: Sequence[str] | None = None,
    **options: Any,
) -> Method:
    """Return the method called `name` for graphs of this size.

    Args:
        name: one of `NAMES`.
        num_features: width of the features.
        num_classes: c.
        backbone: name, class or instance of the network, for methods that have a backbone.
        backbone_options: the network's own settings, such as `hidden` and `dropout`.
        base: the method that `correct_and_smooth` corrects, or the classifier of rows that takes the place of the
            network in `label_input` and `label_reuse`; default the network.
        generator: draws the weights.
        edge_types: names of the types of edges, for networks that tell them apart; None for edges without types.
        options: the method's own settings. For methods with a solver, `tol` and `max_steps` may be given beside the
            name of the solver, which is "anderson" by default.
    """
    if name not in FACTORIES:
        raise ConfigError(f"method {name!r} is unknown; {did_you_mean(name, NAMES)}")
    network, sizes = dict(backbone_options or {}), (num_features, num_classes)
    base = checked_base(name, base)
    if over_rows(name, base):
        return _call(base, sizes, AS_INPUTS[name] | options, edge_types=edge_types)
    if name in ROWS:
        return _call(name, sizes, options, edge_types=None)

    def resolved(spec: Spec, label_inputs: int, **fixed: Any) -> Any:
        return resolve(spec, *sizes, label_inputs, generator, edge_types, **(network | fixed))

    match METHODS[name].network:
        case "labels":
            return _call(name, (resolved(backbone, num_classes),), options)
        case "features":
            return _call(name, (resolved(backbone, 0),), options)
        case "one hop":
            return _call(name, (resolved("sgc", num_classes, **ONE_HOP),), options)
        case "own":
            return _call(name, sizes, network | options, generator=generator)
        case "base":
            more: dict[str, Any] = {"backbone_options": network, "generator": generator, "edge_types": edge_types}
            of_base = {
                option: options.pop(option) for option in ("loss", "label_folds", "most_columns") if option in options
            }
            more |= {option: value for option, value in of_base.items() if option in METHODS[base].parameters}
            inner = build(base, num_features, num_classes, backbone=backbone, **more)
            return _call(name, (inner,), options)
        case "members":
            more = {"backbone": backbone, "generator": generator, "edge_types": edge_types}
            given = options.pop("members", None) or MEMBERS
            return _call(name, ([_member(sizes, network, more, **one) for one in given],), options)
        case _:
            return _call(name, (), options)


def checked_base(name: str, base: str | None) -> str:
    """Return the base of a method, by default the network; refuse one that the method cannot have."""
    choices = NAMES if METHODS[name].network == "base" else (BASELINE, *ROWS) if name in AS_INPUTS else ()
    if base is None:
        return BASELINE
    if not choices:
        raise ConfigError(f"base: method {name!r} has none, only {', '.join(['correct_and_smooth', *AS_INPUTS])}")
    if base not in choices:
        raise unknown("base", base, choices)
    return base


def over_rows(name: str, base: str | None) -> bool:
    """Return whether a classifier of rows takes the place of the method's network."""
    return name in AS_INPUTS and base in ROWS


def _member(
    sizes: tuple[int, int], network: Mapping[str, Any], ensemble: Mapping[str, Any], method: str, **own: Any
) -> Method:
    """Return a member of an ensemble; what it does not name is that of the ensemble."""
    options = {**ensemble, **own}
    if "backbone_options" not in own:
        known = network_options(method, options["backbone"], options.get("base"))
        options["backbone_options"] = {option: value for option, value in network.items() if option in known}
    return build(method, sizes[0], sizes[1], **options)


def network_options(name: str, backbone: Spec, base: str | None = None) -> set[str]:
    """Return the options that the network of a method takes; PyG's `hidden_channels` is called `hidden`."""
    base = checked_base(name, base)
    if over_rows(name, base):
        return set()
    match METHODS[name].network:
        case "base":
            return network_options(base, backbone)
        case "own":
            factory: Callable[..., Any] = FACTORIES[name]
        case "none" | "rows":
            return set()
        case "members":
            return network_options("backbone", backbone)
        case "one hop":
            factory = factory_of("sgc")
        case _:
            if isinstance(backbone, nn.Module):
                return set()
            factory = factory_of(backbone)
    return {"hidden" if option == "hidden_channels" else option for option in inspect.signature(factory).parameters}


def _call(name: str, given: tuple[Any, ...], options: Mapping[str, Any], **more: Any) -> Method:
    factory = FACTORIES[name]
    known = list(inspect.signature(factory).parameters)[len(given) :]
    options = _with_solver(dict(options), known)
    check_options(f"method {name!r}", factory, options, [option for option in known if option not in more])
    return factory(*given, **options, **more)


def _with_solver(options: dict[str, Any], known: list[str]) -> dict[str, Any]:
    """Combine `solver`, `tol` and `max_steps` into one solver, for methods that take a solver and not its parts."""
    given = {name: options[name] for name in OF_SOLVER if name in options}
    if not given or "solver" not in known or "tol" in known:
        return options
    kind = given.pop("solver", "anderson")
    if not isinstance(kind, Solver) and kind not in BY_NAME:
        raise unknown("solver", kind, BY_NAME)
    solver = kind if isinstance(kind, Solver) else BY_NAME[kind](**given)
    return {name: value for name, value in options.items() if name not in OF_SOLVER} | {"solver": solver}
