"""A store holds the graph it was built from, whole or not at all, from tables or from memory."""

import json
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from lignn import Graph
from lignn.errors import ConfigError, DataWarning, InputError, LignnError
from lignn.features import Preparation
from lignn.graph.opening import Options as Reading
from lignn.store import StoredGraph, build, describe, is_store, layout, verify
from lignn.store.build import Options
from tests.problems import half_split, random_graph

N = 40


def built(graph, path, **options):
    reading = Reading(**{name: options.pop(name) for name in ("columns", "features") if name in options})
    build.build(graph, path, Options(**{"parts": 4, "partition": "blocks", "reading": reading} | options))
    return StoredGraph(path)


def assert_same(stored, graph):
    found = stored.to_graph()
    assert abs(found.to_scipy() - graph.to_scipy()).max() == 0
    assert torch.equal(found.y, graph.y)
    x, wanted = (part.toarray() if sp.issparse(part) else np.asarray(part) for part in (found.x, graph.x))
    assert np.array_equal(x, wanted)
    assert stored.is_undirected == graph.is_undirected


@pytest.mark.parametrize("partition", ["metis", "blocks"])
@pytest.mark.parametrize(("directed", "weighted"), [(False, False), (True, False), (True, True), (False, True)])
def test_the_graph_comes_back(tmp_path, partition, directed, weighted):
    graph = random_graph(N, directed=directed, weighted=weighted)
    stored = built(graph, tmp_path / "s", partition=partition)
    assert_same(stored, graph)
    assert sorted(stored.number.tolist()) == list(range(N))
    assert sum(stored.manifest["sizes"]) == N
    assert ("out" in stored.manifest["parts"]) == directed


def test_sparse_features_splits_ids_and_several_labels(tmp_path):
    graph = random_graph(N, multilabel=True)
    x = sp.csr_array(np.asarray(graph.x) * (np.asarray(graph.x) > 0))
    graph = graph.replace(x=x, splits=[half_split(N), half_split(N, 1)], node_ids=[f"né{i}" for i in range(N)])
    stored = built(graph, tmp_path / "s")
    assert_same(stored, graph)
    found = stored.to_graph()
    assert list(found.node_ids) == list(graph.node_ids)
    assert [torch.equal(a.val, b.val) for a, b in zip(found.splits, graph.splits, strict=True)] == [True, True]


def test_repeated_edges_and_self_loops_are_merged(tmp_path):
    graph = Graph([[0, 0, 0, 2, 3], [1, 1, 0, 2, 1]], num_nodes=5, y=[0, 1, 0, 1, -1], x=np.eye(5, dtype=np.float32))
    stored = built(graph, tmp_path / "s", parts=2)
    assert_same(stored, graph)
    assert stored.manifest["weighted"]  # the edge 0 → 1 counts twice
    degree = np.empty(5)
    degree[stored.number] = stored.array("in_degree")
    assert degree.tolist() == [1, 3, 1, 0, 0]
    both = built(graph, tmp_path / "u", parts=2, undirected=True)
    assert_same(both, graph.to_undirected())
    assert not both.manifest["weighted"]


@pytest.mark.parametrize("ids", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_tables_are_read_as_by_graph_read(tmp_path, ids, weighted):
    graph = random_graph(N, directed=True, weighted=weighted).replace(splits=[half_split(N)])
    graph = graph.replace(node_ids=[f"n{i}" for i in range(N)]) if ids else graph
    graph.write(tmp_path / "tables")
    read = Graph.read(tmp_path / "tables")
    stored = built(tmp_path / "tables", tmp_path / "s")
    assert_same(stored, read)
    assert stored.class_names == read.class_names
    found = stored.to_graph()
    assert torch.equal(found.splits[0].train, read.splits[0].train)
    both = built(tmp_path / "tables", tmp_path / "u", parts=3, partition="metis", undirected=True)
    assert abs(both.to_graph().to_scipy() - read.to_undirected().to_scipy()).max() < 1e-12


def test_columns_by_role_features_beside_the_tables_and_marks_of_unknown_labels(tmp_path):
    (tmp_path / "nodes.csv").write_text("name,class\na,x\nb,NA\nc,\nd,y\n")
    (tmp_path / "edges.csv").write_text("from,to\na,b\nb,c\nd,a\n")
    np.save(tmp_path / "features.npy", np.arange(8, dtype=np.float32).reshape(4, 2))
    columns = {"label": "class"}  # the other headers are usual ones
    with pytest.warns(DataWarning, match="read as unknown labels: 'NA'"):
        stored = built(tmp_path, tmp_path.with_name("s"), parts=2, columns=columns)
    found = stored.to_graph()
    assert found.y.tolist() == [0, -1, -1, 1]
    assert sorted(found.edge_index.T.tolist()) == [[0, 1], [1, 2], [3, 0]]
    assert np.asarray(found.x).tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]


@pytest.mark.parametrize(
    ("nodes", "edges", "message"),
    [
        ("id\na\na\n", "source,target\n", "the id 'a' is already used in line 2"),
        ("id\n", "source,target\n", "has a header but no nodes"),
        ("id\na\nb\n", "source,target\na,c\n", "1 edges join a node that is not among the 2 nodes"),
        ("id\n0\n1\n", "source,target\n0,2\n", "1 edges join a node that is not among the 2 nodes"),
        ("id\n0\n1\n", "source,target,weight\n0,1,-1\n", "line 2, column 'weight'"),
        ("id\na\nb\n", "source\na\n", "column 'target' is missing"),
        ("id,f\na,1\nb,?\n", "source,target\na,b\n", "line 3, column 'f'"),
        ("id,f\na,1\nb,inf\n", "source,target\na,b\n", "line 3, column 'f'"),
    ],
)
def test_bad_tables_are_one_sentence_and_leave_no_store(tmp_path, nodes, edges, message):
    (tmp_path / "nodes.csv").write_text(nodes)
    (tmp_path / "edges.csv").write_text(edges)
    with pytest.raises(InputError, match=message):
        built(tmp_path, tmp_path.with_name(f"{tmp_path.name}-s"), parts=1, features="raw")
    assert not any(f"{tmp_path.name}-s" in path.name for path in tmp_path.parent.iterdir())


def test_types_of_edges_times_groups_and_columns_are_read_as_by_graph_read(tmp_path):
    generator = np.random.default_rng(0)
    rows = [
        f"p{i},{'xy'[i % 2]},{'' if i % 7 else 0.5 * i},{['red', 'blue', 'green'][i % 3]},{2000 + i}-01-02,{i // 4}"
        for i in range(N)
    ]
    (tmp_path / "nodes.csv").write_text("id,label,height,colour,day,team\n" + "\n".join(rows))
    pairs = generator.integers(N, size=(3 * N, 2))
    lines = [f"p{a},p{b},{['likes', 'knows'][k % 2]},{k + 1}" for k, (a, b) in enumerate(pairs)]
    (tmp_path / "edges.csv").write_text("source,target,edge_type,weight\n" + "\n".join(lines))
    columns = {"time": "day", "group": "team"}
    stored = built(tmp_path, tmp_path.with_name("s"), columns=columns)
    read = Graph.read(tmp_path, columns=columns)
    found = stored.to_graph()
    assert (found.edge_types, found.time.tolist()) == (read.edge_types, read.time.tolist())
    assert found.group.tolist() == read.group.tolist()
    for kind in range(2):
        assert abs(found.of_type(kind).to_scipy() - read.of_type(kind).to_scipy()).max() == 0
    preparation = Preparation.fit(read.table)
    assert np.allclose(np.asarray(found.x), preparation.transform(read.table), atol=1e-6)
    again = stored.preparation.transform(read.table)
    assert np.array_equal(np.asarray(found.x), again)
    assert stored.reading == read.reading
    both = built(tmp_path, tmp_path.with_name("u"), columns=columns, undirected=True).to_graph()
    for kind in range(2):
        assert abs(both.of_type(kind).to_scipy() - read.to_undirected().of_type(kind).to_scipy()).max() < 1e-12
    with pytest.raises(InputError, match="column 'height'"):
        built(tmp_path, tmp_path.with_name("s"), columns=columns, features="raw")


@pytest.mark.parametrize("name", ["sqlite", "semicolons", "two files"])
def test_other_formats(tmp_path, name):
    nodes, edges = "id;label;f\n10;a;1,5\n20;b;2\n30;;3,25\n", "u;v\n10;20\n30;20\n"
    if name == "sqlite":
        import sqlite3

        with sqlite3.connect(tmp_path / "g.db") as database:
            for table, text in (("nodes", nodes), ("edges", edges)):
                header, *rows = [line.replace(",", ".").split(";") for line in text.splitlines()]
                database.execute(f"CREATE TABLE {table} ({', '.join(header)})")
                database.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(header))})", rows)
        database.close()
        origin = tmp_path / "g.db"
    else:
        names = ("nodes.csv", "edges.csv") if name == "semicolons" else ("a.csv", "b.csv")
        paths = [tmp_path / file for file in names]
        for path, text in zip(paths, (nodes, edges), strict=True):
            path.write_text(text)
        origin = tmp_path if name == "semicolons" else tuple(paths)
    found = built(origin, tmp_path.with_name(f"{tmp_path.name}-s"), parts=2, features="raw").to_graph()
    assert sorted(found.edge_index.T.tolist()) == [[0, 1], [2, 1]]
    assert list(found.node_ids) == ["10", "20", "30"]
    assert np.asarray(found.x).ravel().tolist() == [1.5, 2, 3.25]
    assert found.y.tolist() == [0, 1, -1]


def test_bad_options(tmp_path):
    graph = random_graph(10)
    for options, message in (
        ({"parts": 0}, "at least 1"),
        ({"parts": 11}, "10 nodes cannot be divided into 11"),
        ({"partition": "metal"}, "did you mean 'metis'"),
        ({"memory": 1000}, "at least 256 MB"),
        ({"columns": {"sauce": "x"}}, "no role or kind 'sauce'"),
    ):
        source = graph
        if "columns" in options:
            graph.write(tmp_path / "tables")
            source = tmp_path / "tables"
        with pytest.raises((InputError, ConfigError), match=message):
            built(source, tmp_path / "s", **options)
    assert not is_store(tmp_path / "s")


def test_an_order_file_decides_the_order(tmp_path):
    graph, file = random_graph(10), tmp_path / "order"
    order = np.random.default_rng(0).permutation(10)
    file.write_text("\n".join(map(str, order)))
    stored = built(graph, tmp_path / "s", partition=str(file), parts=3)
    assert stored.number.tolist() == order.tolist()
    assert stored.manifest["partition"] == "order-file"
    file.write_text("\n".join(map(str, [*order[:-1], order[0]])))
    with pytest.raises(InputError, match="names 9 of the 10 nodes"):
        built(graph, tmp_path / "s", partition=str(file), parts=3)
    assert_same(StoredGraph(tmp_path / "s"), graph)


def test_a_killed_build_goes_on_after_its_last_stage(tmp_path, monkeypatch):
    graph = random_graph(N)
    stages = []
    nodes = build.write_nodes
    monkeypatch.setattr(build, "write_nodes", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        built(graph, tmp_path / "s")
    assert not (tmp_path / "s").exists()
    monkeypatch.setattr(build, "write_nodes", nodes)
    for name in ("_order", "_matrix"):
        monkeypatch.setattr(build._Build, name, lambda *_, name=name: stages.append(name))
    assert_same(built(graph, tmp_path / "s"), graph)
    assert stages == []
    assert [path.name for path in tmp_path.iterdir()] == ["s"]
    monkeypatch.undo()
    assert_same(built(random_graph(N, seed=1), tmp_path / "s"), random_graph(N, seed=1))  # it replaces the first


def test_nothing_else_is_replaced(tmp_path):
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "mine").write_text("")
    with pytest.raises(InputError, match="other content"):
        built(random_graph(10), tmp_path / "s")


def test_a_damaged_store_is_refused(tmp_path):
    path = tmp_path / "s"
    built(random_graph(N), path)
    verify(path)
    indices = path / "in_local_indices.bin"
    before = indices.read_bytes()
    indices.write_bytes(b"\xff" * len(before))
    with pytest.raises(InputError, match=r"in_local_indices\.bin: is not what was written"):
        verify(path)
    with pytest.raises(InputError, match="part 0 is damaged"):
        StoredGraph(path).matrix("in")
    indices.write_bytes(before[:-4])
    with pytest.raises(InputError, match="cut short"):
        StoredGraph(path)
    text = (path / layout.MANIFEST).read_text()
    (path / layout.MANIFEST).write_text(text.replace('"nodes": 40', '"nodes": 41'))
    with pytest.raises(InputError, match="was changed"):
        StoredGraph(path)
    (path / layout.MANIFEST).write_text(json.dumps({"format": 99}))
    with pytest.raises(InputError, match="format 99"):
        StoredGraph(path)
    (path / layout.MANIFEST).write_text("{")
    with pytest.raises(InputError, match="is damaged"):
        StoredGraph(path)


def test_the_cut_is_counted(tmp_path):
    stored = built(random_graph(N), tmp_path / "s")
    told = describe(tmp_path / "s")
    place = np.argsort(stored.number.numpy())
    part = np.searchsorted(stored.bounds, place, "right") - 1
    source, target = random_graph(N).edge_index.numpy()
    across = part[source] != part[target]
    assert told["cut"] == across.mean()
    assert told["halo_rows"] == len({(part[t], s) for s, t in zip(source[across], target[across], strict=True)})


def test_a_stored_graph_says_what_it_cannot_do(tmp_path):
    stored = built(random_graph(N), tmp_path / "s")
    with pytest.raises(InputError, match="needs the graph in memory"):
        stored.edge_index  # noqa: B018
    with pytest.raises(InputError, match="cannot be replaced"):
        stored.replace(x=None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert stored.time is None


@pytest.mark.parametrize(("limit", "message"), [(1000, "DuckDB"), (30_000, "could not be written")])
def test_a_full_disk_is_one_sentence_and_the_build_can_go_on(tmp_path, limit, message):
    resource = pytest.importorskip("resource")
    graph = random_graph(400, num_features=40)  # 64 kB of features; the database of an empty build has 12 kB
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        with pytest.raises(LignnError, match=message) as told:
            built(graph, tmp_path / "s")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "\n" not in str(told.value)
    assert not is_store(tmp_path / "s")
    assert_same(built(graph, tmp_path / "s"), graph)
    assert [path.name for path in tmp_path.iterdir()] == ["s"]
