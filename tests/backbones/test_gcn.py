import pytest
from torch_geometric.nn import models

from lignn.backbones import GCN


@pytest.mark.parametrize("num_layers", [1, 2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_equals_pyg_on_the_concatenated_input(assert_same_as_pyg, num_layers, weighted):
    assert_same_as_pyg(GCN(9, 3, 3, 8, num_layers), models.GCN(12, 8, num_layers, 3), weighted)


def test_equals_pyg_where_the_features_are_propagated_first(assert_same_as_pyg):
    assert_same_as_pyg(GCN(9, 3, 3, 16), models.GCN(12, 16, 2, 3))
