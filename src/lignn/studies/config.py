"""All that the result of a run depends on, as plain values. Imports nothing heavy, so that plans are quick."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from lignn.errors import ConfigError, did_you_mean

TASKS = ("train", "label_transitions")
SPLITS = ("paper", "public", "stratified")
PRECISIONS = ("float32", "float64")


@dataclass(frozen=True)
class RunConfig:
    """One run.

    Attributes:
        dataset: a name of `lignn.datasets`.
        task: train a method, or measure the label transitions of the dataset.
        dataset_options: of `datasets.load`.
        split: `kind` is `paper` (10 nodes a class, 500, 1000; the ten splits of Table 2), `public` (the dataset's own)
            or `stratified` (with `fractions`); `number` says which of them.
        inductive: train without the edges of held-out nodes.
        backbone: `name` and options; empty for a method without one.
        method: `name` and options.
        training: of `training.Settings`.
        seed: of weights, masks and dropout.
        precision: of all numbers.
        curve: record the test score of every epoch.
    """

    dataset: str
    task: str = "train"
    dataset_options: dict[str, Any] = field(default_factory=dict)
    split: dict[str, Any] = field(default_factory=dict)
    inductive: bool = False
    backbone: dict[str, Any] = field(default_factory=dict)
    method: dict[str, Any] = field(default_factory=dict)
    training: dict[str, Any] = field(default_factory=dict)
    seed: int = 0
    precision: str = "float32"
    curve: bool = False

    @classmethod
    def of(cls, values: Mapping[str, Any], where: str) -> RunConfig:
        """A config from nested plain values; errors begin with `where`."""
        known = {f.name: f for f in fields(cls)}
        for key, value in values.items():
            if key not in known:
                raise ConfigError(f"{where}: there is no setting {key!r}; {did_you_mean(key, known)}")
            wanted = {"str": str, "bool": bool, "int": int}.get(str(known[key].type), dict)
            if not isinstance(value, wanted):
                raise ConfigError(f"{where}: {key} must be a {wanted.__name__}, got {value!r}")
        config = cls(**values)
        config._check(where)
        return config

    def _check(self, where: str) -> None:
        chosen: dict[str, tuple[str, tuple[str, ...]]] = {
            "task": (self.task, TASKS),
            "precision": (self.precision, PRECISIONS),
        }
        if self.task == "train":
            chosen["split.kind"] = (self.split.get("kind", ""), SPLITS)
            if "name" not in self.method:
                raise ConfigError(f"{where}: method has no name")
        for key, (value, choices) in chosen.items():
            if value not in choices:
                raise ConfigError(f"{where}: {key} {value!r} is unknown; {did_you_mean(value, choices)}")

    def plain(self) -> dict[str, Any]:
        """The config as nested plain values."""
        return asdict(self)

    @property
    def identity(self) -> str:
        """A hash of all values above: runs with the same identity are the same run, if done by the same code.

        What a config leaves to the code's defaults is not in it; a record has that in `settings`, and the commit.
        """
        text = json.dumps(self.plain(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]
