"""Label propagation, plain and with estimated residuals, and 3ference: what is sent on are labels of neighbours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from torch import Generator

from lignn.backbones import SGC, Backbone, frozen_dropout
from lignn.equilibrium import Implicit, LastStep, Map
from lignn.equilibrium.solvers import Anderson, Picard, Solver
from lignn.errors import ConfigError
from lignn.methods.label_inputted import LabelInputted
from lignn.methods.masking import ShareOfTraining
from lignn.methods.method import Carry, Epoch
from lignn.methods.problem import LabelWeight, Problem
from lignn.methods.steps import BackboneStep, PropagationStep
from lignn.propagation import Adjacency


class LPA(LabelInputted):
    """Label propagation: `Ŷ = A_λ ((I - M_t) Ŷ + M_t Y)`, `A_λ = (1-λ) I + λ Ã`.

    Zhu, Ghahramani and Lafferty, "Semi-supervised learning using Gaussian fields and harmonic functions", ICML 2003.
    Rewritten as the equilibrium `Ỹ = (I - M_t) A_λ Ỹ + M_t Y`; on the unlabelled block `(I - A_λ,uu)^-1 A_λ,ul Y_l`.
    Nothing is trained.

    Known rows are reset before every step. PyG's `LabelPropagation` adds the initial labels to every step instead, and
    has no self-loops in Ã. With a hook that resets the labels, and A_λ as its edges, it is the same
    (docs/how_it_works/family.md).

    Args:
        lam: λ; it changes the path to the equilibrium on unlabelled nodes, not the equilibrium itself.
        solver: solver of the equilibrium; `Picard(tol=0, max_steps=k)` for k propagations.
        type_weights: factors of the weights of edges by the name of their type, e.g. `{"pays": 1.0, "uses": 0.2}`;
            types that are not named keep their weights.
    """

    def __init__(
        self, lam: float = 0.9, solver: Solver | None = None, type_weights: Mapping[str, float] | None = None
    ) -> None:
        solver = solver or Anderson(tol=1e-6, max_steps=1000)
        super().__init__(PropagationStep(lam, type_weights=type_weights), ShareOfTraining(), solver, LastStep())


class ResLPA(LabelInputted):
    """Label propagation with residuals: `Ŷ = A_λ ((I - M_t) Ŷ + M_t Y) + λ g_θ(A, X)`.

    Luo et al., "ResLPA: label propagation with residual learning", 2021. The network g_θ estimates from features how
    the labels of neighbours differ. It is trained through the equilibrium, with a share of the known labels hidden in
    each epoch: A_λ has a large diagonal, so a clamped node would get its own label back. The state of nodes that no
    known label reaches stays zero, because there is nothing to correct.

    Args:
        residual: g_θ, a backbone without label inputs.
        lam: λ.
        mask_rate: share of the known labels that is hidden in an epoch.
        solver: solver of the equilibrium.
    """

    def __init__(
        self, residual: Backbone, lam: float = 0.9, mask_rate: float = 0.5, solver: Solver | None = None
    ) -> None:
        solver = solver or Anderson(tol=1e-5, max_steps=300)
        gradient = Implicit("exact", Anderson(tol=1e-5, max_steps=300, norm="relative"))
        super().__init__(PropagationStep(lam, residual), ShareOfTraining(), solver, gradient, mask_rate)


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
