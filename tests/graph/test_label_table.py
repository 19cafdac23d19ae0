from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lignn import Graph
from lignn.errors import TableError
from lignn.graph import label_table

GRAPH = Graph([[0, 1], [1, 2]], y=[0, -1, -1], node_ids=["a", "b", "c"], class_names=["red", "blue"])
SEVERAL = Graph([[0, 1], [1, 2]], y=[[1, 0], [-1, -1], [-1, -1]], class_names=["red", "blue"])
CLASSES = ("red", "blue")


def table(folder: Path, text: str) -> Path:
    file = folder / "new.csv"
    file.write_bytes(text.encode())
    return file


def test_labels_by_node_number(tmp_path: Path) -> None:
    file = table(tmp_path, "label,id\nblue,c\r\n\n,a\n")
    assert label_table.read(file, GRAPH, CLASSES) == {2: 1, 0: None}


def test_texts_are_normalised(tmp_path: Path) -> None:
    file = table(tmp_path, "id,label\ne\u0301,blue \n\u00a0b,\u200b\n c ,red\n")
    graph = GRAPH.replace(node_ids=["\u00e9", "b", " c "])
    assert label_table.read(file, graph, CLASSES) == {0: 1, 1: None, 2: 0}


def test_ids_are_numbers_where_nodes_have_no_names(tmp_path: Path) -> None:
    file = table(tmp_path, "id,label\n2,red\n")
    assert label_table.read(file, GRAPH.replace(node_ids=None), CLASSES) == {2: 0}


def test_several_labels_a_node(tmp_path: Path) -> None:
    file = table(tmp_path, "id,labels\n0,red|blue\n1,|\n2,\n")
    assert label_table.read(file, SEVERAL, CLASSES) == {0: [0, 1], 1: [], 2: None}


def test_parquet(tmp_path: Path) -> None:
    file = tmp_path / "new.parquet"
    pq.write_table(pa.table({"id": ["b", "c"], "label": ["blue", None]}), file)
    assert label_table.read(file, GRAPH, CLASSES) == {1: 1, 2: None}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,label\na,red\nz,red\n", r"line 3, column 'id': 'z' is not the id of a node"),
        ("id,label\na,red\na,blue\n", r"line 3, column 'id': the id 'a' is already used in line 2"),
        ("id,label\na,green\n", r"line 2, column 'label': 'green' is not one of the classes red, blue \(or empty\)"),
        ("id,label\na,red|blue\n", r"line 2, column 'label': 'red\|blue' is not one of the classes"),
        ("id,label\na,red,1\n", r"line 2: 3 cells, but the header names 2 columns"),
        ("id,label\n", r"has a header but no labels"),
        ("id\na\n", r"the column 'label' is missing, the header has 'id'$"),
        ("id,Class\na,red\n", r"the column 'label' is missing, .*; rename 'Class' to 'label'$"),
        ("id,labels\na,red\n", r"the column 'label' is missing, .*; rename 'labels' to 'label'$"),
        ("id,label,weight\na,red,1\n", r"unknown column 'weight'"),
        ("id,label,label\na,red,red\n", r"a second column is named 'label'"),
        ("", r"is empty"),
    ],
)
def test_what_is_wrong_and_where(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(TableError, match=rf"new\.csv.*{message}"):
        label_table.read(table(tmp_path, text), GRAPH, CLASSES)


def test_several_labels_name_the_unknown_one(tmp_path: Path) -> None:
    file = table(tmp_path, "id,labels\n0,red|green\n")
    with pytest.raises(TableError, match="line 2, column 'labels': 'green' is not one of the classes"):
        label_table.read(file, SEVERAL, CLASSES)


def test_only_tables_are_read(tmp_path: Path) -> None:
    (tmp_path / "new.doc").touch()
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(TableError, match=r"tables are files that end in \.csv"):
        label_table.read(tmp_path / "new.doc", GRAPH, CLASSES)
    with pytest.raises(TableError, match="is a folder"):
        label_table.read(tmp_path / "folder.csv", GRAPH, CLASSES)
    with pytest.raises(TableError, match="cannot be read: No such file"):
        label_table.read(tmp_path / "none.csv", GRAPH, CLASSES)
