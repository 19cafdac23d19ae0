"""What is rarely meant is said: one warning each."""

import gzip
import warnings

import numpy as np
import pyarrow as pa
import pytest

from lignn import Graph
from lignn.errors import DataWarning, InputError
from lignn.features import Preparation
from tests.cli.commands import outcome
from tests.graph.folders import put

N = 30
EDGES = "source,target\n" + "".join(f"n{i},n{i + 1}\n" for i in range(N - 1))


def nodes(label, **columns):
    header = ",".join(["id", "label", *columns])
    rows = [",".join([f"n{i}", str(label(i)), *(str(cell(i)) for cell in columns.values())]) for i in range(N)]
    return "\n".join([header, *rows]) + "\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (nodes(lambda i: "xy"[i % 2], told=lambda i: "ab"[i % 2]), "column 'told': tells the label of each row"),
        (nodes(lambda i: i % 2, copy=lambda i: i % 2, age=lambda i: i), "column 'copy': tells the label of each row"),
        (nodes(lambda i: f"c{i}", age=lambda i: i), "column 'label': 30 classes for 30 labelled rows"),
        (
            nodes(lambda i: ("1", "1.0", "2")[i % 3]),
            "column 'label': '1' and '1.0' are the same number, but two classes",
        ),
        (nodes(lambda i: "xy"[i % 2], none=lambda _: ""), "column 'none': has no value in any row"),
    ],
)
def test_warnings(folder, text, message):
    put(folder, text, EDGES)
    with pytest.warns(DataWarning) as caught:
        Graph.read(folder)
    assert [message in str(one.message) for one in caught] == [True]
    assert message in outcome("inspect", str(folder)).err


def test_plain_tables_have_no_warning(folder):
    put(folder, nodes(lambda i: "xy"[i % 2], age=lambda i: i * 7 % 5, kind=lambda i: "ab"[i // 3 % 2]), EDGES)
    assert Graph.read(folder).num_nodes == N


def test_held_out_labels_are_not_looked_at(folder):
    """A column is said to tell the label by the labels that are in the table; no feature changes by it."""
    put(folder, nodes(lambda i: "xy"[i % 2] if i < 15 else "", told=lambda i: "ab"[i % 2]), EDGES)
    with pytest.warns(DataWarning, match="tells the label"):
        graph = Graph.read(folder)
    assert graph.table.column("told").to_pylist() == ["ab"[i % 2] for i in range(N)]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (
            {"city": ["X", "Y"] * 5, "old": [True, False] * 5},
            "column 'city' has no value that the model was trained with",
        ),
        ({"city": ["a", "b"] * 5, "old": [1, 0] * 5}, "column 'old' holds numbers, the model was trained on true and"),
        ({"city": pa.nulls(10, pa.string()), "old": [True, False] * 5}, "column 'city' has no value in any row"),
    ],
)
def test_new_rows_that_are_otherwise(column, message):
    preparation = Preparation.fit(pa.table({"city": ["a", "b"] * 20, "old": [True, False, False, True] * 10}))
    with pytest.warns(DataWarning) as caught:
        preparation.transform(pa.table(column))
    assert [message in str(one.message) for one in caught] == [True]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        preparation.transform(pa.table({"city": ["a", "X"], "old": [True, False]}))


def test_weights_that_the_model_did_not_have(folder):
    put(folder, nodes(lambda i: "xy"[i % 2], age=lambda i: i * 7 % 5), EDGES)
    model = folder / "model"
    fit = ("fit", str(folder), "-o", str(model), "--method", "lignn", "--max-epochs", "1")
    assert outcome(*fit).code == 0
    weighted = "source,target,weight\n" + "".join(f"n{i},n{i + 1},{i}\n" for i in range(N - 1))
    put(folder, nodes(lambda i: "xy"[i % 2], age=lambda i: i * 7 % 5), weighted)
    told = outcome("predict", str(model), "--graph", str(folder)).err
    assert "the model was trained on edges with no weights" in told


@pytest.mark.parametrize("huge", [1e308, 1.7e308])
def test_huge_numbers_print_no_warning_of_numpy(folder, huge):
    put(folder, nodes(lambda i: "xy"[i % 2], size=lambda i: huge * (-1) ** (i // 2), age=lambda i: i * 7 % 5), EDGES)
    graph = Graph.read(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(Preparation.fit(graph.table).transform(graph.table)).all()


@pytest.mark.parametrize("header", ["", "id,label\n"])
def test_packed_zeros_are_refused_before_they_fill_the_memory(folder, header, monkeypatch):
    put(folder)
    monkeypatch.setattr("lignn.graph.text_table._BLOCK", 2**20)
    (folder / "nodes.csv").unlink()
    (folder / "nodes.csv.gz").write_bytes(gzip.compress(header.encode() + b"0" * 2**23))
    with pytest.raises(InputError, match="has a line of over 1 MiB, which is no row of a table"):
        Graph.read(folder)
