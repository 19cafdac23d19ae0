import numpy as np
import pytest
import torch

import lignn
from tests.datasets import archives


@pytest.mark.parametrize("name", ["roman_empire", "amazon_ratings", "minesweeper", "tolokers", "questions"])
def test_download(name: str, internet: dict[str, bytes]) -> None:
    n = 15
    x, y = np.random.default_rng(0).normal(size=(n, 3)).astype(np.float32), archives.labels(n, 2)
    masks = archives.ten_masks(n)
    raw = {f"{part}_masks": mask.T for part, mask in masks.items()}
    internet[f"/{name}.npz"] = archives.npz(node_features=x, node_labels=y, edges=archives.EDGES, **raw)

    graph = lignn.datasets.load(name)
    assert torch.equal(graph.x, torch.from_numpy(x))
    assert np.array_equal(graph.y, y)
    assert archives.pairs(graph.edge_index) == archives.both_ways(archives.UNDIRECTED)
    assert len(graph.splits) == 10
    for run, split in enumerate(graph.splits):
        for part, mask in masks.items():
            assert np.array_equal(getattr(split, part), mask[:, run])
