"""A citation network with live labels.

Papers of Cora, 5 labels a class. Labels come one by one, where `suggest` says that they help most, and take effect
without training. A random choice is drawn beside it.
"""

import sys

import numpy as np
from matplotlib import pyplot as plt

import lignn

QUICK = "--quick" in sys.argv  # as the tests run it

graph = lignn.datasets.load("cora")
(split,) = lignn.splits.per_class(graph, train=5, val=100, test=1000, seed=0, runs=1)
truth = graph.y.numpy()
scores = {}
for name in ("suggested", "random"):
    model = lignn.NodeClassifier(max_epochs=3 if QUICK else 100, refit=False).fit(graph, split)
    rng = np.random.default_rng(0)
    open_nodes = np.flatnonzero(~(split.train | split.val | split.test).numpy())
    curve = [model.score("test")]
    for _ in range(2 if QUICK else 10):
        asked = model.suggest(200) if name == "suggested" else rng.permutation(open_nodes)
        chosen = [node for node in asked.tolist() if node in set(open_nodes.tolist())][:10]
        model.update_labels({node: int(truth[node]) for node in chosen})  # no training
        open_nodes = np.setdiff1d(open_nodes, chosen)
        curve.append(model.score("test"))
    scores[name] = curve
    plt.plot(10 * np.arange(len(curve)), 100 * np.array(curve), marker="o", label=name)

plt.xlabel("labels added after training")
plt.ylabel("test accuracy (%)")
plt.legend()
plt.show()
