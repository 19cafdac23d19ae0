"""A model of PyG as the network.

Any module that takes features and `edge_index` can be fed with labels and iterated to its equilibrium: here GraphSAGE
and GAT of PyG, in one line each. The graph is that of the payments, where neighbours have different labels.
"""

import sys
from pathlib import Path

from matplotlib import pyplot as plt
from torch_geometric.nn import GAT, GraphSAGE

import lignn

QUICK = "--quick" in sys.argv  # as the tests run it

graph = lignn.Graph.read(Path(__file__).parent / "payments")
split = lignn.splits.stratified(graph, (0.5, 0.25, 0.25), seed=0)
for network in (GraphSAGE, GAT):
    for method in ("backbone", "lignn"):
        model = lignn.NodeClassifier(
            method=method,
            backbone=network,
            backbone_options={"num_layers": 2},
            hidden=32,
            max_epochs=2 if QUICK else 100,
        ).fit(graph, split)
        title = ("LI-" if method == "lignn" else "") + network.__name__
        scores = [(epoch, 100 * r["val"]) for epoch, r in enumerate(model.history_.epochs) if "val" in r]
        plt.plot(*zip(*scores, strict=True), label=title)
        print(title, model.score("test"))

plt.xlabel("epoch")
plt.ylabel("validation accuracy (%)")
plt.legend()
plt.show()
