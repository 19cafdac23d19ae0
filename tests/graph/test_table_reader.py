"""Reading of folders of tables: accepted and refused files, and arbitrary bytes."""

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lignn import Graph
from lignn.errors import DataWarning, InputError, TableError
from lignn.graph import arrow_tables, text_table, validate
from tests.graph.equality import assert_same
from tests.graph.folders import EDGES, NODES, problem, put, put_parquet


def test_all_columns(folder):
    graph = Graph.read(folder)
    assert graph.name == "mine"
    assert graph.node_ids.tolist() == ["a", "b", "c"]
    assert graph.class_names == ("cat", "dog")
    assert graph.y.tolist() == [0, 1, -1]
    assert torch.equal(graph.x, torch.tensor([[1], [2.5], [-0.3]]))
    assert graph.feature_names == ("age",)
    assert graph.edge_index.tolist() == [[0, 1], [1, 2]]
    assert graph.edge_weight is None
    (split,) = graph.splits
    assert [split.train.tolist(), split.val.tolist(), split.test.tolist()] == torch.eye(3, dtype=torch.bool).tolist()


def test_only_what_is_needed(folder):
    put(folder, "id\n1\n2\n")
    (folder / "edges.csv").write_text("source,target,weight\n2,1,0.1\n")
    graph = Graph.read(folder)
    assert (graph.x, graph.y, graph.splits, graph.class_names) == (None, None, (), None)
    assert graph.feature_names is None
    assert graph.edge_index.tolist() == [[1], [0]]
    assert torch.equal(graph.edge_weight, torch.tensor([0.1]))


@pytest.mark.parametrize("split_by", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_ends_byte_order_mark_blank_lines_and_spaces_in_the_header(folder, split_by, mark):
    plain = Graph.read(folder)
    nodes = mark + NODES.replace("id,label", " id , label").replace("\n", split_by) + split_by * 2
    put(folder, nodes, mark + EDGES.replace("\n", split_by).rstrip())
    assert_same(Graph.read(folder), plain)


def test_ids_and_labels_are_texts_never_guessed(folder):
    ids = ["NA", "null", "NaN", "1e5", "007", "7", "true", "1.0", str(10**30), "x" * 200_000, 'a,"b"\nc', "é—𝒳"]
    quoted = ['"' + name.replace('"', '""') + '"' for name in ids]
    labels = ["true", "1e5"] * (len(ids) // 2)
    put(
        folder,
        "id,label\n" + "".join(f"{name},{label}\n" for name, label in zip(quoted, labels, strict=True)),
        "source,target\n" + "".join(f"{name},007\n" for name in quoted),
    )
    graph = Graph.read(folder)
    assert graph.node_ids.tolist() == ids
    assert graph.class_names == ("1e5", "true")
    assert graph.edge_index.tolist() == [list(range(len(ids))), [4] * len(ids)]


def test_integer_classes_in_natural_order(folder):
    put(folder, "id,label\na,10\nb,2\nc,none\nd,-5\n")
    graph = Graph.read(folder)
    assert graph.class_names == ("-5", "2", "10", "none")
    assert graph.y.tolist() == [2, 1, 3, 0]


@pytest.mark.parametrize("mark", ["-1", "-1.0", "NA", "nan", "NULL", "?", "<NA>", "None"])
def test_usual_marks_are_unknown_labels(folder, mark):
    put(folder, f"id,label\na,cat\nb,dog\nc, {mark}\nd,{mark}\ne,\n")
    with pytest.warns(
        DataWarning, match=rf"nodes\.csv, column 'label': read as unknown labels: '{re.escape(mark)}' \(2\)"
    ):
        graph = Graph.read(folder)
    assert graph.class_names == ("cat", "dog")
    assert graph.y.tolist() == [0, 1, -1, -1, -1]


def test_which_marks_are_unknown_labels_can_be_chosen(folder):
    put(folder, "id,label\na,NA\nb,dog\nc,-9\n")
    with pytest.warns(DataWarning, match=r"read as unknown labels: '-9' \(1\)"):
        graph = Graph.read(folder, missing=["-9"])
    assert graph.class_names == ("NA", "dog")
    assert graph.y.tolist() == [0, 1, -1]
    assert Graph.read(folder, missing=[]).class_names == ("-9", "NA", "dog")
    for missing in ("-9", [-9]):
        with pytest.warns(DataWarning, match="-9"):
            assert Graph.read(folder, missing=missing).num_classes == 2
    graph.write(folder.parent / "g.npz")
    with pytest.raises(TableError, match=r"missing is for tables; in an \.npz file, the label -1 means unknown"):
        Graph.read(folder.parent / "g.npz", missing=["NA"])


def test_minus_one_beside_one_is_what_is_said(folder):
    put(folder, "id,label\na,-1\nb,1\nc,1\n")
    assert Graph.read(folder, missing=[]).class_names == ("-1", "1")
    (folder / "graph.json").write_text('{"classes": ["-1", "1"]}')
    assert Graph.read(folder).y.tolist() == [0, 1, 1]
    (folder / "graph.json").write_text('{"classes": ["1", "2"]}')
    with pytest.warns(DataWarning, match=r"'-1' \(1\)"):
        assert Graph.read(folder).y.tolist() == [-1, 0, 0]


def test_unknown_among_several_labels(folder):
    put(folder, "id,labels\na,red|blue\nb,NaN\nc,|\n", "source,target\na,b\n")
    with pytest.warns(DataWarning, match=r"column 'labels': read as unknown labels: 'NaN' \(1\)"):
        assert Graph.read(folder).y.tolist() == [[1, 1], [-1, -1], [0, 0]]


def test_texts_are_normalised(folder):
    """Labels, ids, splits and class names, in the tables and in graph.json."""
    nodes = "id,label,split\ncafe\u0301,Zoe\u0308, train\nb\u200b,Zo\u00eb\u00a0,val\nc, \u200b,\n\u2003d,x ,test\n"
    put(folder, nodes, "source,target\ncaf\u00e9,\u00a0b\nb ,\ufeffd\n")
    graph = Graph.read(folder)
    assert graph.node_ids.tolist() == ["caf\u00e9", "b", "c", "d"]
    assert graph.class_names == ("Zo\u00eb", "x")
    assert graph.y.tolist() == [0, 0, -1, 1]
    assert graph.edge_index.tolist() == [[0, 1], [1, 3]]
    assert graph.splits[0].test.tolist() == [False, False, False, True]
    (folder / "graph.json").write_text('{"classes": ["x\u00a0", "Zoe\u0308"]}', encoding="utf-8")
    assert Graph.read(folder).class_names == ("x", "Zo\u00eb")
    (folder / "graph.json").write_text('{"classes": ["x", "x "]}')
    assert problem(folder) == "graph.json: 'classes' must be null or a list of different texts"


@pytest.mark.parametrize(
    ("one", "other"), [("Cat", "cat"), ("hot dog", "hot\u00a0dog"), ("fi", "\ufb01"), ("ab", "a\u200bb")]
)
def test_near_twins_are_noted(folder, one, other):
    put(folder, f"id,label\na,{one}\nb,{other}\nc,bird\n")
    with pytest.warns(DataWarning, match=r"column 'label': .* and .* are almost equal, but are kept apart"):
        assert Graph.read(folder).num_classes == 3
    put(folder, f"id,label\n{one},0\n{other},1\n", f"source,target\n{one},{other}\n")
    with pytest.warns(DataWarning, match=r"column 'id': .* and .* are almost equal"):
        assert Graph.read(folder).num_nodes == 2


def test_several_labels(folder):
    put(folder, "id,labels\na,red|blue\nb,\nc,|\nd,red\n", "source,target\na,b\n")
    graph = Graph.read(folder)
    assert graph.class_names == ("blue", "red")
    assert graph.y.tolist() == [[1, 1], [-1, -1], [0, 0], [0, 1]]


def test_none_of_the_classes_is_a_label_where_classes_are_named(folder):
    put(folder, "id,labels\na,|\nb,|\nc,\n")
    (folder / "graph.json").write_text('{"classes": ["red", "blue "]}')
    assert Graph.read(folder).y.tolist() == [[0, 0], [0, 0], [-1, -1]]


def test_a_bar_in_a_single_label_is_part_of_it(folder):
    put(folder, NODES.replace("cat", "cat|dog"))
    assert Graph.read(folder).class_names == ("cat|dog", "dog")


def test_no_label_and_no_part_given(folder):
    put(folder, "id,label,split\na,,\nb,,\nc,,\n")
    graph = Graph.read(folder)
    assert graph.y is None
    assert graph.splits == ()


def test_edgeless_graph(folder):
    put(folder, edges="source,target,weight\n")
    assert Graph.read(folder).num_edges == 0


def test_further_splits(folder):
    put(folder, "id,label,split,split2\na,0,train,\nb,1,val,train\nc,1,test,val\n")
    first, second = Graph.read(folder).splits
    assert first.train.tolist() == [True, False, False]
    assert second.train.tolist() == [False, True, False]


def test_features_in_a_file(folder):
    put(folder, "id,label\na,0\nb,1\nc,1\n")
    np.save(folder / "features.npy", np.arange(6).reshape(3, 2))
    assert torch.equal(Graph.read(folder).x, torch.arange(6.0).view(3, 2))
    (folder / "features.npy").unlink()
    sp.save_npz(folder / "features.npz", sp.coo_array(np.diag([1.5, 0, 2])))
    assert Graph.read(folder).x.toarray().tolist() == [[1.5, 0, 0], [0, 0, 0], [0, 0, 2]]


def test_many_blocks(folder, monkeypatch):
    """Rows, some with quoted newlines, may lie on both sides of a block boundary."""
    monkeypatch.setattr(text_table, "_BLOCK", 64)
    ids = [f'"{i}\n"' if i % 7 == 0 else f"n{i}" for i in range(200)]
    put(
        folder,
        "id,label,f\n" + "".join(f"{name},{i % 3},{i / 8}\n" for i, name in enumerate(ids)),
        "source,target\n" + "".join(f"{name},{ids[-1 - i]}\n" for i, name in enumerate(ids)),
    )
    graph = Graph.read(folder)
    assert torch.equal(graph.edge_index, torch.stack([torch.arange(200), torch.arange(200).flip(0)]))
    assert torch.equal(graph.x[:, 0], torch.arange(200) / 8)
    assert torch.equal(graph.y, torch.arange(200) % 3)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_tables_with_very_many_columns(folder, ending):
    """Any work that is quadratic in the columns would take minutes here."""
    features = {f"f{i}": [1.0, 2.0, 3.0] for i in range(50_000)}
    if ending == "csv":
        rows = [f"{name}," + ",".join([value] * 50_000) for name, value in ("a1", "b2", "c3")]
        put(folder, "\n".join(["id," + ",".join(features), *rows]))
    else:
        put_parquet(folder, {"id": ["a", "b", "c"]} | features)
    graph = Graph.read(folder)
    assert graph.x.sum(1).tolist() == [50_000, 100_000, 150_000]


def test_parquet(folder):
    plain = Graph.read(folder)
    labels = pa.array(["cat", "dog", None]).dictionary_encode()
    put_parquet(
        folder, {"id": ["a", "b", "c"], "label": labels, "split": ["train", "val", "test"], "age": [1, 2.5, -0.3]}
    )
    (folder / "edges.csv").unlink()
    pq.write_table(pa.table({"source": ["a", "b"], "target": ["b", "c"]}), folder / "edges.parquet")
    assert_same(Graph.read(folder), plain)


def test_parquet_numbers_as_ids_and_labels(folder, monkeypatch):
    monkeypatch.setattr(arrow_tables, "_ROWS", 2)
    put(folder, edges="source,target\n7,2\n")
    put_parquet(folder, {"id": [7, 2**60, 2], "label": [10.0, None, 2.0], "f": [2**24 + 1, 0, 1]})
    graph = Graph.read(folder)
    assert graph.node_ids.tolist() == ["7", str(2**60), "2"]
    assert graph.class_names == ("2", "10")
    assert graph.y.tolist() == [1, -1, 0]
    assert graph.edge_index.tolist() == [[0], [2]]


def test_wrong_places(folder, tmp_path):
    with pytest.raises(TableError, match="nowhere: there is no such folder or file"):
        Graph.read(tmp_path / "nowhere")
    with pytest.raises(
        TableError, match=r"nodes\.csv: is the nodes of a graph whose edges are in edges.csv; give both"
    ):
        Graph.read(folder / "nodes.csv")
    pq.write_table(pa.table({"id": ["a"]}), folder / "nodes.parquet")
    assert problem(folder).endswith("both nodes.csv and nodes.parquet exist; keep one of them")
    (folder / "nodes.parquet").unlink()
    (folder / "nodes.csv").unlink()
    assert problem(folder).endswith("there is no nodes.csv and no nodes.parquet")
    (folder / "nodes.csv").mkdir()
    assert problem(folder) == "nodes.csv: is a folder, a file is needed"


def test_unreadable_file(folder, monkeypatch):
    """The missing permission is simulated, since root may read everything."""
    path_open = Path.open

    def refuse(path, *args, **kwargs):
        if path.suffix == ".csv":
            raise PermissionError(13, "Permission denied")
        return path_open(path, *args, **kwargs)

    monkeypatch.setattr(Path, "open", refuse)
    assert problem(folder) == "nodes.csv: cannot be read: Permission denied"


@pytest.mark.parametrize(
    ("target", "reason"), [("nowhere", "No such file or directory"), (None, "Too many levels of symbolic links")]
)
@pytest.mark.parametrize("name", ["nodes.csv", "edges.csv", "features.npy", "graph.json"])
def test_links_that_lead_nowhere(folder, name, target, reason):
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(target or name)
    assert problem(folder) == f"{name}: cannot be read: {reason}"


def test_bad_feature_files(folder):
    np.save(folder / "features.npy", np.ones((3, 2)))
    assert "features both as columns of the nodes and in a separate file" in problem(folder)
    put(folder, "id\na\nb\nc\n")
    np.save(folder / "features.npy", np.ones((2, 2)))
    assert problem(folder) == "features.npy: has 2 rows, but there are 3 nodes"
    np.save(folder / "features.npy", np.array(["a"]))
    assert problem(folder) == "features.npy: numbers are needed, it holds <U1"
    (folder / "features.npy").write_bytes(b"\x93NUMPY")
    assert problem(folder).startswith("features.npy: not a whole .npy file")
    np.save(folder / "features.npy", np.ones(3))
    assert problem(folder) == "features.npy: a matrix is needed, it has shape (3,)"
    np.savez(folder / "features.npz", a=np.ones(2))
    assert "both features.npy and features.npz exist" in problem(folder)
    (folder / "features.npy").unlink()
    sp.save_npz(folder / "features.npz", sp.coo_array((2**62, 2)))
    assert problem(folder) == f"features.npz: has {2**62} rows, but there are 3 nodes"
    np.savez(folder / "features.npz", a=np.ones(2))
    assert problem(folder).startswith("features.npz: not a whole sparse .npz file ('format')")


@pytest.mark.skipif(os.name != "posix", reason="elsewhere, paths do not depend on the locale")
def test_a_locale_without_the_characters_of_a_path(tmp_path):
    """By default, Python switches to UTF-8 in the C locale; here it must not."""
    folder, target = tmp_path / "m\u00f6bel", tmp_path / "b\u00f6xe"
    folder.mkdir()
    put(folder, edges="source,target\na,b\n")
    put_parquet(folder, {"id": ["a", "b"], "label": ["k\u00fc", "x"]})
    code = r"""
import sys
from lignn import Graph
graph = Graph.read(sys.argv[1])
graph.write(sys.argv[2])
assert ascii(graph.name) == r"'m\xf6bel'"
assert ascii(Graph.read(sys.argv[2]).class_names) == r"('k\xfc', 'x')"
"""
    environment = os.environ | {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    subprocess.run([sys.executable, "-c", code, folder, target], check=True, env=environment)


@settings(deadline=None, max_examples=200)
@given(st.data())
def test_damaged_parquet_is_read_or_bad_input(data):
    labels = pa.array(["red", "blue", None]).dictionary_encode()
    raw = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": ["a", "b", "c"], "label": labels, "f": [0.5, 1, 2]}), raw, compression="none")
    damaged = bytearray(raw.getvalue().to_pybytes())
    for at in data.draw(st.lists(st.integers(0, len(damaged) - 1), min_size=1, max_size=3)):
        damaged[at] = data.draw(st.integers(0, 255))
    with tempfile.TemporaryDirectory() as root, contextlib.suppress(InputError), warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        put(Path(root))
        (Path(root) / "nodes.csv").unlink()
        (Path(root) / "nodes.parquet").write_bytes(damaged)
        assert isinstance(Graph.read(root), Graph)


CELLS = st.sampled_from(
    [*"abcA1é|, ", "", "-1", "nan", "train", '"', '"a"', "\r", "\n", "\0", "1e999", "e\u0301", "\u00a0", "\u200b"]
)


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_mutated_tables_are_read_or_bad_input(data):
    texts = []
    for text in (NODES, EDGES):
        for _ in range(data.draw(st.integers(0, 3))):
            at = data.draw(st.integers(0, len(text)))
            text = text[:at] + data.draw(CELLS) + text[at + data.draw(st.integers(0, 3)) :]
        texts.append(text)
    read_or_refuse(*texts)


@settings(deadline=None, max_examples=300)
@given(st.binary(max_size=40), st.binary(max_size=40))
def test_arbitrary_bytes_are_read_or_bad_input(nodes, edges):
    read_or_refuse(nodes, EDGES)
    read_or_refuse(b"id,f\n" + nodes, b"source,target\n" + edges)


def read_or_refuse(nodes: str | bytes, edges: str | bytes) -> None:
    with tempfile.TemporaryDirectory() as root, contextlib.suppress(InputError), warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        put(Path(root), nodes, edges)
        assert isinstance(Graph.read(root), Graph)


def test_more_classes_than_fit_into_memory(folder, monkeypatch):
    """They are refused before a matrix of zeros and ones is made."""
    put(folder, "id,labels\n" + "".join(f"{i},{i}|{i + 1}\n" for i in range(300)), "source,target\n1,2\n")
    monkeypatch.setattr(validate, "memory", lambda: 300_000)
    message = problem(folder)
    assert message.startswith("nodes.csv, column 'labels': 301 classes for 300 nodes are too many: they need 0 GiB")
