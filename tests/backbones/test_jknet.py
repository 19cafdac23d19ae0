import pytest
from torch_geometric.nn import models

from lignn.backbones import JKNet


@pytest.mark.parametrize("num_layers", [1, 2, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_equals_pyg_on_the_concatenated_input(assert_same_as_pyg, num_layers, weighted):
    assert_same_as_pyg(JKNet(9, 3, 3, 8, num_layers), models.GCN(12, 8, num_layers, 3, jk="cat"), weighted)
