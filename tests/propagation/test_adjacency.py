import copy
import gc
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from lignn import Adjacency, Graph
from lignn.errors import ConfigError, ConvergenceError, InputError
from lignn.propagation import PerOperator
from tests.problems import chain_operator, random_graph

KINDS = [
    pytest.param({"directed": directed, "weighted": weighted}, id=f"directed={directed},weighted={weighted}")
    for directed in (False, True)
    for weighted in (False, True)
]


def dense(graph, self_loops=False):
    """Return A as a dense float64 matrix with targets in its rows, adding one edge after the other."""
    a = torch.zeros(graph.num_nodes, graph.num_nodes, dtype=torch.float64)
    weight = torch.ones(graph.num_edges) if graph.edge_weight is None else graph.edge_weight
    for (source, target), w in zip(graph.edge_index.T.tolist(), weight.tolist(), strict=True):
        a[target, source] += w
    return a + torch.eye(graph.num_nodes) if self_loops else a


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("self_loops", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_normalized_equals_the_dense_formula(kind, self_loops, dtype):
    graph = random_graph(**kind)
    a = dense(graph, self_loops)
    degree = a.sum(1)
    scale = torch.where(degree > 0, degree.rsqrt(), 0)
    expected = {"symmetric": scale[:, None] * a * scale, "row": scale[:, None] ** 2 * a, "none": a}
    for normalization, formula in expected.items():
        adj = Adjacency.normalized(graph, normalization, self_loops, dtype)
        assert (adj.dtype, adj.shape) == (dtype, (30, 30))
        torch.testing.assert_close(adj.to_dense(), formula.to(dtype))


def test_path_has_the_textbook_operator():
    path = torch.arange(9)
    graph = Graph(torch.stack([path, path + 1]), num_nodes=10).to_undirected()
    torch.testing.assert_close(Adjacency.normalized(graph, dtype=torch.float64).to_dense(), chain_operator(10))


@pytest.mark.parametrize("add_self_loops", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_normalized_equals_gcn_norm_of_pyg(weighted, add_self_loops):
    """The edges are directed, some are given twice, and some are self-loops."""
    from torch_geometric.nn.conv.gcn_conv import gcn_norm
    from torch_geometric.utils import to_dense_adj

    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(20, (2, 90), generator=generator)
    edges = edges[:, edges[0] != edges[1]]
    edges = torch.cat([edges, edges[:, :9], torch.arange(4).repeat(2, 1)], 1)
    weight = torch.rand(edges.shape[1], generator=generator, dtype=torch.float64) if weighted else None
    theirs = gcn_norm(edges, weight, num_nodes=22, add_self_loops=add_self_loops, dtype=torch.float64)
    ours = Adjacency.normalized(
        Graph(edges, edge_weight=weight, num_nodes=22), self_loops=add_self_loops, dtype=torch.float64
    )
    torch.testing.assert_close(ours.to_dense(), to_dense_adj(theirs[0], edge_attr=theirs[1], max_num_nodes=22)[0].T)


def test_edges_add_up_and_a_self_loop_keeps_its_weight():
    graph = Graph([[0, 0, 2], [1, 1, 2]], edge_weight=torch.tensor([1.0, 2.0, 5.0]), num_nodes=3)
    assert Adjacency.normalized(graph, "none").to_dense().tolist() == [[1, 0, 0], [3, 1, 0], [0, 0, 5]]
    assert Adjacency.normalized(graph, "none", self_loops=False).to_dense().tolist() == [
        [0, 0, 0],
        [3, 0, 0],
        [0, 0, 5],
    ]


@pytest.mark.parametrize("normalization", ["symmetric", "row", "none"])
def test_isolated_nodes_have_finite_rows(normalization):
    graph = Graph(torch.tensor([[0], [1]]), num_nodes=4)
    assert Adjacency.normalized(graph, normalization).to_dense()[3].tolist() == [0, 0, 0, 1]
    assert Adjacency.normalized(graph, normalization, self_loops=False).to_dense()[3].tolist() == [0, 0, 0, 0]


def test_graph_without_edges():
    graph = Graph(torch.empty(2, 0, dtype=torch.long), num_nodes=3)
    assert torch.equal(Adjacency.normalized(graph) @ torch.eye(3), torch.eye(3))
    assert torch.equal(Adjacency.normalized(graph, self_loops=False) @ torch.eye(3), torch.zeros(3, 3))


def test_products_follow_a_permutation_of_the_nodes():
    graph = random_graph(directed=True, weighted=True)
    order = torch.randperm(30, generator=torch.Generator().manual_seed(0))  # new number of each node
    permuted = Graph(order[graph.edge_index], edge_weight=graph.edge_weight, num_nodes=30)
    x = torch.randn(30, 7, dtype=torch.float64)
    permuted_x = torch.empty_like(x)
    permuted_x[order] = x
    before = Adjacency.normalized(graph, dtype=torch.float64) @ x
    after = Adjacency.normalized(permuted, dtype=torch.float64) @ permuted_x
    torch.testing.assert_close(after[order], before)


def test_information_flows_from_source_to_target():
    adj = Adjacency.normalized(Graph([[0], [1]], num_nodes=2), "none", self_loops=False)
    assert (adj @ torch.tensor([5.0, 7.0])).tolist() == [0, 5]
    assert (adj.T @ torch.tensor([5.0, 7.0])).tolist() == [7, 0]


def test_undirected_graph_needs_no_second_matrix_for_gradients():
    adj = Adjacency.normalized(random_graph(weighted=True))
    assert adj.T is adj
    directed = Adjacency.normalized(random_graph(directed=True))
    assert isinstance(directed.T, Adjacency)
    assert directed.T is not directed


@pytest.mark.parametrize("lam", [0.0, 0.3, 1.0])
def test_lazy_is_the_matrix_of_label_propagation(lam):
    adj = Adjacency.normalized(random_graph(), dtype=torch.float64)
    expected = (1 - lam) * torch.eye(30, dtype=torch.float64) + lam * adj.to_dense()
    torch.testing.assert_close(adj.lazy(lam).to_dense(), expected)
    assert adj.lazy(lam).T.nnz == adj.lazy(lam).nnz


def test_without_diagonal():
    adj = Adjacency.normalized(random_graph(directed=True))
    assert torch.equal(adj.without_diagonal().to_dense(), adj.to_dense().fill_diagonal_(0))
    assert adj.without_diagonal().nnz == adj.nnz - 30


def test_restricted_keeps_the_shape_and_subgraph_does_not():
    adj = Adjacency.normalized(random_graph(directed=True))
    rows, columns = torch.arange(30) % 2 == 0, torch.arange(30) % 3 == 0
    full = adj.to_dense()
    assert torch.equal(adj.restricted(rows, columns).to_dense(), full * rows[:, None] * columns)
    assert torch.equal(adj.restricted(columns=columns).to_dense(), full * columns)
    assert torch.equal(adj.restricted(rows).to_dense(), full * rows[:, None])
    assert adj.restricted(rows).nnz < adj.nnz
    assert torch.equal(adj.subgraph(rows).to_dense(), full[rows][:, rows])


def test_edge_list_is_that_of_the_graph():
    graph = random_graph(directed=True, weighted=True)
    adj = Adjacency.normalized(graph, "none", self_loops=False, dtype=torch.float64)
    again = Graph(adj.edge_index, edge_weight=adj.edge_weight, num_nodes=30)
    assert torch.equal(dense(again), dense(graph))
    assert adj.edge_index.dtype == torch.int64


def spectral_cases():
    ring = np.roll(np.eye(6), 1, axis=1)
    return {
        "one node": (np.array([[0.25]]), 0.25),
        "two nodes, a negative eigenvalue": (np.array([[0.0, 2], [2, 0]]), 2),
        "three nodes, a directed ring": (np.roll(np.eye(3), 1, axis=1), 1),
        "complex eigenvalues": (ring * np.array([[1], [2], [1], [1], [1], [1]]), 2 ** (1 / 6)),
        "acyclic": (np.triu(np.ones((600, 600)), 1), 0),
        "acyclic with loops": (np.triu(np.ones((600, 600))) * np.linspace(0.1, 0.7, 600), 0.7),
        "large ring": (np.roll(np.eye(700), 1, axis=1), 1),
        "no entries": (np.zeros((5, 5)), 0),
        "two blocks": (np.kron(np.diag([0.5, 3.0]), np.ones((400, 400)) / 400), 3),
        "nonsymmetric": (np.kron(np.array([[1.0, 4], [1, 1]]), np.ones((300, 300)) / 300), 3),
        "mixed signs": (np.diag([1.0, -4, 2]), 4),
    }


@pytest.mark.parametrize("case", spectral_cases())
def test_spectral_radius(case):
    matrix, expected = spectral_cases()[case]
    adj = Adjacency.from_scipy(sp.csr_array(matrix), torch.float64)
    assert adj.spectral_radius() == pytest.approx(expected, rel=1e-7, abs=1e-12)
    assert adj.T.spectral_radius() == pytest.approx(expected, rel=1e-7, abs=1e-12)


@pytest.mark.parametrize("n", [40, 2000])
def test_spectral_radius_of_a_normalised_graph_is_one(n):
    for directed in (False, True):
        graph = random_graph(n, directed=directed)
        assert Adjacency.normalized(graph, dtype=torch.float64).spectral_radius() == pytest.approx(1, rel=1e-7)
        assert Adjacency.normalized(graph, "row").spectral_radius() == pytest.approx(1, rel=1e-6)


def test_spectral_radius_that_is_not_found_says_so():
    ring = np.roll(np.eye(600), 1, axis=1)
    ring[0, 1] = 1.001
    with pytest.raises(ConvergenceError, match="600 × 600"):
        Adjacency.from_scipy(sp.csr_array(ring), torch.float64).spectral_radius()


def test_wrong_use_is_refused():
    graph = random_graph()
    with pytest.raises(ConfigError, match=r"unknown normalization 'symetric': did you mean 'symmetric'\?"):
        Adjacency.normalized(graph, "symetric")
    with pytest.raises(InputError, match="float32 or float64"):
        Adjacency.normalized(graph, dtype=torch.float16)
    adj = Adjacency.normalized(graph)
    with pytest.raises(InputError, match=r"λ = 1.5"):
        adj.lazy(1.5)
    with pytest.raises(InputError, match=r"boolean with 30 entries.*int64 of shape \(3,\)"):
        adj.subgraph(torch.tensor([1, 2, 3]))
    with pytest.raises(InputError, match="square, not 2 × 3"):
        Adjacency.from_scipy(sp.csr_array((2, 3)))


def test_values_per_operator_live_as_long_as_the_operator_and_stay_with_the_original():
    adj = Adjacency.normalized(random_graph())
    values: PerOperator[torch.Tensor] = PerOperator()
    values[adj] = torch.ones(3)
    assert len(copy.deepcopy(values)) == len(pickle.loads(pickle.dumps(values))) == 0
    assert len(values) == 1
    del adj
    gc.collect()
    assert len(values) == 0
