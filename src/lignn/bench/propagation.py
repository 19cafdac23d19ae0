"""`lignn bench propagation`: products with Ã and with sparse features, and building Ã, side by side with others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from lignn.bench.timing import Record, Side, compare
from lignn.graph import Graph
from lignn.propagation import Adjacency, SparseMatrix

Product = Callable[[Tensor], Tensor]


def run(quick: bool = False) -> list[Record]:
    """All cases; `ratio` above 1 means that lignn is faster. `quick`: a tenth of the size and fewer rounds."""
    scale, rounds = (10, 5) if quick else (1, 15)
    nodes, entries = 170_000 // scale, 2_400_000 // scale
    graph = power_law_graph(nodes, entries)
    records = []
    for columns in (1, 5, 8, 40, 64, 256):
        records += _propagation(graph, columns, rounds)
    small = power_law_graph(2277, 65_000)
    for columns in (1, 5, 64):
        records += _propagation(small, columns, 20 * rounds)
    return records + _features(34_493 // scale, 8_415 // scale, 0.004, 64, rounds) + _building(graph, rounds)


def power_law_graph(nodes: int, entries: int, exponent: float = 2.5, seed: int = 0) -> Graph:
    """Undirected graph in random node order with power-law degrees and about `entries` non-zeros in A + I."""
    generator = np.random.default_rng(seed)
    weight = (np.arange(nodes) + 10.0) ** (-1 / (exponent - 1))
    ends = generator.choice(nodes, size=(2, (entries - nodes) // 2), p=weight / weight.sum())
    edges = torch.from_numpy(generator.permutation(nodes)[ends])
    return Graph(edges, num_nodes=nodes).without_self_loops().to_undirected()


def _propagation(graph: Graph, columns: int, rounds: int) -> list[Record]:
    adj = Adjacency.normalized(graph)
    sides: dict[str, Product] = {
        "lignn": adj.__matmul__,
        "torch.sparse": adj.torch_sparse.__matmul__,
        "gather-scatter": _gather_scatter(adj),
    }
    config = {"nodes": graph.num_nodes, "entries": adj.nnz, "columns": columns}
    return _forward_and_backward(f"{graph.num_nodes} nodes × {columns}", sides, graph.num_nodes, config, rounds)


def _features(rows: int, width: int, density: float, columns: int, rounds: int) -> list[Record]:
    """Bag-of-words features times a weight matrix, as in the first layer of a network (Coauthor Physics)."""
    generator = np.random.default_rng(0)
    x = SparseMatrix.from_scipy(sp.random_array((rows, width), density=density, rng=generator), torch.float32)
    sides: dict[str, Product] = {"lignn": x.__matmul__, "torch.sparse": x.torch_sparse.__matmul__}
    config = {"rows": rows, "width": width, "entries": x.nnz, "columns": columns}
    return _forward_and_backward(f"features {rows} × {width} × {columns}", sides, width, config, rounds)


def _building(graph: Graph, rounds: int) -> list[Record]:
    """Ã from an edge list; SciPy's way: coordinates to CSR, then the diagonal matrices of the degrees."""
    source, target = graph.edge_index.numpy()
    loops = np.arange(graph.num_nodes)
    coordinates = np.concatenate([target, loops]), np.concatenate([source, loops])
    ones = np.ones(len(coordinates[0]), dtype=np.float32)

    def scipy_way() -> sp.csr_array:
        matrix = sp.coo_array((ones, coordinates), shape=(graph.num_nodes, graph.num_nodes)).tocsr()
        scale = sp.diags_array(matrix.sum(axis=1) ** -0.5, dtype=np.float32)
        return scale @ matrix @ scale

    sides: dict[str, Side] = {"lignn": lambda: Adjacency.normalized(graph), "scipy": scipy_way}
    return compare(f"building, {graph.num_nodes} nodes", sides, rounds, {"entries": len(ones)})


def _forward_and_backward(
    case: str, products: dict[str, Product], rows: int, config: dict[str, int], rounds: int
) -> list[Record]:
    """Two cases: the product alone, and with the gradient of a scalar of it."""
    x = torch.randn(rows, config["columns"], generator=torch.Generator().manual_seed(0))
    taped = x.clone().requires_grad_()
    cotangent = torch.ones_like(next(iter(products.values()))(x))

    def forward(product: Product) -> Side:
        return lambda: product(x)

    def backward(product: Product) -> Side:
        return lambda: torch.autograd.grad(product(taped), taped, cotangent)

    return [
        *compare(f"{case}, forward", {name: forward(side) for name, side in products.items()}, rounds, config),
        *compare(f"{case}, and backward", {name: backward(side) for name, side in products.items()}, rounds, config),
    ]


def _gather_scatter(adj: Adjacency) -> Product:
    """What PyG's message passing (GCNConv) does with an edge list: gather at sources, weight, add at targets."""
    from torch_geometric.utils import scatter

    (source, target), weight = adj.edge_index, adj.edge_weight.view(-1, 1)
    return lambda x: scatter(weight * x.index_select(0, source), target, dim=0, dim_size=adj.shape[0], reduce="sum")
