"""Fraud in a table of payments.

One table, no edges: 720 invented payments, half of them without a label. Payments are joined by their card and their
shop, and to the two before and after with the same card or in the same shop. On the command line, it is
`lignn fit fraud/payments.csv --column label=fraud --link card --link shop --order time`.
"""

from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.dates import ConciseDateFormatter

import lignn

table = Path(__file__).parent / "fraud" / "payments.csv"
graph = lignn.Graph.read(table, columns={"label": "fraud"}, links=["card", "shop"], order="time")
print(graph.reading)
model = lignn.NodeClassifier(method="label_input", method_options={"base": "boosted"}).fit(graph)
fraud = model.predict_proba()[:, graph.class_names.index("yes")]
print(f"average precision {model.score(metric='average_precision'):.2f} on the labels that were held back")

rows = graph.is_row.numpy()
time, card = (np.array(graph.table[name].to_pylist())[rows] for name in ("time", "card"))
label = np.append(["no", "yes"], "unknown")[graph.y.numpy()[rows]]
frauds, count = np.unique(card[label == "yes"], return_counts=True)
shown = [*frauds[np.argsort(-count)][:4], *np.setdiff1d(card, frauds)[:4]]
place = np.array([shown.index(name) if name in shown else -1 for name in card])

figure, (left, right) = plt.subplots(1, 2, figsize=(15, 4.5), sharey=True, layout="constrained")
for kind, colour, bent in (("shop by time", "#cccccc", 0.15), ("card by time", "#444444", 0)):
    edges = graph.of_type(graph.edge_types.index(kind)).edge_index.numpy()
    line = {"arrowstyle": "-", "color": colour, "connectionstyle": f"arc3,rad={bent}"}
    for one, other in edges[:, (place[edges] >= 0).all(0) & (edges[0] < edges[1])].T:
        left.annotate("", (time[one], place[one]), (time[other], place[other]), arrowprops=line)
    left.plot([], [], color=colour, label=f"linked: {kind}")
for name, colour in (("unknown", "white"), ("no", "tab:blue"), ("yes", "tab:red")):
    here = (place >= 0) & (label == name)
    left.scatter(time[here], place[here], 50, colour, edgecolors="black", zorder=3, label=f"fraud: {name}")
figure.legend(loc="outside lower left", ncols=5, frameon=False)
here = place >= 0
dots = right.scatter(time[here], place[here], 50, fraud[:720][here], cmap="Reds", edgecolors="black", vmin=0, vmax=1)
figure.colorbar(dots, label="probability of fraud")
for ax, title in ((left, "What is linked, and the given labels"), (right, "What is predicted")):
    ax.set(title=f"{title}: payments of 8 cards", yticks=range(8), yticklabels=shown)
    ax.xaxis.set_major_formatter(ConciseDateFormatter(ax.xaxis.get_major_locator()))
plt.show()
