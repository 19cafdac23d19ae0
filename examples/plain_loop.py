"""A plain PyTorch loop around a method.

A method has no state but its weights. An epoch computes a loss, you step the optimizer, and a value is passed on. K̂,
how strongly a step draws the state together, grows while the network learns.
"""

import sys

import torch
from matplotlib import pyplot as plt

import lignn
from lignn.backbones import GCN
from lignn.methods import LIGNN, Carry, Problem

QUICK = "--quick" in sys.argv  # as the tests run it

graph = lignn.datasets.load("digits")
(split,) = lignn.splits.per_class(graph, train=5, val=200, test=1000, seed=0, runs=1)
problem = Problem.of(graph, split.train)  # all that a method sees: the training labels
generator, carry = torch.Generator().manual_seed(0), Carry()
c = graph.num_classes
method = LIGNN(GCN(graph.num_features, c, label_inputs=c, generator=generator), mask_rate=0.5, max_steps=100)
optimizer = torch.optim.Adam(method.parameters(), lr=0.01)

rows = []
for _ in range(3 if QUICK else 80):
    epoch = method.train().epoch(problem, generator, carry)
    optimizer.zero_grad()
    epoch.loss.backward()
    optimizer.step()
    prediction, carry = method.eval().evaluate(problem, epoch)
    right = (prediction.labels == graph.y)[split.val].float().mean()
    rows.append((epoch.loss.item(), right.item(), prediction.solution.contraction))

figure, axes = plt.subplots(1, 3, figsize=(12, 3.5), layout="constrained")
titles = ("loss", "validation accuracy", "K̂ of the prediction")
for ax, name, values in zip(axes, titles, zip(*rows, strict=True), strict=True):
    ax.plot(values)
    ax.set(xlabel="epoch", title=name)
plt.show()
