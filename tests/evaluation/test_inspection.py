"""What a graph holds, counted by hand on small graphs."""

import re
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import torch

from lignn import Graph, Split
from lignn.classifier.suspects import Suspect, Suspects
from lignn.evaluation import inspection_page
from lignn.evaluation.inspected_columns import InspectedColumn, tables
from lignn.evaluation.inspection import inspect
from lignn.graph import measures
from tests.problems import half_split, random_graph


def seven(**changes):
    """Nodes 0 … 6: two triangles' worth of edges, one of them repeated, a self-loop, and node 6 alone."""
    parts = {
        "edge_index": [[0, 0, 1, 1, 3, 5], [1, 1, 2, 1, 4, 3]],
        "edge_type": [0, 0, 1, 0, 1, 1],
        "edge_types": ("pays", "uses"),
        "y": [0, 1, 1, -1, -1, 1, -1],
        "class_names": ("a", "b"),
        "table": pa.table({"age": [1.0, None, None, None, None, 6.0, 7.0], "key": list("tuvwxyz")}),
        "name": "seven",
    }
    return Graph(**(parts | changes))


def test_numbers_of_a_small_graph():
    found = inspect(seven())
    assert (found.nodes, found.edges, found.directed) == (7, {"pays": 3, "uses": 3}, True)
    assert (found.repeated, found.self_loops) == (1, 1)
    assert found.degrees == measures.Degrees(6 / 7, 1.0, 3, 1)
    assert found.degree_counts == {0: 3, 1: 3, 3: 1}
    assert (found.components, found.largest_component) == (3, 3)  # 0 1 2, 3 4 5, 6
    assert (found.classes, found.known, found.held_back) == ({"a": 1, "b": 3}, 4, 0)
    # Edges between labels: a → b twice, b → b twice (one is the loop). Nodes: of 1, 1 of 3 agree; of 2, 1 of 1.
    assert found.transitions == [[0, 1], [0, 1]]
    assert (found.homophily.edge, found.homophily.node) == (0.5, pytest.approx((1 / 3 + 1) / 2))
    chance = (2 / 8) ** 2 + (6 / 8) ** 2
    assert found.homophily.adjusted == pytest.approx((0.5 - chance) / (1 - chance))
    assert found.evidence == measures.OneWay(1, 1, 7)  # node 6


def test_every_column_has_a_row():
    graph = seven(
        node_ids=[f"n{i}" for i in range(7)],
        edge_weight=[1, 2, 3, 4, 5, 0.5],
        time=[1.6e9, 1.5e9, np.nan, 1.6e9, 1.6e9, 1.6e9, 1.6e9],
        group=[0, 0, 1, -1, 2, 2, 2],
        splits=[Split.from_indices(7, [0, 1], [2], [5])],
    )
    rows = [(c.table, c.name, c.role, c.kind, c.missing, c.distinct, c.range) for c in inspect(graph).columns]
    assert rows == [
        ("nodes", "id", "id", "id", 0, 7, "'n0', 'n1', 'n2'"),
        ("nodes", "label", "label", "category", 3, 2, "'a', 'b'"),
        ("nodes", "split", "split", "category", 3, 3, "2 train, 1 val, 1 test"),
        ("nodes", "time", "time", "number", 1, 2, "1500000000 … 1600000000"),
        ("nodes", "group", "group", "category", 1, 3, ""),
        ("nodes", "age", "feature", "number", 4, 3, "1 … 7"),
        ("nodes", "key", "ignored", "id", 0, 7, "'t', 'u', 'v'"),
        ("edges", "weight", "weight", "number", 0, 6, "0.5 … 5"),
        ("edges", "edge_type", "edge_type", "category", 0, 2, "'pays', 'uses'"),
    ]


def test_features_without_a_table_are_one_row():
    (row,) = inspect(Graph([[0], [1]], x=[[1.0, -2.0], [0.5, 4.0]])).columns
    assert (row.name, row.range, row.treatment) == ("x", "-2 … 4", "2 features, used as they are")


def warned(graph, part):
    (found,) = [text for text in inspect(graph).warnings if part in text]
    return found


def test_each_warning_names_a_remedy():
    chain = torch.stack([torch.arange(99), torch.arange(1, 100)])
    y = torch.full((100,), -1)
    y[80:] = 0
    y[80] = 1
    graph = Graph(chain, y=y, class_names=("no", "yes"))
    assert warned(graph, "one way") == (
        "80 of 100 nodes are reached by no known label, since edges are followed one way; with --undirected, all would "
        "be"
    )
    assert warned(graph, "class 'no' has 95.0%").endswith(
        "--metric such as average_precision or f1_macro, and try --class-weight balanced"
    )
    assert warned(graph, "fewer than 5").startswith("1 of 2 classes have fewer than 5 known labels: 'yes'; label more")
    assert "lignn and lpa do not need them" in warned(graph, "no features")
    assert "20 of 100 nodes" not in "".join(inspect(graph.to_undirected()).warnings)
    lonely = Graph(chain[:, :49], num_nodes=100, y=torch.arange(100) % 2 * (torch.arange(100) < 50) * 2 - 1)
    assert warned(lonely, "have no edges").startswith("50 of 100 nodes")
    assert warned(seven(), "repeat another").startswith("1 edges")
    assert warned(seven(), "2 types").endswith("--backbone rgcn tells them apart")
    assert warned(seven(), "looks like an id").endswith("--column id=key")
    assert warned(seven(), "is missing").startswith("more than half of 'age'")
    assert warned(graph.replace(y=None, class_names=None), "no label is known").endswith("--column label=NAME")
    assert "label a node in each" in warned(graph.replace(edge_index=chain[:, :79]), "have no known label in their")


def test_a_graph_without_faults_has_no_warnings():
    assert inspect(random_graph(n=90)).warnings == ()


def test_test_labels_have_no_part():
    split = half_split(30)
    for multilabel in (False, True):
        graph = random_graph(multilabel=multilabel, directed=True).replace(splits=[split])
        flip = (1 - graph.y) if multilabel else (graph.y + 1) % 3
        found = [
            inspect(graph.replace(y=torch.where(part[:, None] if multilabel else part, flip, graph.y))).plain()
            for part in (torch.zeros_like(split.test), split.test, split.train)
        ]
        assert found[0] == found[1]
        assert found[0] != found[2]
        assert (found[0]["known"], found[0]["held_back"]) == (22, 8)


def test_what_is_not_defined_is_none():
    found = inspect(Graph(torch.zeros(2, 0, dtype=torch.int64), y=[0, 1]))
    assert (found.homophily, found.transitions, found.components) == (None, None, 2)
    one = inspect(Graph([[0], [1]], y=[0, 0, 1]))
    assert (one.homophily.edge, one.homophily.adjusted) == (1, None)
    bare = inspect(Graph([[0], [1]]))
    assert (bare.classes, bare.evidence, bare.homophily) == ({}, None, None)
    only_test = Split.from_indices(3, [], [], [0, 1, 2])
    held = inspect(Graph([[0], [1]], y=[0, 0, 1], splits=[only_test]))
    assert (held.classes, held.known, held.held_back, held.transitions) == ({"0": 0, "1": 0}, 0, 3, None)
    single = inspect(Graph([[0], [1]], y=[0, 0, 1], splits=[Split.from_indices(3, [0, 1], [], [2])]))
    assert (single.classes, single.transitions) == ({"0": 2, "1": 0}, [[1, 0], [0, 0]])
    several = inspect(random_graph(multilabel=True))
    assert several.classes == dict(zip("012", random_graph(multilabel=True).y.long().sum(0).tolist(), strict=True))
    assert several.homophily is None


def test_many_classes_are_not_a_matrix():
    y = torch.arange(3000)
    found = inspect(Graph(torch.stack([y, y.roll(1)]), y=y))
    assert (found.homophily, found.transitions, len(found.classes)) == (None, None, 3000)
    assert warned(Graph(torch.stack([y, y.roll(1)]), y=y), "fewer than 5").startswith(
        "3000 of 3000 classes have fewer than 5 known labels: '0', '1', '2' and 2997 more"
    )
    assert list(inspection_page.largest(found)) == [str(i) for i in range(50)]


def test_tables_of_columns_are_short():
    many = [InspectedColumn("nodes.csv", f"c{i}", "feature", range="x" * 99) for i in range(5)]
    first, second = tables([*many, InspectedColumn("edges.csv", "source", "source")], most=3)
    assert (first.title, len(first.rows)) == ("nodes.csv, 2 more columns; --json has all", 3)
    assert first.rows[0] == ("c0", "feature", "", "", "", "x" * 39 + "…", "ignored")
    assert (second.title, len(second.rows)) == ("edges.csv", 1)


def test_the_page_has_everything_in_one_file(tmp_path):
    graph = seven(class_names=("<a> $x^$", "b" * 60))
    one = Suspect(1, "n1", "b", "a", 0.93, 0.9)
    inspection_page.write(tmp_path / "p.html", inspect(graph), Suspects((one,), 3, 4, 5))
    text = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert not re.findall(r'(?:src|href)="(?!data:|#)', text)
    assert text.count("data:image/svg+xml") == 3
    assert "What is in seven?" in text
    assert "&lt;a&gt; $x^$" in text
    assert "<a> " not in text
    assert "3 of 4 given labels are predicted otherwise without them." in text
    assert ">n1<" in text
    titles = [section.title for section in inspection_page.sections(inspect(graph.replace(y=None, class_names=None)))]
    assert titles == ["Summary", "Columns", "Edges"]


def test_pictures_show_the_numbers():
    found = inspect(seven())
    (bars,) = inspection_page.draw_classes(dict(found.classes)).axes
    assert [bar.get_width() for bar in bars.patches] == [1, 3]
    assert [label.get_text() for label in bars.get_yticklabels()] == ["a", "b"]
    (degrees,) = inspection_page.draw_degrees(found).axes
    assert degrees.collections[0].get_offsets().tolist() == [[0, 3], [1, 3], [3, 1]]
    matrix = inspection_page.draw_transitions(replace(found, transitions=[[0.25, 0.75], [1, 0]])).axes[0]
    assert [text.get_text() for text in matrix.texts] == ["25", "75", "100", "0"]
