"""Label Input, Label Reuse, LI-GNN and LaE: choices of masking, solver and gradient for one class."""

from __future__ import annotations

from lignn.backbones import Backbone
from lignn.equilibrium import Gradient, Implicit, LastStep, gradient_named
from lignn.equilibrium.solvers import Picard, Solver, by_name
from lignn.errors import ConfigError
from lignn.labels import SoftmaxJacobian
from lignn.methods.label_inputted import LabelInputted, LoopingState, MaskRate, ShareOfTraining
from lignn.methods.steps import BackboneStep


def _passes(count: int) -> Picard:
    return Picard(tol=0.0, max_steps=count)


class LabelReuse(LabelInputted):
    """`Ŷ ← f_θ(A, [(M_t̄ + M_o) Ŷ + M_i Y | X])`, k passes before the one that is differentiated.

    Wang, "Bag of tricks of semi-supervised classification with graph neural networks", 2021.

    The published form hides the supervised labels from all passes, yet feeds back predictions of the supervised nodes
    that the same weights made: they come to hold the labels (the leak of the paper's section 3.3). `corrected` (LR+)
    clamps all known labels in the k passes and hides whole rows of the state before the last one, as LI-GNN does.

    Args:
        backbone: takes c label inputs.
        mask_rate: share of the known labels that is hidden in an epoch, α.
        iterations: k.
        corrected: LR+.
    """

    def __init__(
        self, backbone: Backbone, mask_rate: float = 0.5, iterations: int = 1, corrected: bool = False
    ) -> None:
        masking = LoopingState() if corrected else ShareOfTraining()
        step = BackboneStep(backbone)
        super().__init__(step, masking, _passes(iterations), LastStep(), mask_rate, _passes(iterations + 1))


class LabelInput(LabelReuse):
    """`Ŷ = f_θ(A, [M_i Y | X])`: known labels go in, one pass.

    Shi et al., "Masked label prediction: unified message passing model for semi-supervised classification", IJCAI 2021.

    Args:
        backbone: takes c label inputs.
        mask_rate: share of the known labels that is hidden in an epoch, α.
    """

    def __init__(self, backbone: Backbone, mask_rate: float = 0.5) -> None:
        super().__init__(backbone, mask_rate, iterations=0)


class LIGNN(LabelInputted):
    """Label-inputted implicit GNN, the paper's Algorithm 1.

    `Ŷ = σ(f_θ(A, [(I - M_t) Ŷ + M_t Y | X]))` solved to equilibrium, the masked label strategy on the looping state,
    implicit differentiation.

    Args:
        backbone: takes c label inputs.
        mask_rate: β, or "adaptive".
        forward_mask: hide rows of the state in the forward solve too.
        solver: of the state.
        gradient: default the paper's implicit one.
        warm_start: start each solve from the last epoch's state.
        feature_mask: share of the nodes whose features are hidden in the taped step, so that labels must carry it.
        jacobian: of the softmax in the adjoint: "exact", or its "diagonal" alone, as the authors ran it. The loss is
            differentiated exactly either way.
    """

    def __init__(
        self,
        backbone: Backbone,
        mask_rate: MaskRate = 0.5,
        forward_mask: bool = False,
        solver: Solver | None = None,
        gradient: Gradient | None = None,
        warm_start: bool = False,
        feature_mask: float = 0.0,
        jacobian: SoftmaxJacobian = "exact",
    ) -> None:
        gradient = gradient or Implicit("paper")
        if jacobian != "exact" and not (isinstance(gradient, Implicit) and gradient.form == "paper"):
            raise ConfigError(f"jacobian {jacobian!r} is for the paper's gradient only, got {gradient}")
        super().__init__(
            BackboneStep(backbone, jacobian),
            LoopingState(forward_mask),
            solver or Picard(tol=1e-4, max_steps=100),
            gradient,
            mask_rate,
            warm_start=warm_start,
            feature_mask=feature_mask,
        )

    @classmethod
    def of_paper(
        cls,
        backbone: Backbone,
        mask_rate: MaskRate = 0.5,
        forward_mask: bool = False,
        max_steps: int = 10,
        solver: str = "picard",
        gradient: str = "paper",
        warm_start: bool = False,
        feature_mask: float = 0.0,
        jacobian: SoftmaxJacobian = "exact",
        forward_growth: float | None = None,
    ) -> LIGNN:
        """LI-GNN with the tolerances behind the paper's figures and tables.

        Root mean square `1e-4 / c` forward and `1e-5 (c-1) / c²` backward; one budget for both. With an adaptive mask
        rate the backward solve stops once it expands by more than 1.1. A forward one may expand while labels travel
        along a path (docs/reproduction.md); `forward_growth` stops it too. The paper's choices are the defaults.
        """
        c, kind = backbone.num_classes, by_name(solver)
        forward = kind(tol=1e-4 / c, max_steps=max_steps, growth=forward_growth)
        growth = 1.1 if mask_rate == "adaptive" else None
        backward = kind(tol=1e-5 * (c - 1) / c**2, max_steps=max_steps, growth=growth)
        strategy = gradient_named(gradient, backward)
        return cls(backbone, mask_rate, forward_mask, forward, strategy, warm_start, feature_mask, jacobian)


class LaE(LabelInputted):
    """Label as Equilibrium, the authors' successor of LI-GNN.

    All known labels are clamped in the solve. Where training and prediction are on the same graph, the equilibrium of
    the last prediction is the state of the next epoch: it was solved with the same weights. The gradient is the exact
    one, its adjoint stops as soon as it expands.

    Args:
        backbone: takes c label inputs.
        mask_rate: β.
        max_steps: budget, forward and backward.
        tol: largest change of an entry.
        feature_mask: share of the nodes whose features are hidden in the taped step.
    """

    def __init__(
        self,
        backbone: Backbone,
        mask_rate: MaskRate = 0.5,
        max_steps: int = 300,
        tol: float = 3e-6,
        feature_mask: float = 0.0,
    ) -> None:
        forward = Picard(tol=tol, max_steps=max_steps, norm="max")
        backward = Picard(tol=tol, max_steps=max_steps, norm="max", growth=1.0)
        super().__init__(
            BackboneStep(backbone),
            LoopingState(),
            forward,
            Implicit("exact", backward),
            mask_rate,
            reuse_evaluation=True,
            feature_mask=feature_mask,
        )
