"""`graph.json`, the metadata of tables."""

import json

import pytest

from lignn import Graph
from tests.graph.folders import problem


@pytest.mark.parametrize(
    ("notes", "message"),
    [
        ("{", "graph.json: is not JSON"),
        ("[1]", "graph.json: must be a JSON object"),
        ('{"format": 2}', "graph.json: was written by a newer lignn"),
        ('{"clases": []}', "graph.json: unknown entry 'clases'; known are format, classes"),
        ('{"classes": ["a", "a"]}', "graph.json: 'classes' must be null or a list of different texts"),
        (r'{"classes": ["\ud800"]}', "graph.json: 'classes' must be null or a list of different texts"),
        ('{"node_ids": 1}', "graph.json: 'node_ids' must be true or false"),
        ('{"weight_type": "int"}', 'graph.json: \'weight_type\' must be "float32" or "float64"'),
        ('{"classes": ["dog"]}', "nodes.csv, line 2, column 'label': 'cat' is not among the classes in graph.json"),
    ],
)
def test_bad_notes(folder, notes, message):
    (folder / "graph.json").write_text(notes)
    assert problem(folder).startswith(message)


def test_notes_fix_the_order_of_classes(folder):
    (folder / "graph.json").write_text(json.dumps({"classes": ["dog", "bird", "cat"]}))
    graph = Graph.read(folder)
    assert graph.class_names == ("dog", "bird", "cat")
    assert graph.y.tolist() == [2, 0, -1]


def test_a_byte_order_mark_is_no_fault(folder):
    (folder / "graph.json").write_text('{"classes": ["dog", "cat"]}', encoding="utf-8-sig")
    assert Graph.read(folder).class_names == ("dog", "cat")
