"""Label propagation, plain and with estimated residuals: the linear steps of the family."""

from __future__ import annotations

from collections.abc import Mapping

from lignn.backbones import Backbone
from lignn.equilibrium import Implicit, LastStep
from lignn.equilibrium.solvers import Anderson, Solver
from lignn.methods.label_inputted import LabelInputted
from lignn.methods.masking import ShareOfTraining
from lignn.methods.steps import PropagationStep


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
