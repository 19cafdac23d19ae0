"""The dialect of text files, and their bytes as they are read."""

import pytest

from lignn import Graph
from lignn.graph import files, sniff
from lignn.graph.sniff import Dialect
from tests.graph.folders import EDGES, NODES, put


@pytest.mark.parametrize(
    ("sample", "dialect"),
    [
        ("", Dialect()),
        ("id\n1\n2\n", Dialect()),
        ("id,label\n1,a\n", Dialect()),
        ("id;label\n1;a\n", Dialect(";")),
        ("id\tlabel\n1\ta\n", Dialect("\t")),
        ("id\tname, first, last\n1\ta\n2\tb\n", Dialect("\t")),
        ('id;"a;b";c\n1;2;3\n', Dialect(";")),
        ("id;x\n1;0,5\n2;1\n", Dialect(";", ",")),
        ("id;x\n1;0,5\n2;1.5\n", Dialect(";")),
        ("id,x\n1,0\n2,0,5\n", Dialect()),
        ("id;x\n1;01.02.2024\n2;1,5\n", Dialect(";", ",")),
    ],
)
def test_dialects(sample, dialect):
    assert sniff.dialect(sample) == dialect


def test_decimal_commas_become_points():
    assert Dialect(";", ",").with_points(["1,5", " -2,25", "a,b", "1,2,3"]) == ["1.5", " -2.25", "a,b", "1,2,3"]
    assert Dialect(";").with_points(["1,5"]) == ["1,5"]


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
