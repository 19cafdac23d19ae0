"""Products with Ã and with sparse features, and the construction of Ã, against `torch.sparse`, PyG and SciPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from lignn.bench.graphs import power_law_graph
from lignn.bench.timing import Record, Side, compare
from lignn.graph import Graph
from lignn.propagation import Adjacency, SparseMatrix

Product = Callable[[Tensor], Tensor]


GRAPHS = {300: 1500, 2277: 65_000, 34_493: 530_000}
"""Nodes and entries of small graphs: a toy, and graphs of the size of Chameleon and Physics."""
TORCH = "torch.sparse"


def run(quick: bool = False) -> Iterator[Record]:
    """Measure all cases; with `quick`, on a tenth of the size and in fewer rounds."""
    scale, rounds = (10, 5) if quick else (1, 15)
    graph = power_law_graph(170_000 // scale, 2_400_000 // scale)
    for columns in (1, 2, 3, 5, 8, 40, 64, 256):
        yield from _propagation(graph, columns, rounds)
    for nodes, entries in GRAPHS.items():
        small = power_law_graph(nodes, entries)
        for columns in (1, 2, 5, 8, 64):
            yield from _propagation(small, columns, rounds * max(1_300_000 // entries // scale, 1))
    yield from _features(34_493 // scale, 8_415 // scale, 0.004, 64, rounds)
    yield from _building(graph, rounds)
    yield from _building(power_law_graph(10**6 // scale**2, 2 * 10**7 // scale**2), 3)


def _propagation(graph: Graph, columns: int, rounds: int) -> list[Record]:
    adj = Adjacency.normalized(graph)
    sides: dict[str, Product] = {
        "lignn": adj.__matmul__,
        TORCH: adj.torch_sparse.__matmul__,
        "gather-scatter": _gather_scatter(adj),
    }
    config = {"nodes": graph.num_nodes, "entries": adj.nnz, "columns": columns}
    return _forward_and_backward(f"{graph.num_nodes} nodes × {columns}", sides, graph.num_nodes, config, rounds)


def _features(rows: int, width: int, density: float, columns: int, rounds: int) -> list[Record]:
    """Multiply bag-of-words features by weights, as in the first layer of a network; the size is that of Physics."""
    generator = np.random.default_rng(0)
    x = SparseMatrix.from_scipy(sp.random_array((rows, width), density=density, rng=generator), torch.float32)
    sides: dict[str, Product] = {"lignn": x.__matmul__, TORCH: x.torch_sparse.__matmul__}
    config = {"rows": rows, "width": width, "entries": x.nnz, "columns": columns}
    return _forward_and_backward(f"features {rows} × {width} × {columns}", sides, width, config, rounds)


def _building(graph: Graph, rounds: int) -> list[Record]:
    """Build Ã from an edge list; in SciPy by conversion from COO to CSR and products with diagonal matrices."""
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
    """Measure two cases: the product alone, and together with its backward pass."""
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
    """Return the product as PyG's GCNConv computes it: gather at the sources, weight, and add at the targets."""
    from torch_geometric.utils import scatter

    (source, target), weight = adj.edge_index, adj.edge_weight.view(-1, 1)
    return lambda x: scatter(weight * x.index_select(0, source), target, dim=0, dim_size=adj.shape[0], reduce="sum")
