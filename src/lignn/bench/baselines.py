"""Methods that the paper compares with: LPA, C&S, GCN and GAT against PyG, and IGNN against plain PyTorch.

Only the method is timed: both sides are given normalised edges and a problem that is already prepared.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional

from lignn.backbones import GAT, GCN
from lignn.bench.plain_ignn import PlainIGNN
from lignn.bench.sides import HIDDEN, LEARNING_RATE, Task, dense_inputs, task
from lignn.bench.timing import Record, Side, at_least, compare
from lignn.equilibrium.solvers import Picard
from lignn.methods import IGNN, LPA, Method, Network, Problem
from lignn.methods.correct_and_smooth import correct, iterate, smooth

STEPS = 50
LAMBDA = 0.9
HEADS = 8
WITH_EDGES = "PyG edge_index"
WITH_CSR = "PyG adj_t"
PLAIN = "torch.sparse"


def run(quick: bool) -> Iterator[Record]:
    """Time propagation on Physics, and training on Photo."""
    rounds = 2 if quick else 9
    physics, photo = (task(10_000), task(10_000)) if quick else (task("coauthor_physics"), task("amazon_photo"))
    for name, contest in {"LPA, 50 steps": label_propagation, "C&S, 50 steps": correct_and_smooth}.items():
        records = compare(f"{name}, {physics.graph.name}", contest(physics), rounds, {"steps": STEPS, "lambda": LAMBDA})
        yield from records
        yield at_least(f"{name}: times faster than PyG's", _ratio(records, WITH_EDGES), 10)
    records = compare(f"GCN epoch, {photo.graph.name}", gcn_training(photo), rounds, {"hidden": HIDDEN})
    yield from records
    yield at_least("GCN training: times faster than PyG's with edge_index", _ratio(records, WITH_EDGES), 8)
    yield at_least("GCN training: times faster than PyG's with adj_t", _ratio(records, WITH_CSR), 1.5)
    config = {"hidden": HIDDEN, "heads": HEADS}
    yield from compare(f"GAT epoch, {photo.graph.name}", gat_training(photo), rounds, config)
    yield from compare(f"IGNN epoch, {photo.graph.name}", ignn_training(photo), rounds, {"hidden": HIDDEN})


def _last(states: Iterator[Tensor]) -> Tensor:
    """Return the last state without keeping the others."""
    return deque(states, maxlen=1).pop()


def _ratio(records: list[Record], side: str) -> float:
    return next(record["ratio"] for record in records if record["side"] == side)


def label_propagation(problem: Task) -> dict[str, Side]:
    """Return 50 steps of LPA.

    PyG adds the initial labels in every step, which costs about as much as resetting them.
    """
    from torch_geometric import nn as pyg

    ours, mine = LPA(LAMBDA, Picard(tol=0, max_steps=STEPS)), Problem.of(problem.graph, problem.split.train)
    adj = mine.adjacency()
    edge_index, edge_weight = adj.edge_index, adj.edge_weight
    theirs, onehot, known = pyg.LabelPropagation(STEPS, LAMBDA), mine.labels.onehot, problem.split.train
    return {
        "lignn": lambda: ours.predict(mine),
        WITH_EDGES: lambda: theirs(onehot, edge_index, known, edge_weight),
        WITH_CSR: lambda: theirs(onehot, adj.torch_sparse, known, edge_weight),
    }


def correct_and_smooth(problem: Task) -> dict[str, Side]:
    """Return 50 steps of Correct and 50 of Smooth on a given prediction; each step resets the known rows first."""
    from torch_geometric import nn as pyg

    mine, known = Problem.of(problem.graph, problem.split.train), problem.split.train
    adj, lazy = mine.adjacency(), mine.lazy(LAMBDA)
    edge_index, edge_weight = adj.edge_index, adj.edge_weight
    onehot = mine.labels.onehot
    base = torch.rand(onehot.shape, generator=torch.Generator().manual_seed(0)).softmax(1)
    theirs = pyg.CorrectAndSmooth(STEPS, LAMBDA, STEPS, LAMBDA, autoscale=False)

    def ours() -> Tensor:
        corrected = _last(iterate(correct(lazy, mine.labels, base), base, STEPS))
        return _last(iterate(smooth(lazy, mine.labels), corrected, STEPS))

    return {
        "lignn": ours,
        WITH_EDGES: lambda: theirs(base, onehot[known], known, edge_index, edge_weight),
        WITH_CSR: lambda: theirs(base, onehot[known], known, adj.torch_sparse, edge_weight),
    }


def gcn_training(problem: Task) -> dict[str, Side]:
    """Return one update of a GCN on the features alone; the edges are normalised once."""
    from torch_geometric import nn as pyg

    graph = problem.graph
    mine = Problem.of(graph, problem.split.train)
    adj = mine.adjacency()
    x = dense_inputs(graph)[:, graph.num_classes :].contiguous()
    edges, weights, csr = adj.edge_index, adj.edge_weight, adj.torch_sparse
    sizes = {"in_channels": x.shape[1], "hidden_channels": HIDDEN, "num_layers": 2, "out_channels": graph.num_classes}
    first, second = pyg.GCN(**sizes, normalize=False), pyg.GCN(**sizes, normalize=False)
    return {
        "lignn": _update(Network(GCN(x.shape[1], graph.num_classes, hidden=HIDDEN)), mine),
        WITH_EDGES: _pyg_update(first, lambda: first(x, edges, weights), problem),
        WITH_CSR: _pyg_update(second, lambda: second(x, csr), problem),
    }


def gat_training(problem: Task) -> dict[str, Side]:
    """Return one update of a GAT on the features alone; PyG's GAT takes no `torch.sparse` adjacency here."""
    from torch_geometric import nn as pyg

    graph = problem.graph
    mine = Problem.of(graph, problem.split.train)
    edges = mine.adjacency().edge_index
    x = dense_inputs(graph)[:, graph.num_classes :].contiguous()
    theirs = pyg.GAT(x.shape[1], HIDDEN, 2, graph.num_classes, heads=HEADS, add_self_loops=False)
    return {
        "lignn": _update(Network(GAT(x.shape[1], graph.num_classes, hidden=HIDDEN, heads=HEADS)), mine),
        WITH_EDGES: _pyg_update(theirs, lambda: theirs(x, edges), problem),
    }


def ignn_training(problem: Task) -> dict[str, Side]:
    """Return one update of IGNN*; both sides have the same weights."""
    graph = problem.graph
    mine = Problem.of(graph, problem.split.train)
    x = dense_inputs(graph)[:, graph.num_classes :].contiguous()
    ours = IGNN(x.shape[1], graph.num_classes, HIDDEN, generator=torch.Generator().manual_seed(0))
    radius = ours.kappa / mine.adjacency().spectral_radius()
    theirs = PlainIGNN(mine.adjacency().torch_sparse, x, graph.num_classes, HIDDEN, radius)
    theirs.load_state_dict(ours.state_dict())
    return {"lignn": _update(ours, mine), PLAIN: _pyg_update(theirs, theirs, problem)}


def _update(method: Method, problem: Problem) -> Side:
    """Return a function that updates the weights with lignn."""
    optimizer = torch.optim.Adam(method.parameters(), lr=LEARNING_RATE)
    generator = torch.Generator().manual_seed(0)

    def update() -> None:
        optimizer.zero_grad(set_to_none=True)
        method.epoch(problem, generator).loss.backward()
        optimizer.step()

    return update


def _pyg_update(module: nn.Module, logits: Callable[[], Tensor], problem: Task) -> Side:
    """Return a function that updates the weights in plain PyTorch."""
    optimizer = torch.optim.Adam(module.parameters(), lr=LEARNING_RATE)
    assert problem.graph.y is not None
    known, truth = problem.split.train, problem.graph.y[problem.split.train]

    def update() -> None:
        optimizer.zero_grad(set_to_none=True)
        functional.cross_entropy(logits()[known], truth).backward()
        optimizer.step()

    return update
