"""What a service starts from: a model, or a graph that has none yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from lignn.classifier import generations, saving, scoring
from lignn.classifier.draft import Draft
from lignn.classifier.model import Fitted
from lignn.datasets.sources import Source
from lignn.errors import InputError
from lignn.graph import Graph
from lignn.serve.state import Label, State
from lignn.store import StoredGraph


@dataclass(frozen=True)
class Place:
    """Where the parts of a service are.

    Attributes:
        folder: folder of the model; `fit` writes it.
        graph: the graph to start from if there is no model yet.
        journal: file of the journal.
    """

    folder: Path
    graph: Source | None
    journal: Path

    @classmethod
    def of(cls, name: str, graph: Source, out: Path | None, journal: Path | None) -> Place:
        """Return the place of a model or graph that a user names.

        Args:
            name: folder of a model, or a graph.
            graph: the same as a graph.
            out: folder for the model that is made of a graph; default NAME.model.
            journal: file of the journal; default MODEL.journal.sqlite.
        """
        if is_model(Path(name)):
            if out is not None:
                raise InputError(f"--out: {name} is a model, which a fit replaces; --out is for a graph")
            folder, source = Path(name), None
        else:
            default = Path(name.removesuffix(".npz").rstrip("/") + ".model")
            folder, source = out or default, graph
        return cls(folder, source, journal or folder.with_name(f"{folder.name}.journal.sqlite"))

    def open(self) -> tuple[State, Mapping[str, Any]]:
        """Return the first state, without the journal, and the parameters that a new fit is to have.

        It keeps the labels that it holds back, unless it was told to train on them: the page shows scores on them.
        """
        if is_model(self.folder):
            from lignn.classifier import load

            classifier = load(self.folder)
            if isinstance(classifier._fitted.graph, StoredGraph):
                raise InputError(
                    f"{self.folder}: was trained on a store, whose graph cannot change; lignn serve needs a model of "
                    "tables in memory. New labels of a store take effect by lignn predict --labels"
                )
            fitted = with_ids(classifier._fitted)
            parameters = classifier.get_params(deep=False)
            return State.of(Draft.of(fitted), fitted, {}, 0), parameters | {"refit": bool(parameters["refit"])}
        assert self.graph is not None
        graph, labels = _unlabelled(self.graph.read())
        return State.of(Draft.without_model(graph), None, labels, 0), {"refit": False}

    def identity(self) -> str | None:
        """Return what tells the model on the disk from others; None if there is none."""
        return saving.identity(self.folder)


def is_model(folder: Path) -> bool:
    """Return whether a folder holds a model, or what is left of one."""
    return any((folder / name).is_file() for name in (generations.CURRENT, saving.CONFIG))


def with_ids(fitted: Fitted) -> Fitted:
    """Return a model whose nodes have ids, their numbers if they have no others, so that none changes its id."""
    if fitted.graph.node_ids is not None:
        return fitted
    graph = fitted.graph.replace(node_ids=np.arange(fitted.graph.num_nodes).astype(np.dtypes.StringDType()))
    bound = scoring.bind(fitted, graph, fitted.prediction.problem.labels)
    return replace(fitted, graph=graph, prediction=replace(fitted.prediction, bound=bound))


def _unlabelled(graph: Graph) -> tuple[Graph, dict[str, Label]]:
    """Return a graph without its labels, and those of them that may be used."""
    if len(graph.splits) > 1:
        raise InputError(f"{graph.name} has {len(graph.splits)} splits; make a model by lignn fit, and serve that")
    ids = graph.node_ids
    if ids is None:
        ids = np.arange(graph.num_nodes).astype(np.dtypes.StringDType())
    labels: dict[str, Label] = {}
    if graph.y is not None and graph.labelled.any():
        if graph.is_multilabel:
            raise InputError(f"{graph.name}: a node has several classes; make a model by lignn fit, and serve that")
        usable = graph.labelled & ~graph.splits[0].held_out if graph.splits else graph.labelled
        names = graph.class_names or tuple(map(str, range(graph.num_classes)))
        labels = {str(ids[i]): names[int(graph.y[i])] for i in usable.nonzero().flatten().tolist()}
    return graph.replace(y=None, class_names=None, splits=(), node_ids=ids), labels
