"""Tables without edges as graphs, made as a user makes them, and the nearest rows that they are compared with.

S-FFSD is read in two ways: its payments are rows that links join, or they are edges between accounts. The accounts are
the sources of payments of which it is known whether they are frauds; an account is labelled by whether any of them is.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lignn.errors import DataWarning
from lignn.graph import Graph
from lignn.studies import payments
from lignn.studies.case import StudyCase
from lignn.training import Metric

LINKED, ACCOUNTS = "s-ffsd-linked", "s-ffsd-accounts"
METRICS = ("f1_micro", "roc_auc", "average_precision")


def linked() -> Graph:
    """Return the payments, joined by source, target, location and type, and to those before and after in each."""
    read: dict[str, Any] = {
        "columns": {"label": "Labels"},
        "missing": [str(payments.UNKNOWN)],
        "links": payments.VALUES,
    }
    with warnings.catch_warnings(action="ignore", category=DataWarning):  # it counts the unknown labels
        graph = Graph.read(payments.file(), **read, order="Time")
    assert graph.table is not None
    time = graph.table.column("Time").to_numpy(zero_copy_only=False).astype(np.float64)
    return graph.replace(time=time, name=LINKED)


def accounts() -> Graph:
    """Return the accounts, and the payments as edges that carry an amount, a time, a location and a type."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import csv

    rows = csv.read_csv(payments.file())
    known = rows.filter(pc.not_equal(rows["Labels"], payments.UNKNOWN))
    labelled = known.group_by("Source", use_threads=False).aggregate([("Labels", "max")])
    nodes = pa.table({"id": labelled["Source"], "label": labelled["Labels_max"]})
    columns = {"source": "Source", "target": "Target"}
    return Graph.from_tables(nodes, rows.drop_columns(["Labels"]), name=ACCOUNTS, columns=columns)


def of_sklearn(name: str) -> Graph:
    """Return a table of scikit-learn's, its rows joined to their nearest."""
    import pyarrow as pa
    from sklearn import datasets

    load: Callable[[], Any] = getattr(datasets, f"load_{name}")
    found = load()
    columns = {str(column): found.data[:, number] for number, column in enumerate(found.feature_names)}
    return Graph.from_table(pa.table({"label": found.target} | columns), name=name, columns={"label": "label"})


def nearest_rows(case: StudyCase) -> dict[str, Any]:
    """Classify rows by the most frequent label of the five nearest known ones, by prepared columns."""
    from sklearn.neighbors import KNeighborsClassifier

    from lignn.features import Preparation
    from lignn.studies import graphs

    graph = graphs.load(case.graph, case.seed)
    number, split = graphs.choose_split(graph, case.split)
    assert graph.y is not None
    assert graph.columns is not None
    x = Preparation.fit(graph.columns).transform(graph.columns)
    known = (split.train | split.val).numpy()
    model = KNeighborsClassifier().fit(x[known], graph.y.numpy()[known])
    probabilities = torch.zeros(int(split.test.sum()), graph.num_classes, dtype=torch.float64)
    probabilities[:, model.classes_] = torch.from_numpy(model.predict_proba(x[split.test.numpy()]))
    truth = graph.y[split.test]
    return {"split": number, "scores": scores(probabilities, truth, case.metric), "nodes": len(truth)}


def scores(probabilities: Tensor, truth: Tensor, chosen: str) -> dict[str, float]:
    """Return all scores of predictions, and as `test` the chosen one; of two classes the rarer one is to be found."""
    counts = truth.bincount().tolist()
    positive = int(counts[0] >= counts[1]) if len(counts) == 2 else None
    decided = probabilities.argmax(1)
    found = {name: Metric(name, positive=positive)(probabilities, decided, truth) for name in METRICS}
    return {"test": found[chosen], **found}
