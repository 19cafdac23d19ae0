import copy
import gc
import pickle

import torch

from lignn.propagation import Adjacency, Kept
from tests.problems import random_graph


def test_values_live_as_long_as_the_operator_and_stay_with_the_original():
    adj = Adjacency.normalized(random_graph())
    kept: Kept[torch.Tensor] = Kept()
    kept[adj] = torch.ones(3)
    assert len(copy.deepcopy(kept)) == len(pickle.loads(pickle.dumps(kept))) == 0
    assert len(kept) == 1
    del adj
    gc.collect()
    assert len(kept) == 0
