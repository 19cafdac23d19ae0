"""Edges that carry columns: what they say of a node, and nodes that only edges name."""

import numpy as np
import pyarrow as pa
import pytest
import torch

from lignn import Graph
from lignn.errors import DataWarning, InputError, TableError
from lignn.graph import archive

NODES = pa.table({"id": ["a", "b", "c"], "label": ["x", "y", None]})
PAYMENTS = pa.table(
    {
        "from": ["a", "a", "b", "z", "a"],
        "to": ["b", "z", "a", "c", "b"],
        "amount": [1.0, 2.0, 3.0, None, 5.0],
        "day": [3, 1, 1, 2, 2],
        "kind": ["card", "cash", "card", "card", None],
        "receipt": [f"r{i}" for i in range(5)],
    }
)


def graph(nodes=NODES, payments=PAYMENTS, **options):
    return Graph.from_tables(nodes, payments, **options)


def columns(one):
    return one.columns.to_pydict()


def test_count_sum_mean_last_and_shares_by_direction():
    found = columns(graph())
    assert found == {
        "edges out": [3, 1, 0, 1],
        "amount out: sum": [8, 3, 0, 0],
        "amount out: mean": [8 / 3, 3, None, None],
        "amount out: last": [1, 3, None, None],  # of a: on day 3, though it is the first row
        "day out: mean": [2, 1, None, 2],
        "day out: last": [3, 1, None, 2],
        "kind out: share of card": [1 / 2, 1, None, 1],
        "kind out: share of cash": [1 / 2, 0, None, 0],
        "edges in": [1, 2, 1, 1],
        "amount in: sum": [3, 6, 0, 2],
        "amount in: mean": [3, 3, None, 2],
        "amount in: last": [3, 1, None, 2],
        "day in: mean": [1, 2.5, 2, 1],
        "day in: last": [1, 3, 2, 1],
        "kind in: share of card": [1, 1, 1, 0],
        "kind in: share of cash": [0, 0, 0, 1],
    }


def test_without_times_the_last_row_is_the_last():
    found = columns(graph(payments=PAYMENTS.drop_columns(["day"])))
    assert found["amount out: last"] == [5, 3, None, None]
    assert columns(graph(order="amount"))["day out: last"] == [2, 1, None, 2]
    with pytest.raises(InputError, match="--order dya: edges has no such column; did you mean 'day'"):
        graph(order="dya")


def test_edges_go_both_ways_as_types_of_their_own():
    found = graph()
    assert found.edge_types == ("forth", "back")
    forth, back = found.of_type(0).edge_index, found.of_type(1).edge_index
    assert forth.tolist() == [[0, 0, 1, 3, 0], [1, 3, 0, 2, 1]]
    assert back.equal(forth.flip(0))
    typed = graph(payments=PAYMENTS.rename_columns({"kind": "edge_type"}).drop_columns(["receipt"]).slice(0, 4))
    assert typed.edge_types == ("card", "cash", "card (back)", "cash (back)")
    assert typed.edge_type.tolist() == [0, 1, 0, 0, 2, 3, 2, 2]
    assert "edge_type out: share of card" in typed.columns.column_names


def test_a_weight_is_a_column_too():
    found = graph(columns={"weight": "day"})
    assert found.edge_weight.tolist() == [3, 1, 1, 2, 2] * 2
    assert columns(found)["day out: last"] == [3, 1, None, 2]


def test_many_types_are_a_column_unless_they_are_asked_for():
    kinds = [f"t{i % 30}" for i in range(300)]
    bare = pa.table({"source": ["a", "b"] * 150, "target": ["b", "c"] * 150, "type": kinds})
    payments = bare.append_column("n", [range(300)])
    found = graph(payments=payments)
    assert found.edge_types == ("forth", "back")
    assert found.columns["type out: share of t0"].to_pylist() == [10 / 150, 0, None]
    assert len(graph(payments=payments, columns={"edge_type": "type"}).edge_types) == 60
    assert len(graph(payments=bare).edge_types) == 30


def test_nodes_that_only_edges_name():
    nodes = NODES.append_column("size", [[1.5, 2.5, 3.5]]).append_column("split", [["train", "val", ""]])
    found = graph(nodes)
    assert found.node_ids.tolist() == ["a", "b", "c", "z"]
    assert found.y.tolist() == [0, 1, -1, -1]
    assert found.columns["size"].to_pylist() == [1.5, 2.5, 3.5, None]
    assert found.splits[0].train.tolist() == [True, False, False, False]
    assert "nodes that only edges name: 1, for example 'z'; they have no label" in str(found.reading)
    known, ends = nodes.set_column(0, "id", [[7, 8, 9]]), ([7, 8, 1, 9, 7], [8, 7, 7, 8, 2])
    numbered = graph(known, PAYMENTS.set_column(0, "from", [ends[0]]).set_column(1, "to", [ends[1]]))
    assert numbered.node_ids.tolist() == ["7", "8", "9", "1", "2"]


def test_edges_that_name_no_row_are_refused():
    with pytest.raises(TableError, match=r"'q'.*is not the id of a node"):
        graph(payments=PAYMENTS.set_column(0, "from", [["q"] * 5]).set_column(1, "to", [["p"] * 5]))
    for ends in (["a", "", "b", "z", "a"], ["a", "", "b", "c", "a"]):
        with pytest.raises(TableError, match="row 2, column 'from': the id is empty"):
            graph(payments=PAYMENTS.set_column(0, "from", [ends]).set_column(1, "to", [["a"] * 5]))
    with pytest.raises(TableError, match="row 2, column 'from': the id is empty"):
        graph(payments=PAYMENTS.set_column(0, "from", [["a", "", "b", "z", "a"]]))
    with pytest.raises(TableError, match="'z' is not the id of a node"):
        graph(payments=PAYMENTS.select(["from", "to"]), strict=True)
    assert graph(payments=PAYMENTS.select(["from", "to"])).num_nodes == 4


def test_another_column_that_has_all_ends_is_the_id():
    nodes = pa.table({"id": ["a", "2", "3", "4"], "account": ["a", "b", "c", "z"], "label": ["x", "y", "x", "y"]})
    found = graph(nodes)
    assert found.node_ids.tolist() == ["a", "b", "c", "z"]


def test_labels_have_no_part():
    flipped = NODES.set_column(1, "label", [["y", "x", "x"]])
    one, two = graph(), graph(flipped)
    assert not one.y.equal(two.y)
    assert one.columns.equals(two.columns)
    assert one.edge_index.equal(two.edge_index)


def test_another_graph_has_the_same_columns():
    known = graph()
    other = PAYMENTS.slice(0, 2).set_column(4, "kind", [["cash", "gift"]])
    found = columns(graph(payments=other, like=known.reading))
    assert list(found) == known.columns.column_names
    assert found["kind out: share of cash"] == [1 / 2, None, None, None]
    assert found["kind out: share of card"] == [0, None, None, None]
    with pytest.warns(DataWarning, match="edges: no column 'amount', which the model was trained with"):
        found = columns(graph(payments=other.drop_columns(["amount"]), like=known.reading))
    assert found["amount out: sum"] == [0, 0, 0, 0]
    with pytest.warns(DataWarning) as told:
        bare = columns(graph(payments=other.select(["from", "to"]), like=known.reading))
    assert [str(each.message).split("'")[1] for each in told] == ["amount", "day", "kind"]
    assert bare["edges out"] == [2, 0, 0, 0]
    bare = Graph.from_tables(NODES, PAYMENTS.select(["from", "to"]).slice(4, 1))
    assert Graph.from_tables(NODES, PAYMENTS.slice(4, 1), like=bare.reading).edge_table is None


def test_the_archive_keeps_the_columns_and_the_rule(tmp_path):
    archive.write(graph(), tmp_path / "g.npz")
    again = Graph.read(tmp_path / "g.npz")
    assert again.columns.equals(graph().columns)
    assert again.fingerprint() == graph().fingerprint()
    assert again.fingerprint() != graph(payments=PAYMENTS.set_column(2, "amount", [[0.0] * 5])).fingerprint()


def test_a_folder_keeps_what_edges_say_of_nodes(tmp_path):
    graph().write(tmp_path / "g")
    assert Graph.read(tmp_path / "g").columns.equals(graph().columns)


def test_numbers_as_they_are_leave_the_edges_bare():
    found = graph(NODES.append_column("size", [[1, 2, 3]]), PAYMENTS.slice(4, 1), features="raw")
    assert found.edge_table is None
    assert found.columns is None
    assert torch.equal(found.x, torch.tensor([[1.0], [2.0], [3.0]]))


def test_random_payments_against_sums_by_hand():
    rng = np.random.default_rng(5)
    m, n = 400, 20
    source, target = rng.integers(0, n, (2, m))
    amount, time, kind = rng.normal(size=m), rng.permutation(m), rng.integers(0, 3, m)
    edges = {"source": source, "target": target}
    payments = pa.table(edges | {"amount": amount, "time": time, "kind": [f"k{i}" for i in kind]})
    found = columns(graph(pa.table({"id": range(n), "label": [0, 1] * (n // 2)}), payments))
    for direction, end in (("out", source), ("in", target)):
        for node in range(n):
            mine = np.flatnonzero(end == node)
            assert found[f"edges {direction}"][node] == len(mine)
            assert found[f"amount {direction}: sum"][node] == pytest.approx(amount[mine].sum())
            assert found[f"amount {direction}: mean"][node] == pytest.approx(amount[mine].mean())
            assert found[f"amount {direction}: last"][node] == amount[mine[time[mine].argmax()]]
            assert found[f"time {direction}: last"][node] == time[mine].max()
            for k in range(3):
                assert found[f"kind {direction}: share of k{k}"][node] == pytest.approx((kind[mine] == k).mean())
