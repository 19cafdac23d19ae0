"""3ference: inferring from references with differences."""

from __future__ import annotations

from torch import Generator, Tensor

from lignn.backbones import SGC, frozen_dropout
from lignn.equilibrium import LastStep, Map
from lignn.equilibrium.solvers import Picard, Solver
from lignn.errors import ConfigError
from lignn.methods.label_inputted import LabelInputted, ShareOfTraining
from lignn.methods.problem import Problem
from lignn.methods.steps import BackboneStep


class NeighbourStep(BackboneStep):
    """`Ŷ ↦ σ(h_θ((Ã - diag Ã) Ŷ W_y + Ã X W_x))`: labels come from neighbours only, features from the node itself too.

    Args:
        backbone: one propagation, and layers that act on each node alone.
    """

    def __init__(self, backbone: SGC) -> None:
        super().__init__(backbone)
        if not isinstance(backbone, SGC) or backbone.hops != 1:
            raise ConfigError("3ference needs an SGC of one hop: over two hops a node's own label comes back to it")

    def bind(self, problem: Problem) -> Map:
        """The label side has no diagonal."""
        adj = problem.adjacency(self.backbone.normalization, self.backbone.self_loops)
        features = self.backbone.features(problem.x, adj)
        neighbours = adj.without_diagonal()
        return lambda state: problem.labels.activation(self.backbone.step(features, state, neighbours))


class ThreeFerence(LabelInputted):
    """`Ŷ = f_θ(Ã - diag(Ã), [(I - M_t) Ŷ + M_t Y | X])` with one hop.

    Luo et al., "Inferring from references with differences for semi-supervised node classification on graphs", 2022.

    Since no node sees its own label, it is trained on all known nodes in one pass, without a mask.

    Args:
        backbone: an `SGC` of one hop with c label inputs, e.g. with an MLP as its head.
        solver: of predictions.
    """

    def __init__(self, backbone: SGC, solver: Solver | None = None) -> None:
        solver = solver or Picard(tol=1e-5, max_steps=100)
        super().__init__(NeighbourStep(backbone), ShareOfTraining(), solver, LastStep())

    def loss(self, problem: Problem, generator: Generator) -> Tensor:
        """Cross-entropy over all known nodes, each predicted from the labels of its neighbours."""
        labels = problem.labels
        with frozen_dropout(self.step, generator):
            return self.step.loss(labels, self.step.bind(problem)(labels.onehot), labels.mask)
