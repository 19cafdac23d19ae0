"""The models that `auto` and `compare` try on a graph: networks in several ways, label propagation, and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from lignn.backbones.registry import BACKBONES, names_with
from lignn.declarations import BASELINE, METHODS, METHODS_WITH, OF_NETWORK, OF_SOLVER, QUALITIES, title, written
from lignn.errors import ConfigError, did_you_mean
from lignn.graph import Graph
from lignn.methods.registry import network_options, over_rows

Quality = Literal["fast", "good", "best"]
Part = Literal["features", "edges", "labels"]
PARTS: tuple[Part, ...] = ("features", "edges", "labels")
"""What a model may use: a node's features, its neighbours' features, and known labels as inputs."""

_WAYS: dict[str, tuple[str, ...]] = {
    "fast": (BASELINE, "correct_and_smooth", "label_input"),
    "good": (BASELINE, "correct_and_smooth", "label_input", "label_reuse", "lignn"),
    "best": (BASELINE, "correct_and_smooth", "label_input", "label_reuse", "lignn"),
}
MOST_COLUMNS = 256
"""Number of features beyond which trees take leading directions: many well-filled columns cost the time of a race."""
_PASSES = 10
_DEEP: dict[str, Any] = {"num_layers": 8, "residual": True, "norm": "batch"}
"""The deep residual network of docs/results/strong.md."""
_TRIAL = 150
"""Epochs of a deep network while it is tried; enough to tell whether it leads (results/minesweeper.jsonl, split 0)."""


@dataclass(frozen=True)
class Candidate:
    """A model to try.

    Attributes:
        name: how commands and records name it, such as `gcn/lignn`.
        title: how people write it.
        method: name of the method.
        uses: what it uses of a graph.
        backbone: name of the network, None for methods without one.
        parameters: other parameters of `NodeClassifier`.
        first_stage: name of the candidate whose predictions it corrects and smooths; None for all other methods.
        stage: when it starts: 0 at once, later ones by what the stages before say of `family`.
        family: what its network or classifier of rows is called; empty for label propagation.
        trial: parameters that differ while it is tried.
    """

    name: str
    title: str
    method: str
    uses: tuple[Part, ...]
    backbone: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    first_stage: str | None = None
    stage: int = 0
    family: str = ""
    trial: Mapping[str, Any] = field(default_factory=dict)

    @property
    def has_network(self) -> bool:
        """Whether there is a network to train."""
        return self.backbone is not None

    def with_common(self, common: Mapping[str, Any]) -> dict[str, Any]:
        """Return all parameters of `NodeClassifier`: the candidate's own, and those of `common` that its method has.

        Options of a solve, and a mask rate that adapts, are meant for methods with a gradient.
        """
        base = self.parameters.get("method_options", {}).get("base")
        known = network_options(self.method, self.backbone or "", base) if self.has_network else set()
        of_network = METHODS[self.method].parameters if over_rows(self.method, base) else ()
        applied = {
            name: value
            for name, value in common.items()
            if self.method in METHODS_WITH[name]
            and (name not in OF_NETWORK or name in known)
            and name not in of_network
            and (self.method in METHODS_WITH["gradient"] or (name not in OF_SOLVER and value != "adaptive"))
        }
        network = {} if self.backbone is None else {"backbone": self.backbone}
        return {**applied, "method": self.method, **network, **self.parameters}

    @property
    def arguments(self) -> list[str]:
        """The arguments of `lignn fit` that train it alone."""
        found = ["--method", self.method, *(["--backbone", self.backbone] if self.backbone else [])]
        for name, value in self.parameters.items():
            pairs = value.items() if isinstance(value, Mapping) else [("", value)]
            for key, each in pairs:
                text = str(each).lower() if isinstance(each, bool) else str(each)
                found += [f"--{name.replace('_', '-')}", f"{key}={text}" if key else text]
        return found

    def tried_with(self, common: Mapping[str, Any]) -> dict[str, Any]:
        """Return the same for a trial, which trains once; the race calibrates."""
        given = self.with_common({**common, "refit": False, "calibrate": False})
        shorter = {name: min(value, given.get(name) or value) for name, value in self.trial.items()}
        return {**given, **shorter}


def candidates(graph: Graph, quality: Quality = "good", backbones: Sequence[str] | None = None) -> list[Candidate]:
    """Return the models that fit a graph, the simplest first.

    Args:
        graph: the graph; what it lacks (features, edges, types, one class per node) rules models out.
        quality: how many of them.
        backbones: names of the networks; default by the quality, and `rgcn` for types of edges.
    """
    networks = list(_tried(quality) if backbones is None else backbones)
    for name in networks:
        if name not in BACKBONES:
            raise ConfigError(f"backbones: {name!r} is unknown; {did_you_mean(name, BACKBONES)}")
    if backbones is None and graph.edge_types is not None:
        networks[:0] = names_with("knows_types")
    there: set[str] = {"edges"} if graph.num_edges else set()
    there |= {"features"} if graph.has_features else set()
    found = _without_network(graph)
    for way in _WAYS[quality]:
        for name in networks:
            found += _with_network(way, name)
    if quality != QUALITIES[0] and "gcn" in networks:
        found += _deep("gcn")
    return [each for each in found if _needs(each) <= there]


def _tried(quality: Quality) -> list[str]:
    """Return the networks that are tried on any graph: by their quality, those that use edges first."""
    rank = {name: QUALITIES.index(kind.tried_from) for name, kind in BACKBONES.items() if kind.tried_from}
    tried = [name for name in rank if rank[name] <= QUALITIES.index(quality)]
    return sorted(tried, key=lambda name: (rank[name], not BACKBONES[name].uses_edges))


def _needs(candidate: Candidate) -> set[str]:
    """Return what a graph must have for a candidate to be of use."""
    needs = set(METHODS[candidate.method].needs)
    if candidate.backbone is None and "features" in candidate.uses and "edges" not in candidate.uses:
        needs |= {"features"}
    if "edges" in candidate.uses:
        needs |= {"edges"}
    return needs


def _without_network(graph: Graph) -> list[Candidate]:
    """Return label propagation, and the classifiers of rows with and without neighbours and Correct and Smooth."""
    found = [Candidate("lpa", title("lpa", ""), "lpa", ("labels",))]
    for method in ("logistic", "boosted"):
        if method == "boosted" and graph.is_multilabel:
            continue
        name = title(method, "")
        of: dict[str, Any] = {"family": method}
        trees = method == "boosted"  # regressions lose by labels of two hops on most graphs: results/rows.jsonl
        few = {"most_columns": MOST_COLUMNS} if trees else {}
        plain = {"method_options": few} if few else {}
        alone = {"method_options": {"neighbours": False, **few}}
        behind = {"method_options": {"base": method, **few}}
        found += [Candidate(f"{method}/features", f"{name}, features only", method, ("features",), None, alone, **of)]
        if trees:
            inputs = ("label_input", "labels as inputs"), ("label_reuse", "labels fed back")
            found += [
                Candidate(f"{method}/{way}", f"{name}, {words}", way, PARTS, None, behind, stage=stage, **of)
                for stage, (way, words) in enumerate(inputs)
            ]
        smoothed = f"{method}/smoothed", f"{name} + C&S", "correct_and_smooth"
        found += [
            Candidate(method, f"{name} of neighbourhoods", method, PARTS, None, plain, stage=int(trees), **of),
            Candidate(*smoothed, PARTS, None, behind, method, stage=int(trees), **of),
        ]
    return found


def _with_network(method: str, backbone: str) -> list[Candidate]:
    """Return a network in one way; several for LI-GNN, whose contraction can be free or proved."""
    kind = BACKBONES[backbone]
    edges: tuple[Part, ...] = ("edges",) if kind.uses_edges else ()
    name, shown = f"{backbone}/{method}", title(method, backbone)
    of: dict[str, Any] = {"backbone": backbone, "family": backbone}
    late = 0 if kind.tried_from == QUALITIES[0] or kind.knows_types else 3  # attention is slow
    if method == BASELINE:
        return [Candidate(backbone, shown, method, ("features", *edges), stage=late, **of)]
    if method != "correct_and_smooth" and not edges:
        return []
    if method == "correct_and_smooth":
        if late:
            return []
        return [Candidate(name, shown, method, PARTS, first_stage=backbone, stage=late, **of)]
    if method == "label_input":
        return [Candidate(name, shown, method, PARTS, stage=late + 1, **of)]
    if late:
        return []
    if method == "label_reuse":
        passes = {"method_options": {"iterations": _PASSES}}
        return [Candidate(name, f"{shown} ({_PASSES})", method, PARTS, parameters=passes, stage=2, **of)]
    return [
        Candidate(f"{name}/{each}", f"{shown}, {each}", method, PARTS, parameters={"contraction": each}, stage=2, **of)
        for each in ("proved", "free")
    ]


def _deep(backbone: str) -> list[Candidate]:
    """Return a deep residual network with labels as inputs, then alone and as LI-GNN if that is not behind."""
    ways: tuple[tuple[str, tuple[Part, ...], int], ...] = (
        ("label_input", PARTS, 2),
        (BASELINE, ("features", "edges"), 3),
        ("lignn", PARTS, 3),
    )
    plain = METHODS[BASELINE].title.format(written(backbone))
    return [
        Candidate(
            f"deep_{backbone}/{method}",
            METHODS[method].title.format(f"deep {plain}"),
            method,
            uses,
            backbone,
            {"backbone_options": _DEEP},
            stage=stage,
            family=f"deep {backbone}",
            trial={"max_epochs": _TRIAL},
        )
        for method, uses, stage in ways
    ]
