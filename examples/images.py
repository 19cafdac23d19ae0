"""Images as a graph of nearest neighbours.

1797 images of digits, 5 labels a class. Each image is joined to its 10 nearest ones. The row shows the images whose
label the model would ask for next.
"""

import sys

from matplotlib import pyplot as plt
from sklearn.datasets import load_digits

import lignn

QUICK = "--quick" in sys.argv  # as the tests run it

digits = load_digits()
graph = lignn.Graph.knn(digits.data / 16, k=10, y=digits.target, name="digits")
(split,) = lignn.splits.per_class(graph, train=5, val=50, test=1000, seed=0, runs=1)
model = lignn.NodeClassifier(max_epochs=3 if QUICK else 150).fit(graph, split)
report = model.report("test")
print(report)

figure, axes = plt.subplot_mosaic([["r"] * 3 + ["t"] * 3, list("abcdef")], figsize=(9, 6), layout="constrained")
report.plot_reliability(axes["r"])
graph.plot_transitions(axes["t"])
decision = model.decision()
for place, node in zip("abcdef", model.suggest(6), strict=True):
    axes[place].imshow(digits.images[node], cmap="gray_r")
    axes[place].set(xticks=[], yticks=[], title=f"{decision.names[node]}? {decision.confidence[node]:.0%}")
plt.show()
