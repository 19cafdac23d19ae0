"""Bad tables: each fault is named with its file, line and column."""

import numpy as np
import pyarrow as pa
import pytest

from lignn.graph import arrow_tables
from tests.graph.folders import EDGES, NODES, problem, put, put_parquet

ADVICE = "; add it to the nodes, or remove the edge"
HINT = "; every column without another role is a feature"
OFFSETS, BYTES = np.array([0, 1, 2, 3], np.int32), b"1\xff3"
NOT_TEXT = pa.Array.from_buffers(pa.string(), 3, [None, pa.py_buffer(OFFSETS.tobytes()), pa.py_buffer(BYTES)])


@pytest.mark.parametrize(
    ("nodes", "edges", "message"),
    [
        ("", EDGES, "nodes.csv: is empty; the first line must name the columns"),
        (NODES, "\n\n", "edges.csv: is empty; the first line must name the columns"),
        ("id,label\n", EDGES, "nodes.csv: has a header but no nodes"),
        (
            "key,label\na,1\n",
            EDGES,
            "nodes.csv: the column 'id' is missing, the header has 'key', 'label'; give --column id=NAME",
        ),
        (
            "id,label,Split\na,0,1\nb,1,1\n",
            EDGES,
            "nodes.csv, column 'Split' (parts of a split): '1' is not one of train, val, test (or empty) (line 2), "
            "'1' is not one of train, val, test (or empty) (line 3)",
        ),
        (
            "id,label,set\na,red,train\nb,blue,1\nc,,1\n",
            EDGES,
            "nodes.csv, line 2, column 'set': 'train' is not a number; if it holds the splits, rename it to 'split'",
        ),
        (
            NODES.replace("\n", "\r"),
            EDGES,
            "nodes.csv, line 1: lines end in CR alone; save the file with LF or CRLF line ends",
        ),
        (
            NODES.replace("age", "a" * 131_073),
            EDGES,
            "nodes.csv, line 1: a name has over 131072 characters; shorten it, or close an open quote",
        ),
        (NODES.replace("age", "age\0"), EDGES, "nodes.csv, column 4: its name ends in a NUL character; rename it"),
        (
            NODES + "d\0,,,1\n",
            EDGES,
            r"nodes.csv, line 5, column 'id': 'd\x00' ends in a NUL character; remove it",
        ),
        (
            NODES + "d,cat\0,,1\n",
            EDGES,
            r"nodes.csv, line 5, column 'label': 'cat\x00' ends in a NUL character; remove it",
        ),
        (
            "id,labels\na,red\nb,red|NA \nc,NA\n",
            EDGES,
            "nodes.csv, line 3, column 'labels': 'NA ' means unknown, it cannot be one of several labels; remove it",
        ),
        (
            "id,label\na,-1\nb,1\nc,-1\n",
            EDGES,
            "nodes.csv, column 'label': the labels are only -1 and 1, so that -1 may be a class or mean unknown; give "
            "missing=['-1'] (--missing=-1) if it means unknown, missing=[] (--missing=) if it is a class",
        ),
        (
            "id\ne\u0301\n\u00a0\u00e9\u200b\n",
            EDGES,
            "nodes.csv, line 3, column 'id': the id 'é' is already used in line 2",
        ),
        (
            "id,labels\na,|\nb,|\nc,\n",
            EDGES,
            "nodes.csv, column 'labels': names no class, every label given is '|' (none of the classes); "
            "name the classes in graph.json, or leave the column out",
        ),
        (
            "id,label,label\na,1,1\n",
            EDGES,
            "nodes.csv, column 3: a second column is named 'label'; rename or remove one",
        ),
        (
            "id,Lable\na,red\nb,1\nc,1\n",
            EDGES,
            "nodes.csv, line 2, column 'Lable': 'red' is not a number; if it holds the labels, rename it to 'label'",
        ),
        (
            "id,label,labels\na,1,1\n",
            EDGES,
            "nodes.csv: 'label' and 'labels' may hold the label; say which: --column label=label",
        ),
        (
            "id,y,Class\na,1,1\n",
            EDGES,
            "nodes.csv: 'y' and 'Class' may hold the label; say which: --column label=y",
        ),
        (b"\xff\xfei\x00d\x00\n", EDGES, "nodes.csv, line 1: is not UTF-8 text; save the file as UTF-8"),
        (NODES.encode("utf-16-le"), EDGES, "nodes.csv, line 1: looks like UTF-16 text; save the file as UTF-8"),
        (NODES, EDGES.encode("utf-16-be"), "edges.csv, line 1: looks like UTF-16 text; save the file as UTF-8"),
        (NODES + "a,,,1\n", EDGES, "nodes.csv, line 5, column 'id': the id 'a' is already used in line 2"),
        (NODES + ",,,1\n", EDGES, "nodes.csv, line 5, column 'id': the id is empty"),
        (
            NODES + "d,,trian,1\n",
            EDGES,
            "nodes.csv, line 5, column 'split': 'trian' is not one of train, val, test (or empty)",
        ),
        (
            NODES + "d,,,old\n",
            EDGES,
            "nodes.csv, line 5, column 'age': 'old' is not a number" + HINT,
        ),
        (
            NODES + "d,,,\n",
            EDGES,
            "nodes.csv, line 5, column 'age': is empty, a number is needed" + HINT,
        ),
        (
            NODES + "d,,,nan\n",
            EDGES,
            "nodes.csv, line 5, column 'age': 'nan' is not finite" + HINT,
        ),
        (
            NODES + "d,,,1e39\n",
            EDGES,
            "nodes.csv, line 5, column 'age': '1e39' is too large, the largest number is 3.4e+38" + HINT,
        ),
        (NODES + "d,,1\n", EDGES, "nodes.csv, line 5: 3 cells, but the header names 4 columns"),
        (NODES + "d,,,1,2\n", EDGES, "nodes.csv, line 5: 5 cells, but the header names 4 columns"),
        (
            NODES.encode() + b"d,caf\xe9,,1\n",
            EDGES,
            "nodes.csv, line 5, column 'label': is not UTF-8 text; save the file as UTF-8",
        ),
        (
            NODES,
            "source,two\na,9\n",
            "edges.csv: the column 'target' is missing, the header has 'source', 'two'; give --column target=NAME",
        ),
        (
            NODES,
            "u,v,src,dst\na,b,a,b\n",
            "edges.csv: several columns may hold the ends of edges; say which, for example "
            "--column source=src --column target=dst",
        ),
        (
            NODES,
            EDGES + "a,z\n",
            "edges.csv, line 4, column 'target': 'z' is not the id of a node" + ADVICE,
        ),
        (
            NODES,
            EDGES + ",b\n",
            "edges.csv, line 4, column 'source': '' is not the id of a node" + ADVICE,
        ),
        (
            NODES,
            "source,target,weight\na,b,1\na,b,-0.5\n",
            "edges.csv, line 3, column 'weight': '-0.5' is negative",
        ),
        (NODES, "source,target,weight\na,b,inf\n", "edges.csv, line 2, column 'weight': 'inf' is not finite"),
        (
            NODES,
            "source,target,weight\na,b,1e18\na,b,3e38\n",
            "edges.csv, line 3, column 'weight': '3e38' is too large, the largest number is 1e+18",
        ),
        (NODES, "source,target,weight\na,b,much\n", "edges.csv, line 2, column 'weight': 'much' is not a number"),
    ],
)
def test_bad_tables(folder, nodes, edges, message):
    put(folder, nodes, edges)
    told = problem(folder, features="raw").splitlines()
    lines = message.splitlines()
    assert told[: len(lines)] == lines
    assert all("is not the id of a node" in line for line in told[len(lines) :])  # in the edges, of other nodes


def test_lines_are_counted_as_an_editor_does(folder):
    put(folder, '\ufeffid,"f\ng",age\r\n\r\n"a\r\nb",1,1\r\n"c\n\nd",2,?\r\n\r\ne,2,!\r\n')
    assert problem(folder, features="raw").splitlines()[0] == (
        f"nodes.csv, column 'age' (numbers): '?' is not a number (line 6), '!' is not a number (line 10){HINT}"
    )


def test_faults_are_told_by_column(folder):
    """The column, its kind, the first three places and the number of the others."""
    put(folder, edges="source,target\n" + "a,b\nx,y\n" * 20)
    known = "is not the id of a node"
    assert problem(folder, strict=True).splitlines() == [
        f"edges.csv, column '{end}' (ids): '{x}' {known} (line 3), '{x}' {known} (line 5), '{x}' {known} (line 7), "
        f"and 17 more{ADVICE}"
        for end, x in (("source", "x"), ("target", "y"))
    ]
    put(folder, NODES + "d,cat\n" * 4)
    cells = "2 cells, but the header names 4 columns"
    assert problem(folder) == f"nodes.csv: {cells} (line 5), {cells} (line 6), {cells} (line 7), and 1 more"


def test_ids_that_look_alike_are_told_apart_where_texts_are_exact(folder):
    put(folder, nodes="id,label\n e\u0301,cat\nb,dog\n", edges="source,target\n\u00e9,b\n")
    (folder / "graph.json").write_text('{"format": 1}')
    assert problem(folder) == (
        r"edges.csv, line 2, column 'source': 'é' is not the id of a node, but ' e\u0301' is; "
        "write both with the same characters"
    )


@pytest.mark.parametrize(
    ("column", "cells", "message"),
    [
        (
            "label",
            [["red"], ["red", "blue"], None],
            "column 'label': texts or whole numbers are needed, it holds list<element: string>; "
            "join several labels by | in a column 'labels'",
        ),
        ("id", [{"a": 1}] * 3, "column 'id': texts or whole numbers are needed, it holds struct<a: int64>"),
        (
            "label",
            [1.0, 0.5, None],
            "row 2, column 'label': texts or whole numbers are needed, got 0.5; store the column as texts",
        ),
        (
            "id",
            [1.0, 2.0, 1e30],
            "row 3, column 'id': texts or whole numbers are needed, got 1e+30; store the column as texts",
        ),
        ("label", [b"red", b"caf\xe9", None], "row 2, column 'label': is not UTF-8 text; save the file as UTF-8"),
        ("x", NOT_TEXT, "row 2, column 'x': is not UTF-8 text; save the file as UTF-8"),
        ("label", NOT_TEXT, "row 2, column 'label': is not UTF-8 text; save the file as UTF-8"),
    ],
)
def test_parquet_of_other_types(folder, monkeypatch, column, cells, message):
    monkeypatch.setattr(arrow_tables, "_ROWS", 1)
    put_parquet(folder, {"id": ["a", "b", "c"], "label": ["red", "blue", None], "x": [1, 2, 3]} | {column: cells})
    assert problem(folder) == f"nodes.parquet, {message}"


def test_bad_parquet(folder):
    put_parquet(folder, {"id": ["a", None, "a"], "f": [1.0, None, np.inf]})
    assert [line.split(";")[0] for line in problem(folder, features="raw").splitlines()][:2] == [
        "nodes.parquet, column 'id' (ids): the id is empty (row 2), the id 'a' is already used in row 1 (row 3)",
        "nodes.parquet, column 'f' (numbers): is empty, a number is needed (row 2), 'inf' is not finite (row 3)",
    ]
    (folder / "nodes.parquet").write_bytes(b"PAR1 no")
    assert problem(folder).startswith("nodes.parquet: is not a whole Parquet file")
