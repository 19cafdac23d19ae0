"""Graphs of one table, and rows that join them."""

import numpy as np
import pyarrow as pa
import pytest

from lignn import Graph
from lignn.errors import DataWarning, InputError, TableError
from lignn.graph import archive, nearest

N = 40


def payments(count=N):
    """Payments of a few cards in some shops; the last shop is visited once."""
    rng = np.random.default_rng(1)
    return pa.table(
        {
            "label": ["yes" if i % 3 else "no" for i in range(count)],
            "card": [f"c{i}" for i in rng.integers(0, 6, count)],
            "shop": [f"s{i}" for i in rng.integers(0, 4, count - 1)] + ["alone"],
            "amount": rng.normal(size=count).round(3),
            "day": rng.integers(0, 9, count),
        }
    )


def linked(**options):
    return Graph.from_table(payments(), **({"links": ["card", "shop"], "order": "day"} | options))


def test_rows_come_first_and_values_after_them():
    graph = linked()
    assert graph.is_row.tolist() == [True] * N + [False] * 10
    assert graph.edge_types == ("card", "shop", "card by day", "shop by day")
    assert graph.is_undirected
    assert graph.node_ids[:2].tolist() == ["0", "1"]
    assert set(graph.node_ids[N:].tolist()) == {*(f"card=c{i}" for i in range(6)), *(f"shop=s{i}" for i in range(4))}
    assert not graph.labelled[N:].any()
    assert graph.table.column("amount")[N:].null_count == 10


def test_linked_columns_are_categories_and_tell_how_many_rows_share_their_values():
    graph = linked()
    cards = payments()["card"].to_pylist()
    assert graph.columns.column("card (rows)").to_pylist() == [cards.count(card) for card in cards] + [None] * 10
    assert pa.types.is_dictionary(graph.columns.schema.field("card").type)
    assert graph.table.column_names == ["card", "shop", "amount", "day"]


def test_labels_have_no_part_in_the_edges():
    other = payments().set_column(0, "label", pa.array(["yes"] * 20 + [None] * 10 + ["no"] * 10))
    one = linked(links=["card", "shop", "nearest:3"])
    two = Graph.from_table(other, links=["card", "shop", "nearest:3"], order="day")
    assert not one.y.equal(two.y)
    assert one.edge_index.equal(two.edge_index)
    assert one.edge_type.equal(two.edge_type)
    assert one.columns.equals(two.columns)


def test_without_rules_the_nearest_rows_are_joined():
    graph = Graph.from_table(payments())
    assert graph.value_of is None
    assert graph.node_ids is None
    assert (graph.edge_index[0].bincount(minlength=N) >= 10).all()
    assert "nearest: each row is joined to its 10 nearest by 4 columns" in str(graph.reading)


def test_a_large_table_is_not_joined_by_itself(monkeypatch):
    monkeypatch.setattr(nearest, "LARGEST", 30)
    graph = Graph.from_table(payments())
    assert graph.num_edges == 0
    assert "table has 40 rows, too many to search, so no row is joined to another" in str(graph.reading)


def test_a_column_of_ids_names_the_rows():
    ids = pa.array([f"p{i}" for i in range(N)])
    graph = Graph.from_table(payments().add_column(0, "id", ids), links=["card"])
    assert graph.node_ids[[0, N]].tolist() == ["p0", f"card={payments()['card'][0]}"]
    same = Graph.from_table(payments().add_column(0, "id", pa.array(["p"] * N)), links=["card"])
    assert same.node_ids[0] == "0"
    with pytest.raises(InputError, match="a row has the id 'card=c1', which is the name of a value that rows share"):
        Graph.from_table(payments().add_column(0, "id", pa.array(["card=c1", *ids.to_pylist()[1:]])), links=["card"])


def test_wrong_rules_are_told_in_one_sentence():
    for options, words in (
        ({"links": ["crad"]}, "--link crad: table has no such column; did you mean 'card'?"),
        ({"order": "dya"}, "--order dya: table has no such column"),
        ({"links": ["label"]}, "--link label: this column of table is the label; name another one"),
    ):
        with pytest.raises(InputError) as caught:
            linked(**options)
        assert words in str(caught.value)
        assert "\n" not in str(caught.value)
    nodes, edges = payments().add_column(0, "id", pa.array(range(N))), pa.table({"source": [0], "target": [1]})
    with pytest.raises(InputError, match="--link joins the rows of one table"):
        Graph.from_tables(nodes, edges, links=["card"])


def test_the_archive_keeps_which_nodes_are_values(tmp_path):
    graph = linked()
    archive.write(graph, tmp_path / "g.npz")
    assert np.array_equal(Graph.read(tmp_path / "g.npz").value_of, graph.value_of)


def test_a_column_that_the_models_rules_name_and_that_is_not_there_joins_nothing():
    graph = linked()
    with pytest.warns(DataWarning, match="table: no column 'shop', by which the model joins rows; it joins none here"):
        other = Graph.from_table(payments().drop_columns(["shop"]), like=graph.reading)
    assert other.edge_types == graph.edge_types
    counts = other.edge_type.bincount(minlength=4).tolist()
    assert (counts[1], counts[3]) == (0, 0)
    assert counts[0] == graph.edge_type.bincount()[0]
    with pytest.warns(DataWarning, match="no column 'day'"):
        other = Graph.from_table(payments().drop_columns(["day"]), like=graph.reading)
    assert other.edge_type.bincount(minlength=4).tolist()[2:] == [0, 0]


def test_another_table_is_joined_by_the_same_rules():
    graph = linked()
    other = Graph.from_table(payments(30), like=graph.reading)
    assert other.reading.links == graph.reading.links
    assert other.edge_types == graph.edge_types
    two = Graph.from_tables(pa.table({"id": [0, 1]}), pa.table({"source": [0], "target": [1]}))
    with pytest.raises(TableError, match="is one table; the model was trained on a table of the edges too"):
        Graph.from_table(payments(), like=two.reading)
