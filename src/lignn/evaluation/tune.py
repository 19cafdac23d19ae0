"""A small search for better settings, by validation score."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

from lignn.classifier import NodeClassifier
from lignn.classifier.settings import Settings
from lignn.datasets.sources import Source
from lignn.declarations import DEFAULT_METHOD, METHODS, METHODS_WITH, METRICS, OF_NETWORK, PARAMETERS
from lignn.errors import ConfigError
from lignn.evaluation import compare
from lignn.evaluation.compare import Result, Run

SPACE = {name: parameter.search for name, parameter in PARAMETERS.items() if parameter.search}
"""Values to try of the options that matter most."""


@dataclass(frozen=True)
class Trial:
    """Settings that were tried, and what they gave on average over the splits.

    Attributes:
        settings: the settings.
        val: validation score, as tables show it: what trials are chosen by.
        test: test score, to check the choice with, never to choose by.
        seconds: time of a run.
    """

    settings: Mapping[str, Any]
    val: float
    test: float
    seconds: float

    @classmethod
    def of(cls, settings: Mapping[str, Any], results: Sequence[Result], factor: int) -> Trial:
        """Average the results of these settings."""
        val, test, seconds = (mean(getattr(one, name) for one in results) for name in ("val", "test", "seconds"))
        return cls(settings, factor * val, factor * test, seconds)


def candidates(parameters: Mapping[str, Any], count: int, seed: int) -> list[dict[str, Any]]:
    """The preset's own settings, then `count - 1` others drawn without repetition; what is given is not searched."""
    method = parameters.get("method", DEFAULT_METHOD)
    if method in METHODS and METHODS[method].network == "none":
        raise ConfigError(f"{method} has nothing to train and nothing to tune; choose another method")
    preset = Settings.of(NodeClassifier(**parameters).get_params(deep=False))
    has = {name for name in SPACE if method in METHODS_WITH[name]} - set(OF_NETWORK) | set(preset.network())
    free = {name: values for name, values in SPACE.items() if name in has and name not in parameters}
    everything = [dict(zip(free, values, strict=True)) for values in itertools.product(*free.values())]
    others = [settings for settings in everything if settings.items() - preset.values.items()]
    random.Random(seed).shuffle(others)
    return [{}, *others[: count - 1]]


def tune(
    source: Source,
    parameters: Mapping[str, Any],
    trials: int = 12,
    runs: int = 2,
    jobs: int = 1,
    report: Callable[[Result], None] = lambda _: None,
) -> list[Trial]:
    """Every trial on the same splits, the best validation score first; of equals the one that was tried first."""
    seed = parameters.get("seed", 0)
    tried = candidates(parameters, trials, seed)
    metric, _ = compare.metric_of(source.read(), parameters)
    common = {name: value for name, value in parameters.items() if name != "method"} | {"metric": metric}
    planned = [
        Run(source, parameters.get("method", DEFAULT_METHOD), number, {**common, **settings, "seed": seed + split})
        for number, (settings, split) in enumerate(itertools.product(tried, range(runs)))
    ]
    results = sorted(compare.execute(planned, jobs, report), key=lambda result: result.number)
    of = METRICS[metric]
    found = [Trial.of(settings, results[i * runs : (i + 1) * runs], of.factor) for i, settings in enumerate(tried)]
    return sorted(found, key=lambda trial: -of.sign * trial.val)
