"""Small graphs, and the comparison of a backbone with a network on concatenated inputs."""

import warnings
from collections.abc import Callable

import pytest
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from lignn import Graph
from lignn.backbones import Backbone
from lignn.propagation import SparseMatrix

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # PyG calls torch.jit.script when it is imported
    import torch_geometric.nn  # noqa: F401

NODES, FEATURES, CLASSES = 15, 9, 3


def make_graph(weighted: bool = False, dtype: torch.dtype = torch.float64) -> Graph:
    """Directed, some edges twice, no self-loops; the last node is isolated."""
    generator = torch.Generator().manual_seed(1)
    edges = torch.randint(NODES - 1, (2, 50), generator=generator)
    edges = edges[:, edges[0] != edges[1]]
    edges = torch.cat([edges, edges[:, :4]], 1)
    x = torch.randn(NODES, FEATURES, generator=generator, dtype=torch.float64)
    x = x * (torch.rand(x.shape, generator=generator) < 0.4)
    weight = torch.rand(edges.shape[1], generator=generator) + 0.1 if weighted else None
    return Graph(edges, x=x.to(dtype), edge_weight=weight, num_nodes=NODES)


def make_state(dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.rand(NODES, CLASSES, generator=torch.Generator().manual_seed(2), dtype=torch.float64).to(dtype)


@pytest.fixture
def graph() -> Graph:
    return make_graph()


@pytest.fixture
def state() -> Tensor:
    return make_state()


def run(backbone: Backbone, graph: Graph, x: Tensor, state: Tensor, sparse: bool) -> Tensor:
    adj = backbone.adjacency(graph, x.dtype)
    inputs = SparseMatrix.from_scipy(sp.csr_array(x.detach().numpy())) if sparse else x
    return backbone.step(backbone.features(inputs, adj), state, adj)


@pytest.fixture(params=["dense", "sparse", "single"])
def assert_same(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Outputs and gradients (parameters by name, state, features) equal those of a network called with `[S | X]`."""
    dtype, tolerance = (torch.float32, 1e-5) if request.param == "single" else (torch.float64, 1e-10)
    sparse = request.param == "sparse"

    def check(
        backbone: Backbone,
        call: Callable[[Tensor, Graph], Tensor],
        parameters: dict[str, nn.Parameter],
        weighted: bool = False,
    ) -> None:
        graph = make_graph(weighted, dtype)
        ours, theirs = ([make_state(dtype).requires_grad_(), graph.x.clone().requires_grad_()] for _ in range(2))
        out = run(backbone.to(dtype), graph, ours[1], ours[0], sparse)
        for parameter in parameters.values():
            parameter.data = parameter.data.to(dtype)
        expected = call(torch.cat(theirs, 1), graph)
        torch.testing.assert_close(out, expected, atol=tolerance, rtol=tolerance)

        along = torch.randn(out.shape, generator=torch.Generator().manual_seed(3)).to(dtype)
        (out * along).sum().backward()
        (expected * along).sum().backward()
        for name, parameter in backbone.named_parameters():
            torch.testing.assert_close(parameter.grad, parameters[name].grad, atol=tolerance, rtol=tolerance, msg=name)
        for mine, other in list(zip(ours, theirs, strict=True))[: 1 if sparse else 2]:
            torch.testing.assert_close(mine.grad, other.grad, atol=tolerance, rtol=tolerance)

    return check


@pytest.fixture
def assert_same_as_pyg(assert_same: Callable[..., None]) -> Callable[..., None]:
    """The same for a PyG model that has the same names of weights."""

    def check(backbone: Backbone, model: nn.Module, weighted: bool = False) -> None:
        model.load_state_dict(backbone.state_dict())

        def call(inputs: Tensor, graph: Graph) -> Tensor:
            weight = {"edge_weight": graph.edge_weight.to(inputs.dtype)} if weighted else {}
            return model.to(inputs.dtype)(inputs, graph.edge_index, **weight)

        assert_same(backbone, call, dict(model.named_parameters()), weighted)

    return check
