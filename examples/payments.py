"""Labels for accounts.

Two tables, 400 accounts, 159 of them labelled. Customers pay shops, shops pay suppliers, suppliers pay wages:
neighbours have different labels, and the model learns how they follow each other.
"""

import sys
from pathlib import Path

from matplotlib import pyplot as plt

import lignn

QUICK = "--quick" in sys.argv  # as the tests run it

graph = lignn.Graph.read(Path(__file__).parent / "payments")
model = lignn.NodeClassifier(backbone="sage", max_epochs=3 if QUICK else 200).fit(graph)
decision = model.decision()
print(f"{model.history_.final['val']:.0%} of the labels that were held back are predicted rightly")

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(15, 4), layout="constrained")
graph.plot_transitions(left)
decision.plot_confidence(middle)
model.plot_neighbourhood("acc001", hops=2, ax=right)
plt.show()
