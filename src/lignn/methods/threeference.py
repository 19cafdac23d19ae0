"""3ference: inferring from references with differences."""

from __future__ import annotations

from typing import ClassVar

from torch import Generator

from lignn.backbones import SGC, frozen_dropout
from lignn.equilibrium import LastStep, Map
from lignn.equilibrium.solvers import Picard, Solver
from lignn.errors import ConfigError
from lignn.methods.label_inputted import LabelInputted
from lignn.methods.masking import ShareOfTraining
from lignn.methods.method import Carry, Epoch
from lignn.methods.problem import LabelWeight, Problem
from lignn.methods.steps import BackboneStep
from lignn.propagation import Adjacency


class NeighbourStep(BackboneStep):
    """`Ŷ ↦ σ(h_θ((Ã - diag Ã) Ŷ W_y + Ã X W_x))`: labels come from neighbours, features also from the node itself.

    Args:
        backbone: SGC with one propagation, followed by layers that act on each node alone.
    """

    teachable: ClassVar[bool] = False

    def __init__(self, backbone: SGC) -> None:
        super().__init__(backbone)
        if not isinstance(backbone, SGC) or backbone.hops != 1:
            raise ConfigError("3ference needs an SGC of one hop: over two hops a node's own label comes back to it")

    def bind(self, problem: Problem) -> Map:
        """Return the map; the operator of the labels has no diagonal."""
        adj = problem.operator(self.backbone)
        features = self.backbone.features(problem.x, adj)
        neighbours = self._neighbours(problem)
        return lambda state: problem.labels.activation(self.backbone.step(features, state, neighbours))

    def label_weight(self, problem: Problem) -> LabelWeight | None:
        """Return `W_y` and `Ã - diag Ã` for a linear head."""
        found = super().label_weight(problem)
        return None if found is None else found._replace(adjacency=self._neighbours(problem))

    def _neighbours(self, problem: Problem) -> Adjacency:
        """Return `Ã - diag Ã`."""
        adj = problem.operator(self.backbone)
        return problem.once(("no diagonal", adj), adj.without_diagonal)


class ThreeFerence(LabelInputted):
    """`Ŷ = f_θ(Ã - diag(Ã), [(I - M_t) Ŷ + M_t Y | X])` with one hop.

    Luo et al., "Inferring from references with differences for semi-supervised node classification on graphs", 2022.

    Since no node sees its own label, it is trained on all known nodes in one pass, without a mask.

    Args:
        backbone: an `SGC` of one hop with c label inputs, e.g. with an MLP as its head.
        solver: solver of predictions.
    """

    def __init__(self, backbone: SGC, solver: Solver | None = None) -> None:
        solver = solver or Picard(tol=1e-5, max_steps=100)
        super().__init__(NeighbourStep(backbone), ShareOfTraining(), solver, LastStep())

    def epoch(self, problem: Problem, generator: Generator, carry: Carry | None = None) -> Epoch:
        """Compute the cross-entropy over all known nodes, each predicted from the labels of its neighbours."""
        labels = problem.labels
        with frozen_dropout(self.step, generator):
            loss = self.step.loss(labels, self.step.bind(problem)(labels.onehot), labels.mask)
        return Epoch(loss, problem, carry or Carry())
