"""Types of edges by name, and weights by type."""

import numpy as np
import pytest

from lignn import Graph
from lignn.errors import ConfigError, InputError
from lignn.graph import types

NAMES = ("pays", "uses")
GRAPH = Graph([[0, 1, 2], [1, 2, 0]], edge_type=[0, 1, 0], edge_types=NAMES, name="shop")


def test_types_by_name_or_number():
    assert types.numbers(["uses", "pays", "uses"], NAMES).tolist() == [1, 0, 1]
    assert types.numbers(np.array(["pays"], object), NAMES).tolist() == [0]
    assert types.numbers([1, 0], NAMES).tolist() == [1, 0]
    with pytest.raises(InputError, match="'use' is no type of the graph's edges; did you mean 'uses'"):
        types.numbers(["pays", "use"], NAMES)


def test_a_weight_a_type_multiplies_the_weights_of_its_edges():
    assert types.weighted(GRAPH, {"uses": 0.2}).edge_weight.tolist() == [1, 0.2, 1]
    weighted = GRAPH.replace(edge_weight=[2.0, 3.0, 4.0])
    assert types.weighted(weighted, {"pays": 10, "uses": 0.5}).edge_weight.tolist() == [20, 1.5, 40]


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"use": 1}, "type_weights: 'use' is no type of the edges of shop; did you mean 'uses'"),
        ({"uses": 0}, "type_weights: uses: a number above 0 is needed, got 0"),
        ({"uses": float("inf")}, "a number above 0 is needed, got inf"),
        ({"uses": True}, "a number above 0 is needed, got True"),
        ({"uses": "much"}, "a number above 0 is needed, got 'much'"),
        (["uses"], r"weights by the name of the type are needed, got \['uses'\]"),
    ],
)
def test_weights_are_checked(weights, message):
    with pytest.raises(ConfigError, match=message):
        types.weighted(GRAPH, weights)


def test_a_graph_without_types_has_no_weights_by_type():
    with pytest.raises(InputError, match="type_weights: the edges of bare have no types"):
        types.weighted(Graph([[0], [1]], name="bare"), {"uses": 1})
