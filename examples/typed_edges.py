"""Types of edges.

Every node has two sources of each of four classes; only the type of an edge tells how the class of its target follows
from that of its source. A GCN cannot see it, an RGCN can.
"""

import sys

from matplotlib import pyplot as plt

import lignn

QUICK = "--quick" in sys.argv  # as the tests run it

graph = lignn.datasets.load("typed")
(split,) = lignn.splits.per_class(graph, train=10, val=500, test=1000, seed=0, runs=1)
scores = {}
for backbone in ("gcn", "rgcn"):
    for method in ("backbone", "lignn"):
        model = lignn.NodeClassifier(method=method, backbone=backbone, max_epochs=2 if QUICK else 100)
        title = ("LI-" if method == "lignn" else "") + backbone.upper()
        scores[title] = 100 * model.fit(graph, split).score("test")

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.barh(list(scores), list(scores.values()))
left.axvline(25, color="grey", linestyle="--")
left.set(xlabel="test accuracy (%); dashed: a guess")
graph.of_type(0).plot_transitions(right)
right.set_title(f"edges of the type {graph.edge_types[0]!r} (%)")
plt.show()
