"""What columns are said to hold: `--column category=NAME`, and `number`, `date` and `text`."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lignn
from lignn import Graph
from lignn.errors import ConfigError, InputError
from lignn.features import Preparation
from tests.cli.commands import outcome
from tests.graph.folders import problem, put

NODES = "id,label,dorm,note,day\n" + "".join(
    f"n{i},{'xy'[i % 2]},0{i % 4},{'tea' if i % 3 else 'cake'},202401{i + 10}\n" for i in range(12)
)
EDGES = "source,target\n" + "".join(f"n{i},n{i + 1}\n" for i in range(11))
SAID = {"category": "dorm", "text": ["note"]}


def features_of(graph):
    return {column.name: column.kind for column in Preparation.fit(graph.table).columns}


def test_columns_hold_what_they_are_said_to_hold(folder):
    put(folder, NODES, EDGES)
    graph = Graph.read(folder, columns=SAID)
    assert graph.table.column("dorm").cast("string").to_pylist() == [f"0{i % 4}" for i in range(12)]
    assert features_of(graph) == {"dorm": "category", "note": "text", "day": "number"}
    assert str(graph.reading.nodes) == ("nodes.csv: id = id, label = label, category = dorm, text = note, 3 features")
    assert features_of(Graph.read(folder)) != features_of(graph)


@pytest.mark.parametrize("write", [pa.table, lambda columns: pa.table(columns).to_pandas()])
def test_tables_in_memory(write):
    rows = {"code": [3, 1, 3, 1], "size": ["1", "2.5", "", "4"], "day": ["2024-01-31", None, "", "2024-02-01"]}
    graph = Graph.from_table(write(rows), columns={"category": "code", "number": "size", "date": "day"})
    assert features_of(graph) == {"code": "category", "size": "number", "day": "date"}
    assert graph.table.column("size").to_pylist() == [1, 2.5, None, 4]
    assert graph.table.column("code").cast("string").to_pylist() == ["3", "1", "3", "1"]


def test_kinds_that_cannot_be(folder):
    put(folder, NODES, EDGES)
    for columns, message in (
        ({"category": "dorn"}, "there is no column 'dorn' (--column category=dorn); did you mean 'dorm'?"),
        ({"category": "label"}, "column 'label': is no feature, so it has no kind; leave out --column category=label"),
        ({"category": "dorm", "text": "dorm"}, "column 'dorm': is given two kinds, category and text"),
    ):
        assert message in problem(folder, columns=columns)
    assert "'tea'" in problem(folder, columns={"number": "note"})
    with pytest.raises(ConfigError, match=r"no role or kind 'categry'; did you mean 'category'\?"):
        Graph.read(folder, columns={"categry": "dorm"})
    with pytest.raises(ConfigError, match="one column has the role label, 2 are given"):
        Graph.read(folder, columns={"label": ["label", "note"]})
    with pytest.raises(InputError, match="features='raw' takes all columns as numbers; leave out --column category="):
        Graph.read(folder, columns=SAID, features="raw")


def test_a_model_keeps_them(folder):
    """New tables and new rows are read as those of the fit, also where their cells alone would say otherwise."""
    put(folder, NODES, EDGES)
    model = folder / "model"
    given = ("--column", "category=dorm", "--column", "text=note")
    result = outcome("fit", str(folder), "-o", str(model), *given, "--max-epochs", "2", "--json")
    assert result.code == 0, result.err
    assert json.loads(result.out)["reading"]["nodes"]["kinds"] == [["dorm", "category"], ["note", "text"]]
    other = folder / "other"
    other.mkdir()
    put(other, NODES.replace(",0", ",1"), EDGES)  # codes 10 to 13
    assert outcome("predict", str(model), "--graph", str(other)).code == 0
    loaded = lignn.load(model)
    assert dict(loaded._model.inputs.reading.nodes.kinds) == {"dorm": "category", "note": "text"}
    row = {"dorm": 3, "note": "cake", "day": 20240131}
    loaded.add_nodes(features=[row], edges=[["n0"], ["new"]], ids=["new"])
    assert loaded.graph_.table.column("dorm").cast("string")[-1].as_py() == "3"


def test_an_index_out_of_a_dictionary_of_parquet(folder):
    """Each byte of a column of categories in turn; before, some ended in an error of Arrow's."""
    put(folder)
    (folder / "nodes.csv").unlink()
    labels = pa.array(["red", "blue", None]).dictionary_encode()
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": ["a", "b", "c"], "label": labels}), sink, compression="none")
    whole = sink.getvalue().to_pybytes()
    part = pq.ParquetFile(pa.py_buffer(whole)).metadata.row_group(0).column(1)
    messages = set()
    for at in range(part.data_page_offset, part.dictionary_page_offset + part.total_compressed_size):
        (folder / "nodes.parquet").write_bytes(whole[:at] + b"\3" + whole[at + 1 :])
        try:
            Graph.read(folder)
        except InputError as error:
            messages.add(str(error))
    assert any("is not a whole Parquet file (Index" in message for message in messages)
