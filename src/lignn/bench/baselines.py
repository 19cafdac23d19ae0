"""Methods that the paper compares with: LPA, C&S, GCN and GAT against PyG, and IGNN against plain PyTorch.

Only the method is timed: both sides are given normalised edges and a problem that is already prepared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional

from lignn.backbones import GAT, GCN
from lignn.bench.sides import HIDDEN, LEARNING_RATE, Task, load_task
from lignn.bench.textbook import PlainIGNN
from lignn.bench.timing import Record, Side, compare
from lignn.equilibrium.solvers import Picard
from lignn.methods import IGNN, LPA, Carry, Method, Network
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
    physics, photo = (
        (load_task(10_000), load_task(10_000)) if quick else (load_task("coauthor_physics"), load_task("amazon_photo"))
    )
    for name, contest in {"LPA, 50 steps": label_propagation, "C&S, 50 steps": correct_and_smooth}.items():
        config = {"steps": STEPS, "lambda": LAMBDA}
        yield from compare(f"{name}, {physics.graph.name}", contest(physics), rounds, config)
    yield from compare(f"GCN epoch, {photo.graph.name}", gcn_training(photo), rounds, {"hidden": HIDDEN})
    heads = {"hidden": HIDDEN, "heads": HEADS}
    yield from compare(f"GAT epoch, {photo.graph.name}", gat_training(photo), rounds, heads)
    yield from compare(f"IGNN update, {photo.graph.name}", ignn_training(photo, False), rounds, {"hidden": HIDDEN})
    yield from compare(f"IGNN epoch, {photo.graph.name}", ignn_training(photo, True), rounds, {"hidden": HIDDEN})


def label_propagation(task: Task) -> dict[str, Side]:
    """Return 50 steps of LPA.

    PyG adds the initial labels in every step, which costs about as much as resetting them.
    """
    from torch_geometric import nn as pyg

    ours, theirs = LPA(LAMBDA, Picard(tol=0, max_steps=STEPS)), pyg.LabelPropagation(STEPS, LAMBDA)
    problem, known = task.problem, task.split.train
    adj, onehot = problem.adjacency(), problem.labels.onehot
    edge_index, edge_weight = adj.edge_index, adj.edge_weight
    return {
        "lignn": lambda: ours.predict(problem),
        WITH_EDGES: lambda: theirs(onehot, edge_index, known, edge_weight),
        WITH_CSR: lambda: theirs(onehot, adj.torch_sparse, known, edge_weight),
    }


def correct_and_smooth(task: Task) -> dict[str, Side]:
    """Return 50 steps of Correct and 50 of Smooth on a given prediction; each step resets the known rows first."""
    from torch_geometric import nn as pyg

    problem, known = task.problem, task.split.train
    adj, lazy, labels = problem.adjacency(), problem.lazy(LAMBDA), problem.labels
    edge_index, edge_weight = adj.edge_index, adj.edge_weight
    base = torch.rand(labels.onehot.shape, generator=torch.Generator().manual_seed(0)).softmax(1)
    theirs = pyg.CorrectAndSmooth(STEPS, LAMBDA, STEPS, LAMBDA, autoscale=False)

    def ours() -> Tensor:
        *_, corrected = iterate(correct(lazy, labels, base), base, STEPS)
        *_, smoothed = iterate(smooth(lazy, labels), corrected, STEPS)
        return smoothed

    return {
        "lignn": ours,
        WITH_EDGES: lambda: theirs(base, labels.onehot[known], known, edge_index, edge_weight),
        WITH_CSR: lambda: theirs(base, labels.onehot[known], known, adj.torch_sparse, edge_weight),
    }


def gcn_training(task: Task) -> dict[str, Side]:
    """Return one update of a GCN on the features alone; the edges are normalised once."""
    from torch_geometric import nn as pyg

    x, c, adj = task.features, task.graph.num_classes, task.problem.adjacency()
    first, second = (pyg.GCN(x.shape[1], HIDDEN, 2, c, normalize=False) for _ in range(2))
    return {
        "lignn": _our_update(task, Network(GCN(x.shape[1], c, hidden=HIDDEN))),
        WITH_EDGES: _their_update(task, first, x, adj.edge_index, adj.edge_weight),
        WITH_CSR: _their_update(task, second, x, adj.torch_sparse),
    }


def gat_training(task: Task) -> dict[str, Side]:
    """Return one update of a GAT on the features alone; PyG's GAT takes no `torch.sparse` adjacency here."""
    from torch_geometric import nn as pyg

    x, c = task.features, task.graph.num_classes
    theirs = pyg.GAT(x.shape[1], HIDDEN, 2, c, heads=HEADS, add_self_loops=False)
    return {
        "lignn": _our_update(task, Network(GAT(x.shape[1], c, hidden=HIDDEN, heads=HEADS))),
        WITH_EDGES: _their_update(task, theirs, x, task.problem.adjacency().edge_index),
    }


def ignn_training(task: Task, evaluates: bool) -> dict[str, Side]:
    """Return one update of IGNN*, or one epoch: an update and an evaluation; both sides have the same weights."""
    x, c, adj = task.features, task.graph.num_classes, task.problem.adjacency()
    ours = IGNN(x.shape[1], c, HIDDEN, generator=torch.Generator().manual_seed(0))
    theirs = PlainIGNN(adj.torch_sparse, x, c, HIDDEN, ours.kappa / adj.spectral_radius())
    theirs.load_state_dict(ours.state_dict())
    if not evaluates:
        return {"lignn": _our_update(task, ours), PLAIN: _their_update(task, theirs)}
    return {"lignn": _our_epoch(task, ours), PLAIN: _their_epoch(task, theirs)}


def _our_epoch(task: Task, method: Method) -> Side:
    """Return a function that updates the weights with lignn, and predicts."""
    problem, generator = task.problem, torch.Generator().manual_seed(0)
    optimizer = torch.optim.Adam(method.parameters(), lr=LEARNING_RATE)
    carry = Carry()

    def epoch() -> None:
        nonlocal carry
        optimizer.zero_grad(set_to_none=True)
        taped = method.train().epoch(problem, generator, carry)
        taped.loss.backward()
        optimizer.step()
        _, carry = method.eval().evaluate(problem, taped)

    return epoch


def _their_epoch(task: Task, module: nn.Module) -> Side:
    """Return a function that updates the weights in plain PyTorch, and predicts."""
    update = _their_update(task, module)

    def epoch() -> None:
        update()
        with torch.no_grad():
            module().softmax(1)

    return epoch


def _our_update(task: Task, method: Method) -> Side:
    """Return a function that updates the weights with lignn."""
    problem, generator = task.problem, torch.Generator().manual_seed(0)
    return _update(method, lambda: method.epoch(problem, generator).loss)


def _their_update(task: Task, module: nn.Module, *inputs: Tensor) -> Side:
    """Return a function that updates the weights in plain PyTorch."""
    assert task.graph.y is not None
    known, truth = task.split.train, task.graph.y[task.split.train]
    return _update(module, lambda: functional.cross_entropy(module(*inputs)[known], truth))


def _update(module: nn.Module, loss: Callable[[], Tensor]) -> Side:
    optimizer = torch.optim.Adam(module.parameters(), lr=LEARNING_RATE)

    def update() -> None:
        optimizer.zero_grad(set_to_none=True)
        loss().backward()
        optimizer.step()

    return update
