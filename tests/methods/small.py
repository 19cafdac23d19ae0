"""A small problem in float64 and methods on it, shared by the tests of this folder."""

import torch

from lignn import Graph
from lignn.backbones import GCN
from lignn.equilibrium.solvers import Picard
from lignn.methods import Problem, build
from tests.problems import half_split, random_graph

TIGHT = Picard(tol=1e-13, max_steps=2000)


def small_problem(seed=0, **options):
    graph = random_graph(n=30, seed=seed, **options)
    split = half_split(30, seed)
    return graph, split, Problem.of(graph, split.train, torch.float64)


def gcn(graph, seed=1, **options):
    """A GCN with label inputs whose map is non-trivial and contracts."""
    c = graph.num_classes
    generator = torch.Generator().manual_seed(seed)
    return GCN(graph.num_features, c, label_inputs=c, hidden=8, generator=generator, **options).double()


def built(name, graph, seed=1, **options):
    """The method called `name`, small, in float64."""
    network = {} if name == "eignn" else {"hidden": 8}
    sizes = graph.num_features, graph.num_classes
    generator = torch.Generator().manual_seed(seed)
    return build(name, *sizes, backbone_options=network, generator=generator, **options).double()


def patchwork(seed=0, **options):
    """A graph in pieces, its known nodes, and the nodes that a known label reaches.

    Nodes 0-13 are connected and half known, 14-18 are a ring without a known label, 19 and 20 are alone, 20 known.
    """
    core = random_graph(n=14, seed=seed, **options)
    ring = torch.stack([torch.arange(14, 19), torch.arange(14, 19).roll(1)])
    edges = torch.cat([core.edge_index, ring, ring.flip(0)], 1)
    weight = None if core.edge_weight is None else torch.cat([core.edge_weight, core.edge_weight[:5].repeat(2)])
    more = random_graph(n=7, seed=seed + 1, **options)
    x, y = torch.cat([core.x, more.x]), torch.cat([core.y, more.y])
    known = torch.tensor([True, True, True, False, False, True, False, True, False, False, True] + [False] * 9 + [True])
    reached = torch.tensor([True] * 14 + [False] * 6 + [True])
    return Graph(edges, x=x, y=y, edge_weight=weight, num_nodes=21, name="patchwork"), known, reached


def dense_operator(graph, lam=1.0, self_loops=True):
    """`A_λ`, `Ã = D^-1/2 (A+I) D^-1/2`, degrees counted at the target, written out edge by edge; λ = 1 gives Ã."""
    n = graph.num_nodes
    a = torch.eye(n, dtype=torch.float64) if self_loops else torch.zeros(n, n, dtype=torch.float64)
    weights = torch.ones(graph.num_edges) if graph.edge_weight is None else graph.edge_weight
    for source, target, weight in zip(*graph.edge_index.tolist(), weights.tolist(), strict=True):
        a[target, source] += weight
    degree = a.sum(1)
    for i in range(n):
        for j in range(n):
            if a[i, j]:
                a[i, j] /= (degree[i] * degree[j]).sqrt()
    return (1 - lam) * torch.eye(n, dtype=torch.float64) + lam * a


def taped(method, problem, seed=0, carry=None):
    """An epoch with its backward pass done."""
    method.zero_grad()
    epoch = method.epoch(problem, torch.Generator().manual_seed(seed), carry)
    epoch.loss.backward()
    return epoch


def solves(epoch):
    """The accounts of an epoch's forward and backward solves."""
    return {"forward": epoch.solution.record(), "backward": epoch.solution.adjoints[-1].record()}


def gradients(method, problem, seed=0, carry=None):
    """The loss of an epoch and the gradients of all weights, by name."""
    loss = taped(method, problem, seed, carry).loss.item()
    return loss, {name: weight.grad.clone() for name, weight in method.named_parameters()}


def directional_error(method, problem, seed=0, step=1e-5):
    """Relative difference of `∇L · d` and the central difference of L along d, for one random direction d."""
    _, slopes = gradients(method, problem, seed)
    generator = torch.Generator().manual_seed(99)
    direction = {name: torch.randn(g.shape, generator=generator, dtype=g.dtype) for name, g in slopes.items()}
    start = {name: value.clone() for name, value in method.state_dict().items()}

    def loss_at(distance):
        moved = start | {name: start[name] + distance * d for name, d in direction.items()}
        method.load_state_dict(moved)
        return method.epoch(problem, torch.Generator().manual_seed(seed)).loss.item()

    difference = (loss_at(step) - loss_at(-step)) / (2 * step)
    method.load_state_dict(start)
    slope = sum((slopes[name] * d).sum().item() for name, d in direction.items())
    return abs(slope - difference) / abs(difference)


def learned(method, problem):
    """The method, after what it fits without epochs."""
    method.learn(problem)
    return method
