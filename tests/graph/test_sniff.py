"""What separates the cells of text files, and their bytes as they are read."""

import pytest

from lignn import Graph
from lignn.graph import files, sniff
from tests.graph.folders import EDGES, NODES, put


@pytest.mark.parametrize(
    ("sample", "delimiter"),
    [
        ("", ","),
        ("id\n1\n2\n", ","),
        ("id,label\n1,a\n", ","),
        ("id;label\n1;a\n", ";"),
        ("id\tlabel\n1\ta\n", "\t"),
        ("id\tname, first, last\n1\ta\n2\tb\n", "\t"),
        ('id;"a;b";c\n1;2;3\n', ";"),
        ("id;x\n1;0,5\n2;1\n", ";"),
        ("id,x\n1,0\n2,0,5\n", ","),
    ],
)
def test_delimiters(sample, delimiter):
    assert sniff.delimiter(sample) == delimiter


def test_whoever_watches_is_told_of_every_byte(folder):
    put(folder)
    told = []
    token = files.watcher.set(told.append)
    try:
        graph = Graph.read(folder)
    finally:
        files.watcher.reset(token)
    assert graph.num_nodes == 3
    assert sum(told) >= len(NODES) + len(EDGES)
