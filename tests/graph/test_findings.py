"""All faults of both tables in one answer; what is certain is mended, and rows may be left out."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lignn import Graph
from lignn.errors import TableError
from tests.cli.commands import outcome
from tests.graph.folders import put

NODES = """id,label,age
a,x,1
b,y,2
b,y,2
c,,3
a,y,1
d,x
,y,5
"""
EDGES = """source,target,weight
a,b,1
b,,2
c,z,
NA,a,3
z,d,much
"""
FAULTS = [
    "nodes.csv, line 6, column 'id': the id 'a' is already used in line 2",
    "nodes.csv, line 7: 2 cells, but the header names 3 columns",
    "nodes.csv, line 8, column 'id': the id is empty",
    "edges.csv, line 3, column 'target': the id is empty",
    "edges.csv, column 'weight' (numbers): is empty, a number is needed (line 4), 'much' is not a number (line 6)",
    "edges.csv, line 5, column 'source': 'NA' means unknown, it cannot be an id",
]


def told(folder, **options):
    with pytest.raises(TableError) as caught:
        Graph.read(folder, **options)
    return str(caught.value).replace(f"{folder}/", "").splitlines()


def test_all_faults_at_once(folder):
    put(folder, NODES, EDGES)
    *faults, advice = told(folder)
    assert sorted(faults) == sorted(
        [
            "nodes.csv, column 'id' (ids): the id 'a' is already used in line 2 (line 6), the id is empty (line 8)",
            *[line for line in FAULTS if "column 'id'" not in line],
        ]
    )
    assert advice == "correct them, or leave out 7 rows by --skip-bad"


@pytest.mark.parametrize("parquet", [False, True])
def test_bad_rows_are_left_out_and_counted(folder, parquet):
    put(folder, NODES, EDGES)
    if parquet:
        rows = [line.split(",") for line in NODES.splitlines() if line != "d,x"]
        columns = dict(zip(rows[0], map(list, zip(*rows[1:], strict=True)), strict=True))
        pq.write_table(pa.table(columns), folder / "nodes.parquet")
        (folder / "nodes.csv").unlink()
    graph = Graph.read(folder, skip_bad=True)
    assert graph.node_ids.tolist() == ["a", "b", "c"]
    assert graph.y.tolist() == [0, 1, -1]
    assert graph.edge_index.tolist() == [[0], [1]]
    notes = graph.reading.notes
    assert notes[0] == "1 row repeats another one in every cell and counts once"
    assert notes[1].startswith(f"left out {6 if parquet else 7} rows: ")


def test_what_is_certain_is_mended_and_said(folder):
    put(folder, "id,label\na,x\nb,y\na,x\n", "source,target\na,b\nb,new\nother,a\n")
    graph = Graph.read(folder)
    assert graph.node_ids.tolist() == ["a", "b", "other", "new"]
    assert graph.y.tolist() == [0, 1, -1, -1]
    assert graph.reading.notes == (
        "nodes that only edges name: 2, for example 'other'; they have no label and no columns of their own",
        "1 row repeats another one in every cell and counts once",
    )
    assert told(folder, strict=True)[:2] == [
        "nodes.csv, line 4, column 'id': the id 'a' is already used in line 2",
        "edges.csv, line 3, column 'target': 'new' is not the id of a node; add it to the nodes, or remove the edge",
    ]


def test_strict_mends_no_numbers(folder):
    put(folder, 'id,label,pay\na,x,"1,151.37"\nb,y,2\n', "source,target\na,b\n")
    assert Graph.read(folder).x.tolist() == [[pytest.approx(1151.37)], [2]]
    assert told(folder, strict=True)[0].endswith(
        "column 'pay' of nodes.csv is read as --column number:.=pay; --strict mends nothing, so say what it is, or "
        "correct it"
    )
    assert Graph.read(folder, strict=True, columns={"number:.": "pay"}).num_nodes == 2


def test_edges_that_name_no_node_at_all_are_refused(folder):
    put(folder, edges="source,target\np,q\n")
    assert "'p' is not the id of a node; add it to the nodes, or remove the edge" in told(folder)[0]


def test_options_of_commands(folder):
    put(folder, NODES, EDGES)
    model = folder / "model"
    result = outcome("fit", str(folder), "-o", str(model), "--max-epochs", "1", "--json")
    assert (result.code, result.out) == (2, "")
    assert result.err.count("\n") == 6
    fit = ("fit", str(folder), "-o", str(model), "--max-epochs", "1", "--skip-bad", "--json")
    result = outcome(*fit)
    assert result.code == 0, result.err
    assert any("left out 7 rows" in note for note in json.loads(result.out)["reading"]["nodes"]["notes"])
    assert outcome("predict", str(model), "--graph", str(folder)).code == 2
    assert outcome("predict", str(model), "--graph", str(folder), "--skip-bad").code == 0
    assert "--skip-bad: the tables of the model's own graph" in outcome("predict", str(model), "--skip-bad").err
    assert outcome("inspect", str(folder), "--skip-bad").code == 0
    assert outcome("inspect", str(folder), "--skip-bad", "--strict").code == 0
