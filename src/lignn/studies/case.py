"""A case of a study: all that its result depends on as plain values, and its place in the study.

This module imports nothing heavy, so that a plan is quick.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from lignn.declarations import DEFAULT_METRIC, METRICS, PRECISIONS
from lignn.errors import ConfigError, did_you_mean

CHOICES = {
    "task": ("train", "classify", "labels_added", "nearest_rows", "label_transitions"),
    "precision": PRECISIONS,
    "metric": tuple(METRICS),
    "split.kind": ("paper", "public", "published", "stratified", "per_class", "random", "by_time"),
}
"""Allowed values of the settings that are a choice."""


_PLACE = ("study", "row", "against")


@dataclass(frozen=True)
class StudyCase:
    """One run of a study.

    Attributes:
        dataset: name of the dataset.
        task: `train` a method, `classify` nodes whose labels are hidden from a `NodeClassifier`, use `labels_added` to
            one after training, classify by `nearest_rows`, or measure the `label_transitions` of the dataset.
        dataset_options: options of `datasets.load`; `graph` is the name of the graph if that of the dataset is another.
        split: `kind` is `paper` (the splits of Table 2: 10 nodes a class, 500, 1000), `public` (those of the dataset),
            `published` (60/20/20 of Amazon Photo and Coauthor Physics, one for all runs), `stratified` (with
            `fractions`, and `seed` for one split of all runs), `per_class` (`labels` a class by `seed`, and `val` and
            `test` others; without `test` all others), `random` (a fifth of all nodes for test, by the seeds in
            `states`) or `by_time` (the latest fifth of the labels for test; each further split is of those that the one
            before trains on); `number` chooses one.
        inductive: train without the edges of held-out nodes.
        backbone: `name` and options; empty for a method without backbone. `statistics` is one of the two ways of batch
            normalisation that were not chosen, see `studies.normalisation`.
        method: `name` and options; the method `auto` has a `quality`, and a `candidate` if only that one is fitted.
        training: arguments of `training.Training`, or more parameters of `NodeClassifier`.
        seed: seed of weights, masks and dropout.
        precision: floating-point type of all computations.
        curve: record the test score of every epoch.
        metric: the score that chooses the epoch and is recorded.
        study, row: its place in the report; they are not part of its id.
        against: the row that it is compared with.
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
    metric: str = DEFAULT_METRIC
    study: str = ""
    row: str = ""
    against: str | None = None

    @classmethod
    def of(cls, values: Mapping[str, Any], where: str, **place: Any) -> StudyCase:
        """Return the case with these values and this place; the messages of errors start with `where`."""
        known = {f.name: f for f in fields(cls) if f.name not in _PLACE}
        for key, value in values.items():
            if key not in known:
                raise ConfigError(f"{where}: there is no setting {key!r}; {did_you_mean(key, known)}")
            wanted = {"str": str, "bool": bool, "int": int}.get(str(known[key].type), dict)
            if not isinstance(value, wanted):
                raise ConfigError(f"{where}: {key} must be a {wanted.__name__}, got {value!r}")
        case = cls(**values, **place)
        case._check(where)
        return case

    def _check(self, where: str) -> None:
        chosen = {"task": self.task, "precision": self.precision, "metric": self.metric}
        if self.task != "label_transitions":
            chosen["split.kind"] = self.split.get("kind", "")
            if "name" not in self.method:
                raise ConfigError(f"{where}: method has no name")
        for key, value in chosen.items():
            if value not in CHOICES[key]:
                raise ConfigError(f"{where}: {key} {value!r} is unknown; {did_you_mean(value, CHOICES[key])}")

    def plain(self) -> dict[str, Any]:
        """Return what the result depends on as nested plain values; records without a metric have the default one."""
        left_out = _PLACE if self.metric != DEFAULT_METRIC else (*_PLACE, "metric")
        return {name: value for name, value in asdict(self).items() if name not in left_out}

    @property
    def graph(self) -> str:
        """The name of the graph."""
        return self.dataset_options.get("graph", self.dataset)

    @property
    def id(self) -> str:
        """Hash of all plain values; two cases with the same id have the same result.

        Defaults of the code are not part of it. A record has what they came to under `settings`, and the commit.
        """
        text = json.dumps(self.plain(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def cell(self) -> tuple[str, str]:
        """Row and dataset; the cases of a cell differ in seed and split, or in settings that the row does not name."""
        return self.row, self.dataset

    @property
    def description(self) -> dict[str, Any]:
        """What a record says about the case besides its result."""
        return {
            "id": self.id,
            "study": self.study,
            "row": self.row,
            "against": self.against,
            "dataset": self.dataset,
            "method": self.method.get("name"),
            "backbone": self.backbone.get("name"),
            "split": self.split.get("number"),
            "seed": self.seed,
            "config": self.plain(),
        }


def without_name(named: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a backbone or method."""
    return {key: value for key, value in named.items() if key != "name"}
