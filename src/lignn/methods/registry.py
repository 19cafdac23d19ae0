"""Methods by name, from plain options."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from torch import Generator

from lignn.backbones import resolve
from lignn.backbones.registry import Spec
from lignn.errors import ConfigError, did_you_mean
from lignn.methods.correct_and_smooth import CorrectAndSmooth
from lignn.methods.eignn import EIGNN
from lignn.methods.ignn import IGNN
from lignn.methods.method import Method
from lignn.methods.network import Network
from lignn.methods.presets import LIGNN, LabelInput, LabelReuse, LaE
from lignn.methods.propagated import LPA, ResLPA
from lignn.methods.threeference import ThreeFerence
from lignn.options import check_options

LABEL_INPUTTED: dict[str, Callable[..., Method]] = {
    "label_input": LabelInput,
    "label_reuse": LabelReuse,
    "lignn": LIGNN.of_paper,
    "lae": LaE,
}
"""Over a backbone that takes labels beside features."""

OVER_A_BACKBONE: dict[str, Callable[..., Method]] = {"backbone": Network, "reslpa": ResLPA}
"""Over a backbone that takes features alone."""

OF_THEIR_OWN: dict[str, Callable[..., Method]] = {"ignn": IGNN, "eignn": EIGNN}
"""With a network of their own."""

ONE_HOP = {"hops": 1, "head": "mlp"}
"""Of the SGC that is 3ference's network, whatever else is asked of it."""

NAMES = (*LABEL_INPUTTED, *OVER_A_BACKBONE, *OF_THEIR_OWN, "lpa", "threeference", "correct_and_smooth")


def build(
    name: str,
    num_features: int,
    num_classes: int,
    *,
    backbone: Spec = "gcn",
    backbone_options: Mapping[str, Any] | None = None,
    base: str = "backbone",
    generator: Generator | None = None,
    **options: Any,
) -> Method:
    """The method called `name` for graphs of this size.

    Args:
        name: one of `NAMES`.
        num_features: width of the features.
        num_classes: c.
        backbone: name, class or instance of the network, for the methods over one.
        backbone_options: the network's own settings, such as `hidden` and `dropout`.
        base: method behind which `correct_and_smooth` stands.
        generator: draws the weights.
        options: the method's own settings.
    """
    network = dict(backbone_options or {})

    def resolved(label_inputs: int, **more: Any) -> Any:
        spec = "sgc" if name == "threeference" else backbone
        return resolve(spec, num_features, num_classes, label_inputs, generator, **(network | more))

    if name in LABEL_INPUTTED:
        return _call(name, LABEL_INPUTTED[name], (resolved(num_classes),), options)
    if name in OVER_A_BACKBONE:
        return _call(name, OVER_A_BACKBONE[name], (resolved(0),), options)
    if name in OF_THEIR_OWN:
        own = OF_THEIR_OWN[name]
        return _call(name, own, (num_features, num_classes), network | options | {"generator": generator})
    if name == "lpa":
        return _call(name, LPA, (), options)
    if name == "threeference":
        return _call(name, ThreeFerence, (resolved(num_classes, **ONE_HOP),), options)
    if name == "correct_and_smooth":
        inner = build(base, num_features, num_classes, backbone=backbone, backbone_options=network, generator=generator)
        return _call(name, CorrectAndSmooth, (inner,), options)
    raise ConfigError(f"method {name!r} is unknown; {did_you_mean(name, NAMES)}")


def _call(name: str, factory: Callable[..., Method], given: tuple[Any, ...], options: dict[str, Any]) -> Method:
    known = list(inspect.signature(factory).parameters)[len(given) :]
    check_options(f"method {name!r}", factory, options, known)
    return factory(*given, **options)
