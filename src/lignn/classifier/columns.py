"""The features of a graph as a model takes them: prepared from its table, or in the order that the model knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
import torch

from lignn.errors import InputError
from lignn.graph import Graph, Split
from lignn.propagation.sparse import unit_rows
from lignn.store import StoredGraph

if TYPE_CHECKING:
    from lignn.classifier.spec import Spec
    from lignn.features import FeatureTransform
    from lignn.graph.reading import Reading


@dataclass(frozen=True)
class Inputs:
    """What a model takes.

    Attributes:
        num_features: number of features of the method.
        feature_names: their names, if a graph has them as they are.
        edge_types: names of the types of edges.
        reading: how the tables of the training graph were read; other tables are read in the same way.
    """

    num_features: int
    feature_names: tuple[str, ...] | None
    edge_types: tuple[str, ...] | None = None
    reading: Reading | None = None


def from_one_source(graph: Graph, table: bool) -> Graph:
    """Return a graph that has both features and a table with one of them: the table, or the features."""
    if graph.table is None or graph.x is None:
        return graph
    return graph.replace(x=None) if table else graph.replace(table=None)


def learn(spec: Spec, graph: Graph, split: Split) -> FeatureTransform | None:
    """Return what makes features of the graph's columns, None if its features are taken as they are.

    In the inductive setting it is learned from the nodes that are not held out, otherwise from all nodes.

    Args:
        spec: with the choice of features.
        graph: from one source.
        split: with the nodes that are held out.
    """
    wanted = spec.values["features"]
    if isinstance(graph, StoredGraph):
        return _of_store(wanted, graph)
    if wanted == "raw":
        check_raw(graph)
        return None
    if not isinstance(wanted, str):
        from lignn.features import OwnTransformer

        return OwnTransformer(wanted)
    if graph.columns is None:
        return None
    from lignn.features import Preparation  # imports pyarrow, which is slow and not needed without tables

    seen = graph.is_row & ~split.held_out if spec.values["inductive"] else graph.is_row
    return Preparation.fit(graph.columns, None if seen.all() else seen.numpy(), graph.name)


def _of_store(wanted: Any, graph: StoredGraph) -> FeatureTransform | None:
    """Return what made the features of a store when it was built."""
    if not isinstance(wanted, str):
        raise InputError(f"{graph.name}: the features of a store are made when it is built; leave out the transformer")
    if wanted == "raw" and graph.preparation is not None:
        raise InputError(f"{graph.name}: the store was built with prepared features; build it with --features raw")
    return graph.preparation


def prepared(graph: Graph, preparation: FeatureTransform | None, spec: Spec) -> Graph:
    """Return `graph` with features that `preparation` makes of its columns.

    Without a preparation they are taken as they are, but for rows of sparse features: these may be divided by their
    lengths, so that a long text counts as much as a short one.
    """
    unit = preparation is None and spec.values.get("unit_rows", False) and spec.values["features"] != "raw"
    if isinstance(graph, StoredGraph):
        return graph.replace(unit_rows=unit)
    if preparation is None:
        return graph.replace(x=unit_rows(graph.x)) if unit and isinstance(graph.x, sp.csr_array) else graph
    rows = _rows(graph, preparation)
    if graph.value_of is None or graph.columns is None:
        x = preparation.transform(rows, graph.name)
    else:
        x = _zero_elsewhere(preparation.transform(rows.filter(graph.is_row.numpy()), graph.name), graph.is_row.numpy())
    return graph.replace(x=x if x.shape[1] else None, feature_names=None)


def _zero_elsewhere(x: Any, rows: np.ndarray) -> Any:
    """Return the features of some nodes (a mask), zeros for all others: values that rows share have no columns."""
    if sp.issparse(x):
        place = sp.csr_array(
            (np.ones(x.shape[0], x.dtype), (np.flatnonzero(rows), np.arange(x.shape[0]))), (len(rows), x.shape[0])
        )
        return sp.csr_array(place @ x)
    found = np.zeros((len(rows), x.shape[1]), x.dtype)
    found[rows] = x
    return found


def new_rows(features: Any, graph: Graph, preparation: FeatureTransform | None) -> Any:
    """Return rows of new nodes as a table that `preparation` can transform; as they are if there is none.

    Columns that are missing or unknown are warned of, values that do not fit are refused. Columns that follow from how
    nodes of `graph` are joined are no part of the rows.
    """
    if preparation is None or not preparation.columns or (graph.table is None and graph.edge_table is not None):
        return features
    import pyarrow as pa

    from lignn.features import as_table

    rows = checked = as_table(features)
    if graph.columns is not None and graph.table is not None:
        for name in graph.columns.column_names[graph.table.num_columns :]:
            checked = checked.append_column(name, pa.nulls(rows.num_rows))
    preparation.transform(checked, "new nodes")
    return rows


def _rows(graph: Graph, preparation: FeatureTransform) -> Any:
    """Return what `preparation` takes: the table of a graph; without one, its features, by name for a table's model."""
    if graph.columns is not None or (graph.x is not None and not preparation.columns):
        return graph.x if graph.columns is None else graph.columns
    if graph.x is None or graph.feature_names is None:
        there = "no features" if graph.x is None else "features without names"
        raise InputError(f"{graph.name} has {there}, the model was trained on a table; give Graph(table=…) or read one")
    import pyarrow as pa

    x = graph.x.toarray() if isinstance(graph.x, sp.csr_array) else graph.x.numpy()
    return pa.table(dict(zip(graph.feature_names, x.T, strict=True)))


def check_raw(graph: Graph) -> None:
    """Refuse a graph whose columns would have to be features as they are."""
    if graph.table is None or graph.x is not None:
        return
    from lignn.features import describe, kind_of

    found = []
    for column, type_ in zip(describe(graph.table, graph.name), graph.table.schema.types, strict=True):
        if kind_of(type_) != "number":
            found.append(f"{column.name!r} ({column.kind})")
        elif column.missing:
            found.append(f"{column.name!r} ({column.missing} missing)")
    shown = ", ".join(found[:3]) + (f" and {len(found) - 3} more" if len(found) > 3 else "")
    columns = f", which {shown} cannot be" if found else " in x"
    raise InputError(f"{graph.name}: features='raw' needs features as numbers{columns}; leave it out, or give 'auto'")


def state(preparation: FeatureTransform | None, examples: bool) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """Return a preparation for the files of a model: plain values and tensors; none for a transformer of the user's.

    Args:
        preparation: the preparation.
        examples: keep the ranges and examples of columns, which are values of rows.
    """
    from lignn.features import Preparation

    if not isinstance(preparation, Preparation):
        return None, {}
    record, arrays = (preparation if examples else preparation.without_examples()).state()
    return record, {group: {name: torch.from_numpy(a) for name, a in each.items()} for group, each in arrays.items()}


def restored(record: dict[str, Any] | None, tensors: dict[str, Any], features: Any) -> FeatureTransform | None:
    """Return the preparation of a model from its files; `features` is its setting, or the user's transformer."""
    from lignn.features import OwnTransformer, Preparation

    if not isinstance(features, str):
        return OwnTransformer(features)
    if record is None:
        return None
    arrays = {group: {name: tensor.numpy() for name, tensor in each.items()} for group, each in tensors.items()}
    return Preparation.restored(record, arrays)


def align(graph: Graph, model: Inputs) -> Graph:
    """Return `graph` with its features in the order of the model's, matched by name if both have names."""
    if graph.feature_names and model.feature_names:
        order = _order(graph.feature_names, model.feature_names, graph.name)
        x: Any = graph.x
        return graph.replace(x=x[:, order], feature_names=model.feature_names)
    if graph.num_features != model.num_features:
        wanted = f"the model was trained with {model.num_features}"
        raise InputError(f"{graph.name} has {graph.num_features} features a node, {wanted}")
    return graph


def align_table(features: Any, model: Graph) -> Any:
    """Features of new nodes; a data frame's columns are matched by name."""
    names = getattr(features, "columns", None)
    if names is None or not model.feature_names:
        return features
    order = _order([str(name) for name in names], model.feature_names, "features")
    return features[[names[column] for column in order]]


def _order(theirs: Sequence[str], ours: Sequence[str], where: str) -> list[int]:
    """Where each of `ours` is in `theirs`."""
    number, wanted = {name: column for column, name in enumerate(theirs)}, set(ours)
    missing = [f"{name!r}, a feature of the model, is missing" for name in ours if name not in number]
    unknown = [f"{name!r} is no feature of the model" for name in theirs if name not in wanted]
    if missing or unknown:
        wrong = ", and ".join(missing[:1] + unknown[:1])
        raise InputError(f"{where}: {wrong}; the columns must be those it was trained with, in any order")
    return [number[name] for name in ours]
