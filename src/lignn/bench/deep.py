"""An epoch of a residual GCN of 8 layers on Minesweeper, beside its products with Ã and its dense maps alone."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from lignn import datasets, methods
from lignn.bench.graphs import power_law
from lignn.bench.sides import HIDDEN
from lignn.bench.timing import Record, Side, compare
from lignn.methods import Carry, Method, Problem
from lignn.propagation import Adjacency
from lignn.training.adam import Adam

LAYERS = 8
NETWORK = {"num_layers": LAYERS, "residual": True, "norm": "batch", "hidden": HIDDEN, "dropout": 0.2}


def run(quick: bool) -> Iterator[Record]:
    """Time one update of the network alone and of Label Input, without evaluation."""
    graph = power_law(2000) if quick else datasets.load("minesweeper")
    problem = Problem.of(graph, graph.splits[0].train)
    sides = {"products and dense maps": arithmetic(problem)}
    sides |= {name: epoch(name, problem) for name in ("backbone", "label_input")}
    config = {"layers": LAYERS, "hidden": HIDDEN}
    yield from compare(f"{LAYERS} residual layers, {graph.name}", sides, 2 if quick else 11, config)


def arithmetic(problem: Problem) -> Side:
    """Return what an epoch cannot do without: in each layer one product and two dense maps, forward and backward."""
    adj, h = Adjacency.normalized(problem.edges), torch.randn(problem.edges.num_nodes, HIDDEN)
    weight, out = torch.randn(HIDDEN, HIDDEN), torch.empty(problem.edges.num_nodes, HIDDEN)

    def compute() -> None:
        for _ in range(LAYERS):
            for matrix in (adj, adj.T):
                matrix @ h
            for _ in range(2):  # the convolution's weight and the residual's
                torch.mm(h, weight, out=out)
                torch.mm(h, weight.T, out=out)
                h.T @ out

    return compute


def epoch(name: str, problem: Problem) -> Side:
    """Return one update of a method over the network."""
    generator = torch.Generator().manual_seed(0)
    c, d = problem.labels.num_classes, 0 if problem.x is None else problem.x.shape[1]
    method: Method = methods.build(name, d, c, backbone_options=NETWORK, generator=generator, loss="logits").train()
    optimizer = Adam(method.parameters(), 0.005, 5e-4)

    def update() -> None:
        optimizer.zero_grad()
        method.epoch(problem, generator, Carry()).loss.backward()
        optimizer.step()

    return update
