"""Tables as people have them are read right in one call, and the reading is told."""

import contextlib
import json
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from lignn import Graph
from lignn.datasets import sources
from lignn.errors import ConfigError, DataWarning, TableError
from tests.cli.commands import outcome
from tests.graph import messy
from tests.graph.folders import problem, put
from tests.graph.messy import CASES, HUGE


@pytest.mark.parametrize("name", CASES)
def test_corpus(name, tmp_path):
    case = CASES[name]
    place = case.write(tmp_path / "mine")
    warns = contextlib.nullcontext() if case.warns is None else pytest.warns(DataWarning, match=re.escape(case.warns))
    with warns:
        graph = Graph.read(place, columns=case.columns, ignore=case.ignore)
    assert str(graph.reading).splitlines() == [case.nodes, case.edges]
    assert {field.name: str(field.type) for field in graph.table.schema} == dict(case.kinds)
    once = graph.edge_index[:, : len(case.edge_index[0])]  # edges that carry columns have their reverse behind them
    assert once.tolist() == [list(end) for end in case.edge_index]
    assert graph.num_edges == once.shape[1] * (1 if graph.edge_table is None else 2)
    assert not case.y or graph.y.tolist() == list(case.y)
    plain = all(column.null_count == 0 for column in graph.table.columns)
    numbers = all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in graph.table.schema.types)
    assert (graph.x is not None) == (plain and numbers)
    if graph.x is not None:
        assert graph.feature_names == tuple(graph.table.column_names)
        assert np.array_equal(graph.x[:, 0].numpy(), graph.table.column(0).to_numpy().astype(np.float32))


def test_the_corpus_has_25_tables():
    assert len(CASES) >= 25


@pytest.mark.parametrize("name", ["pages", "customers", "SQLite"])
def test_one_command_is_enough(name, tmp_path, monkeypatch):
    """And the roles are saved with the model: predictions for the same tables need no options."""
    monkeypatch.chdir(tmp_path)
    sources._read.cache_clear()
    case = CASES[name]
    place = case.write(tmp_path / "mine")
    roles = [f"--column={role}={column}" for role, column in case.columns.items()]
    model = ("-o", "model", "--max-epochs", "1", "--backbone", "mlp", "--backbone-options", "batch_norm=false")
    result = outcome("fit", place, *roles, *(f"--ignore={column}" for column in case.ignore), *model)
    assert result.code == 0, result.err
    assert result.reading == [case.nodes, case.edges]
    again = outcome("predict", "model", "--graph", place)
    assert again.code == 0, again.err
    assert again.reading == [case.nodes.split(";")[0], case.edges]
    assert again.out == outcome("predict", "model").out


def test_two_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sources._read.cache_clear()
    put(tmp_path, messy.NODES)
    (tmp_path / "links.csv").write_text(messy.EDGES)
    (tmp_path / "edges.csv").unlink()
    arguments = ("-o", "model", "--max-epochs", "1", "--json")
    result = outcome("fit", "nodes.csv", "links.csv", *arguments)
    assert result.code == 0, result.err
    assert result.reading == []
    told = json.loads(result.out)["reading"]["edges"]
    roles = [["source", "source"], ["target", "target"]]
    assert told == {"file": "links.csv", "roles": roles, "features": 0, "ignored": [], "notes": [], "kinds": []}
    assert outcome("predict", "model", "--graph", "nodes.csv", "--edges", "links.csv").code == 0


def test_huge_ids_keep_every_digit(tmp_path):
    case = CASES["pages"]
    graph = Graph.read(case.write(tmp_path / "mine"), columns=case.columns)
    assert graph.table.column("facebook_id").to_pylist() == [HUGE + 2 * i + 1 for i in range(4)]


def test_times_groups_and_types(tmp_path):
    case = CASES["time and group"]
    graph = Graph.read(case.write(tmp_path / "mine"), columns=case.columns)
    assert graph.time[:2].tolist() == [1704067200.0, 1704153600.0]
    assert np.isnan(graph.time[2])
    assert graph.group.tolist() == [0, 1, 0]
    case = CASES["customers"]
    graph = Graph.read(case.write(tmp_path / "yours"))
    assert graph.edge_types == ("owns", "pays", "owns (back)", "pays (back)")
    assert graph.edge_type.tolist() == [1, 0, 1, 3, 2, 3]
    assert graph.table.column("spent").to_pylist() == [12.5, None, 7.0, 0.0]
    assert graph.table.column("notes").to_pylist() == ["likes tea", None, "calls often", "asks, and asks"]


@pytest.mark.parametrize("make", [pd.DataFrame, pa.table, dict])
def test_tables_in_memory(make):
    nodes = make({"key": [7, 8, 9], "label": ["x", "y", None], "age": [1.5, 2.0, 3.0], "city": ["a", None, "b"]})
    edges = make({"src": [7, 8], "dst": [8, 9], "since": ["a", "b"]})
    graph = Graph.from_tables(nodes, edges, columns={"id": "key"})
    assert str(graph.reading).splitlines() == [
        "nodes: id = key, label = label, 2 features",
        "edges: source = src, target = dst, 1 feature",
    ]
    assert graph.node_ids.tolist() == ["7", "8", "9"]
    assert graph.y.tolist() == [0, 1, -1]
    assert graph.table.column("city").to_pylist() == ["a", None, "b"]
    assert graph.x is None
    raw = Graph.from_tables(nodes, edges, ignore=["city"], features="raw")
    assert raw.table is None
    assert raw.x.tolist() == [[1.5], [2.0], [3.0]]


def test_polars():
    polars = pytest.importorskip("polars")
    nodes = polars.DataFrame({"id": ["a", "b"], "label": ["x", "y"], "age": [1, 2]})
    graph = Graph.from_tables(nodes, polars.DataFrame({"u": ["a"], "v": ["b"]}))
    assert graph.x.tolist() == [[1.0], [2.0]]


def test_what_is_no_table_is_refused():
    with pytest.raises(TableError, match=r"nodes: a pandas, Polars or Arrow table is needed"):
        Graph.from_tables(3, {"source": ["a"]})
    with pytest.raises(ConfigError, match=r"features 'rwa' is unknown; did you mean 'raw'\?"):
        Graph.read("anywhere", features="rwa")


def test_types_that_cannot_be_features_are_left_out():
    nodes = {"id": ["a", "b"], "label": ["x", "y"], "tags": [[1], [2, 3]], "blob": [b"1", b"2"], "age": [1, 2]}
    graph = Graph.from_tables(nodes, {"source": ["a"], "target": ["b"]})
    assert str(graph.reading.nodes) == "nodes: id = id, label = label, 1 feature, ignored: tags, blob"
    assert graph.x.tolist() == [[1.0], [2.0]]


def test_two_readings_that_fit_are_refused(folder):
    put(folder, "node_id,name,label\n1,b,x\n2,a,y\n", "source,target\n1,2\n")
    assert Graph.read(folder).reading.columns["id"] == "node_id"
    put(folder, "node_id,name,label\n1,2,x\n2,1,y\n", "source,target\n1,2\n")
    assert problem(folder) == "nodes.csv: 'node_id' and 'name' may hold the id; say which: --column id=node_id"
    assert Graph.read(folder, columns={"id": "name"}).node_ids.tolist() == ["2", "1"]


def test_ids_of_another_column_are_named(folder):
    put(folder, "id,account,label\na,17,x\nb,18,y\n", "source,target\n17,18\n18,17\n")
    assert problem(folder, columns={"id": "id"}).splitlines()[0] == (
        "edges.csv, column 'source' (ids): '17' is not the id of a node (line 2), '18' is not the id of a node (line 3)"
        f"; {folder}/nodes.csv has these ids in 'account': give --column id=account"
    ).replace(f"{folder}/", "")


def test_roles_of_another_reading_hold_where_the_columns_are(folder):
    put(folder, "key,kind,age\na,x,1\nb,y,2\n", "source,target\na,b\n")
    first = Graph.read(folder, columns={"id": "key", "label": "kind"}, ignore=["age"])
    put(folder, "key,age\na,1\nb,2\n", "source,target\na,b\n")
    second = Graph.read(folder, like=first.reading)
    assert str(second.reading.nodes) == "nodes.csv: id = key, ignored: age"


def test_raw_features_are_strict(folder):
    put(folder, "id,label,age\na,x,1\nb,y,\nc,,3\n")
    assert problem(folder, features="raw").startswith("nodes.csv, line 3, column 'age': is empty, a number is needed")
    put(folder, "id,label,age\na,x,0.1\nb,y,2\nc,,3\n")
    graph = Graph.read(folder, features="raw")
    assert graph.table is None
    assert np.array_equal(graph.x.numpy(), np.array([[0.1], [2], [3]], np.float32))
    assert graph.feature_names == ("age",)
