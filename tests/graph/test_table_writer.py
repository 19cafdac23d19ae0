"""Writing of folders of tables: they are read back equal, and no file of the user is replaced."""

import os
import tempfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings

from lignn import Graph
from lignn.errors import InputError, TableError
from tests.graph.equality import assert_same
from tests.graph.strategies import graphs


@settings(deadline=None)
@given(graphs())
def test_round_trip(graph):
    with tempfile.TemporaryDirectory() as root:
        path = Path(root) / "g"
        graph.write(path)
        again = Graph.read(path)
    assert_same(graph, again)
    assert again.name == "g"


def test_wide_and_sparse_features_have_a_file(tmp_path):
    for x, name in ((torch.ones(2, 65), "features.npy"), (sp.csr_array(np.eye(2)), "features.npz")):
        graph = Graph([[0], [1]], x=x)
        graph.write(tmp_path / "g")
        assert sorted(os.listdir(tmp_path / "g")) == sorted(["edges.csv", "graph.json", "nodes.csv", name])
        assert_same(Graph.read(tmp_path / "g"), graph)


def test_wide_features_with_names_are_columns(tmp_path):
    graph = Graph([[0], [1]], x=torch.ones(2, 65), feature_names=[f"f{i}" for i in range(65)])
    graph.write(tmp_path / "g")
    assert_same(Graph.read(tmp_path / "g"), graph)


def test_what_a_table_cannot_keep_is_refused(tmp_path):
    with pytest.raises(TableError, match="an empty id"):
        Graph([[0], [1]], node_ids=["", "b"]).write(tmp_path / "g")
    with pytest.raises(TableError, match="an empty name means unlabelled"):
        Graph([[0], [1]], y=[0, 1], class_names=["", "b"]).write(tmp_path / "g")
    with pytest.raises(TableError, match=r"'a\|b' has a \|, which joins labels"):
        Graph([[0], [1]], y=[[0, 1], [1, 1]], class_names=["a|b", "b"]).write(tmp_path / "g")
    x = torch.ones(2, 1)
    for name in ("id", "labels", "split7", " a", "a\0", ""):
        with pytest.raises(TableError, match="cannot name a column; rename it, or write an"):
            Graph([[0], [1]], x=x, feature_names=[name]).write(tmp_path / "g")
    with pytest.raises(TableError, match="for dense float32 features only"):
        Graph([[0], [1]], x=x.double(), feature_names=["a"]).write(tmp_path / "g")
    assert os.listdir(tmp_path) == []


def test_own_tables_are_not_overwritten(folder):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(InputError, match=r"other content \(no graph.json\)"):
        Graph([[0], [1]]).write(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
