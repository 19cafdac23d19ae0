"""A board of Minesweeper, solved step by step.

Nodes are the cells of a board, joined to the eight around them; one in five has a mine. A cell's feature is the number
of mines around it, and half of the cells hide it. Half of the labels are known, and a residual network of eight layers
takes them as inputs: every step sees what the last one has concluded. Crosses are the cells that are still wrong.
"""

import sys

import numpy as np
from matplotlib import pyplot as plt
from sklearn.metrics import roc_auc_score

import lignn
from lignn.methods import Problem

QUICK = "--quick" in sys.argv  # as the tests run it
SIDE, SHOWN, STEPS = 100, 25, (1, 2, 5)  # cells of the board and of the corner that is drawn

graph = lignn.datasets.load("minesweeper")
split = graph.splits[0]
deep = {"num_layers": 8, "residual": True, "norm": "batch"}
model = lignn.NodeClassifier(
    backbone_options=deep, metric="roc_auc", features="raw", max_epochs=2 if QUICK else 300, calibrate=False
).fit(graph, split)

bound = model.method_.eval().on(Problem.of(graph, split.train))
truth, known, test = graph.y.numpy(), split.train.numpy(), split.test.numpy()
corner = np.arange(SIDE * SIDE).reshape(SIDE, SIDE)[:SHOWN, :SHOWN]
figure, panels = plt.subplots(1, len(STEPS) + 1, figsize=(14, 3.9), layout="constrained")

for panel, steps in zip(panels, (0, *STEPS), strict=True):
    if steps == 0:
        mine = np.where(known, truth, 0.5)
        panel.set_title("known labels")
    else:
        solved = bound.solve(solver=lignn.solvers.Picard(tol=0.0, max_steps=steps))
        mine = solved.probabilities[:, 1].numpy()
        panel.set_title(f"{steps} step{'s' * (steps > 1)}: AUC {roc_auc_score(truth[test], mine[test]):.4f}")
        wrong = (mine > 0.5) != (truth == 1)
        rows, columns = np.nonzero((wrong & ~known)[corner])
        panel.plot(columns, rows, "x", color="tab:red", markersize=6)
        mine = np.where(known, truth, mine)
    image = panel.imshow(mine[corner], cmap="Greys", vmin=0, vmax=1)
    panel.set_xticks([])
    panel.set_yticks([])

figure.colorbar(image, ax=panels, label="probability of a mine")
plt.show()
