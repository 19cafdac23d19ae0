"""The `.npz` format."""

import contextlib
import os
import tempfile
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st

from lignn import Graph, Split
from lignn.errors import InputError, TableError
from lignn.graph.archive import fingerprint
from tests.graph.equality import assert_same
from tests.graph.strategies import graphs

EDGES = np.array([[0, 1, 2], [1, 2, 0]], np.int32)
CSR = {
    "x_data": np.ones(2, np.uint8),
    "x_indices": np.array([1, 0]),
    "x_indptr": np.array([0, 1, 2, 2]),
    "x_shape": [3, 2],
}


@given(graphs())
def test_round_trip(graph):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "g.npz"
        graph.write(path)
        again = Graph.read(path)
    assert_same(graph, again)
    assert again.name == "g"


def test_round_trip_of_a_table_types_times_and_groups(tmp_path):
    table = pa.table(
        {"city": ["Rome", None, "Oslo"], "age": [1.5, None, 3.0], "since": pa.array([1, 2, None], "date32")}
    )
    graph = Graph(
        EDGES, table=table, edge_type=[0, 1, 0], edge_types=["pays", "owns"], time=[1, np.nan, 3], group=[0, -1, 0]
    )
    graph.write(tmp_path / "g.npz")
    again = Graph.read(tmp_path / "g.npz")
    assert_same(graph, again)
    assert again.table["city"].to_pylist() == ["Rome", None, "Oslo"]
    assert fingerprint(graph) == fingerprint(again) != fingerprint(graph.replace(table=table.drop(["age"])))


def test_a_damaged_table_is_refused(tmp_path):
    np.savez(tmp_path / "g.npz", edge_index=EDGES, table=np.frombuffer(b"ARROW1 and nothing else", np.uint8))
    with pytest.raises(TableError, match=r"g\.npz: the array 'table' is damaged"):
        Graph.read(tmp_path / "g.npz")


def test_keys_and_types_of_the_data_folder(tmp_path):
    masks = np.eye(3, dtype=bool)
    arrays = {"edge_index": EDGES, "y": np.array([0, 1, 0])} | CSR
    arrays |= {f"{part}_mask": np.roll(masks, i, 0)[:, :2] for i, part in enumerate(("train", "val", "test"))}
    np.savez(tmp_path / "g.npz", **arrays)
    graph = Graph.read(tmp_path / "g.npz")
    assert graph.edge_index.dtype == torch.int64
    assert graph.x.dtype == np.float32
    assert graph.x.toarray().tolist() == [[0, 1], [1, 0], [0, 0]]
    assert [split.val.tolist() for split in graph.splits] == [[False, True, False], [False, False, True]]


def test_other_byte_order_and_integer_names(tmp_path):
    arrays = {
        "edge_index": EDGES.astype(">i4"),
        "x": np.array([[1], [2], [3]], ">f8"),
        "y": np.array([0, 1, -1], ">i2"),
    }
    np.savez(tmp_path / "g.npz", **arrays, node_ids=np.array([10, 20, 30]), edge_weight=np.array([1, 2, 3], ">f4"))
    graph = Graph.read(tmp_path / "g.npz")
    assert graph.node_ids.tolist() == ["10", "20", "30"]
    assert graph.x.dtype == torch.float64
    assert graph.edge_weight.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"links": EDGES}, "unknown array 'links'; choose from class_names, edge_index"),
        ({"edge_index": EDGES, "edge_weights": EDGES[0]}, "did you mean 'edge_weight'"),
        ({"y": [0, 1]}, "'edge_index' is missing"),
        ({"edge_index": EDGES.astype(float)}, "'edge_index' must hold integers in 2 dimensions, it holds float64 in 2"),
        ({"edge_index": EDGES[0]}, "it holds int32 in 1"),
        ({"edge_index": EDGES, "y": np.array(["a", "b", "c"])}, "'y' must hold numbers in 1 or 2 dimensions"),
        (
            {"edge_index": EDGES, "train_mask": np.ones(3, bool)},
            "'val_mask' is missing; train_mask, val_mask, test_mask must be given together",
        ),
        (
            {"edge_index": EDGES, "x_data": np.ones(2)},
            "'x_indices' is missing; x_data, x_indices, x_indptr, x_shape must be given together",
        ),
        ({"edge_index": EDGES, "x": np.ones((3, 1))} | CSR, "both as 'x' and as 'x_data'"),
        ({"edge_index": EDGES} | CSR | {"x_indices": np.array([1, 7])}, "do not form a CSR matrix"),
        ({"edge_index": EDGES} | CSR | {"x_shape": [3, 2, 1]}, "do not form a CSR matrix"),
        ({"edge_index": EDGES, "y": [0, 0, 0]}, "a single class"),
        ({"edge_index": EDGES, "x": np.array([[1], [np.nan], [0]])}, "x: row 1, column 0 is not finite"),
        (
            {"edge_index": EDGES, "y": np.array([0, 1, 0], object)},
            "the array 'y' holds Python objects, which are never read; store plain",
        ),
        (
            {"edge_index": EDGES}
            | {f"{p}_mask": np.zeros((3, r), bool) for p, r in (("train", 1), ("val", 2), ("test", 2))},
            "the masks have different shapes",
        ),
    ],
)
def test_wrong_arrays(tmp_path, arrays, message):
    np.savez(tmp_path / "g.npz", **arrays)
    with pytest.raises(InputError, match=message) as caught:
        Graph.read(tmp_path / "g.npz")
    assert str(caught.value).startswith(str(tmp_path / "g.npz"))


def test_wrong_files(tmp_path):
    path = tmp_path / "g.npz"
    with pytest.raises(TableError, match="cannot be read: No such file or directory"):
        Graph.read(path)
    path.write_bytes(b"")
    with pytest.raises(TableError, match=r"not a whole \.npz file"):
        Graph.read(path)
    with path.open("wb") as file:
        np.save(file, EDGES)
    with pytest.raises(TableError, match=r"not a whole \.npz file"):
        Graph.read(path)


def test_member_that_is_no_array(tmp_path):
    with ZipFile(tmp_path / "g.npz", "w") as file:
        file.writestr("edge_index.npy", "no array")
    with pytest.raises(TableError, match=r"not a whole \.npz file \(the magic string is not correct"):
        Graph.read(tmp_path / "g.npz")


@given(st.data())
def test_damaged_file_is_read_or_bad_input(data):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "g.npz"
        Graph(EDGES, x=sp.csr_array(np.eye(3)), y=[0, 1, 1], node_ids=["a", "b", "c"]).write(path)
        raw = bytearray(path.read_bytes())
        if data.draw(st.booleans()):
            raw = raw[: data.draw(st.integers(0, len(raw) - 1))]
        else:
            for at in data.draw(st.lists(st.integers(0, len(raw) - 1), min_size=1, max_size=4)):
                raw[at] = data.draw(st.integers(0, 255))
        path.write_bytes(raw)
        with contextlib.suppress(InputError):
            Graph.read(path)


def test_nul_at_the_end_of_a_name_is_refused(tmp_path):
    graph = Graph(EDGES, node_ids=["a", "b", "c\0"])
    with pytest.raises(TableError, match=r"'c\\x00' ends in a NUL character"):
        graph.write(tmp_path / "g.npz")
    assert os.listdir(tmp_path) == []


def test_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "g.npz"
    old = Graph(EDGES, splits=[Split.from_indices(3, [0], [1], [2])])
    old.write(path)
    monkeypatch.setattr(np, "savez_compressed", lambda *a, **k: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        Graph(EDGES, num_nodes=9).write(path)
    assert_same(Graph.read(path), old)
    assert os.listdir(tmp_path) == ["g.npz"]


def test_a_fingerprint_is_of_the_content_not_of_the_name():
    graph = Graph(EDGES, x=np.eye(3, dtype=np.float32), y=[0, 1, -1])
    same = fingerprint(graph)
    assert fingerprint(graph.replace(name="other")) == same
    others = [graph.to_undirected(), graph.replace(y=[0, 1, 1]), graph.replace(x=sp.csr_array(np.eye(3)))]
    assert same not in {fingerprint(other) for other in others}
