"""One layer of graph attention, forward and backward, against that of PyG."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from lignn.backbones.gat import GATConv
from lignn.bench.sides import load_task
from lignn.bench.timing import Record, Side, compare
from lignn.propagation import Adjacency

WIDTH, CHANNELS = 64, 8


def run(quick: bool) -> Iterator[Record]:
    """Time 1, 8 and 32 heads on Photo."""
    graph = load_task(10_000 if quick else "amazon_photo").graph
    adj = Adjacency.normalized(graph, "none")
    for heads in (1, 8) if quick else (1, 8, 32):
        case = f"{heads} × {CHANNELS} channels, {graph.name}"
        yield from compare(case, layers(adj, heads), 2 if quick else 11, {"heads": heads, "channels": CHANNELS})


def layers(adj: Adjacency, heads: int) -> dict[str, Side]:
    """Return both layers, with the same weights and input, as functions that compute the gradient of `Σ out²`."""
    from torch_geometric.nn import GATConv as PyGGATConv

    generator = torch.Generator().manual_seed(0)
    ours = GATConv(WIDTH, CHANNELS, heads, concat=True, dropout=0.0, generator=generator)
    theirs = PyGGATConv(WIDTH, CHANNELS, heads, add_self_loops=False)
    theirs.load_state_dict(ours.state_dict())
    edges = adj.edge_index
    x = torch.randn(adj.shape[0], WIDTH, generator=generator).requires_grad_()

    def gradient(out: Tensor, layer: torch.nn.Module) -> tuple[Tensor, ...]:
        return torch.autograd.grad(out.square().sum(), [x, *layer.parameters()])

    return {
        "lignn": lambda: gradient(ours(x, adj), ours),
        "PyG edge_index": lambda: gradient(theirs(x, edges), theirs),
    }
