"""Hypothesis strategies for graphs with unusual names and all combinations of parts."""

from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
import torch
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from lignn import Graph, Split
from lignn.graph.headers import is_feature

NAMES = st.text(min_size=1, max_size=8).filter(lambda name: not name.endswith("\0"))
FLOATS = {kind: st.floats(width=kind, allow_nan=False, allow_infinity=False) for kind in (32, 64)}


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Draw a small graph that can be written in every format; class names have no |."""
    n = draw(st.integers(1, 6))
    edges = draw(hnp.arrays(np.int64, (2, draw(st.integers(0, 8))), elements=st.integers(0, n - 1)))
    c = draw(st.integers(2, 4))
    names = draw(st.none() | st.lists(NAMES.filter(lambda name: "|" not in name), min_size=c, max_size=c, unique=True))
    x = draw(_features(n))
    return Graph(
        edges,
        x=x,
        y=draw(_labels(n, c)),
        edge_weight=draw(st.none() | _weights(edges.shape[1])),
        num_nodes=n,
        node_ids=draw(st.none() | st.lists(NAMES, min_size=n, max_size=n, unique=True)),
        class_names=names,
        splits=draw(st.lists(_splits(n), max_size=3)),
        feature_names=draw(_feature_names(x)),
        table=draw(st.none() | _tables(n)),
        time=draw(st.none() | hnp.arrays(np.float64, n, elements=st.floats(-1e9, 1e9) | st.just(np.nan))),
        group=draw(st.none() | hnp.arrays(np.int64, n, elements=st.integers(-1, 3))),
        **draw(_edge_types(edges.shape[1])),
    )


@st.composite
def _tables(draw: st.DrawFn, n: int) -> pa.Table:
    """Draw columns of features of all kinds, with gaps."""
    kinds = {
        "whole": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
        "number": (pa.float64(), st.floats(allow_nan=False)),
        "truth": (pa.bool_(), st.booleans()),
        "day": (pa.date32(), st.dates()),
        "moment": (pa.timestamp("s"), st.integers(-(2**33), 2**33)),
        "text": (pa.string(), st.text(max_size=3)),
        "nothing": (pa.null(), st.none()),
    }
    names = draw(st.lists(st.sampled_from(sorted(kinds)), min_size=1, unique=True))
    cells = {name: draw(st.lists(st.none() | kinds[name][1], min_size=n, max_size=n)) for name in names}
    return pa.table({name: pa.array(column, kinds[name][0]) for name, column in cells.items()})


@st.composite
def _edge_types(draw: st.DrawFn, count: int) -> dict[str, Any]:
    if draw(st.booleans()):
        return {}
    names = draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    return {
        "edge_type": draw(hnp.arrays(np.int64, count, elements=st.integers(0, len(names) - 1))),
        "edge_types": names,
    }


@st.composite
def _feature_names(draw: st.DrawFn, x: np.ndarray | sp.csr_array | None) -> list[str] | None:
    """Draw feature names if a table can store them, that is for dense features in single precision."""
    if not isinstance(x, np.ndarray) or x.dtype != np.float32 or not x.shape[1] or draw(st.booleans()):
        return None
    names = NAMES.filter(lambda name: name.isprintable() and name == name.strip() and is_feature(name))
    return draw(st.lists(names, min_size=x.shape[1], max_size=x.shape[1], unique=True))


@st.composite
def _floats(draw: st.DrawFn, shapes: st.SearchStrategy) -> np.ndarray:
    width = draw(st.sampled_from([32, 64]))
    return draw(hnp.arrays(np.dtype(f"float{width}"), draw(shapes), elements=FLOATS[width]))


@st.composite
def _weights(draw: st.DrawFn, count: int) -> np.ndarray:
    return np.abs(draw(_floats(st.just((count,))))).clip(max=np.float32(1e17))


@st.composite
def _features(draw: st.DrawFn, n: int) -> np.ndarray | sp.csr_array | None:
    kind = draw(st.sampled_from(["none", "dense", "sparse"]))
    if kind == "none":
        return None
    x = draw(_floats(st.tuples(st.just(n), st.integers(0 if kind == "dense" else 1, 4))))
    return sp.csr_array(x) if kind == "sparse" else x


@st.composite
def _labels(draw: st.DrawFn, n: int, c: int) -> np.ndarray | None:
    kind = draw(st.sampled_from(["none", "single", "multi"]))
    if kind == "none":
        return None
    if kind == "single":
        y = draw(hnp.arrays(np.int64, n, elements=st.integers(-1, c - 1)))
        y[draw(st.integers(0, n - 1))] = c - 1
        return y
    y = draw(hnp.arrays(np.int8, (n, c), elements=st.integers(0, 1)))
    y[draw(hnp.arrays(bool, n)) & (np.arange(n) > 0)] = -1
    return y


@st.composite
def _splits(draw: st.DrawFn, n: int) -> Split:
    part = draw(hnp.arrays(np.int8, n, elements=st.integers(0, 3)))
    part[0] = 0
    return Split(*(torch.from_numpy(part == number) for number in range(3)))
