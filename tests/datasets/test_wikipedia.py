import numpy as np
import pytest

import lignn
from tests.datasets import archives


@pytest.mark.parametrize("name", ["chameleon", "squirrel"])
def test_download(name: str, internet: dict[str, bytes]) -> None:
    n = 30
    x, y, masks = archives.words(n, 8), archives.labels(n, 5), archives.ten_masks(n)
    rows = ["node_id\tfeature\tlabel"]
    rows += [f"{i}\t{','.join(str(int(v)) for v in x[[i]].toarray()[0])}\t{y[i]}" for i in range(n)]
    links = ["node_id\tnode_id", *(f"{source}\t{target}" for source, target in archives.EDGES)]
    internet[f"new_data/{name}/out1_node_feature_label.txt"] = "\n".join([*rows, ""]).encode()
    internet[f"new_data/{name}/out1_graph_edges.txt"] = "\n".join([*links, ""]).encode()
    for run in range(10):
        parts = {f"{part}_mask": mask[:, run].astype(np.int64) for part, mask in masks.items()}
        internet[f"splits/{name}_split_0.6_0.2_{run}.npz"] = archives.npz(**parts)

    graph = lignn.datasets.load(name)
    assert np.array_equal(graph.x.toarray(), x.toarray())
    assert np.array_equal(graph.y, y)
    proper = [tuple(edge) for edge in archives.EDGES.tolist() if edge[0] != edge[1]]
    assert archives.pairs(graph.edge_index) == sorted(proper + [(j, i) for i, j in proper])
    assert graph.num_edges // 2 == 7  # the pair 0, 1 links both ways and counts twice
    assert graph.is_undirected
    assert len(graph.splits) == 10
    for run, split in enumerate(graph.splits):
        for part, mask in masks.items():
            assert np.array_equal(getattr(split, part), mask[:, run])
