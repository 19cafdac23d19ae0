"""Label Input, Label Reuse, LI-GNN and LaE: choices of masking, solver and gradient for one class."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, get_args

from lignn.backbones import Backbone
from lignn.equilibrium import Gradient, Implicit, LastStep
from lignn.equilibrium.gradient import gradient_named
from lignn.equilibrium.solvers import BY_NAME, Picard, Solver
from lignn.errors import ConfigError, unknown
from lignn.labels import LossOf, SoftmaxJacobian
from lignn.methods.contraction import Contraction, ContractionKind
from lignn.methods.label_inputted import LabelInputted, MaskRate
from lignn.methods.masking import LoopingState, ShareOfTraining
from lignn.methods.steps import BackboneStep

Adjoint = Literal["paper", "relative"]
Hide = Literal["rows", "labels"]

_RELATIVE_TOL = 1e-2
"""Relative tolerance of the adjoint: the gradient of one random mask need not be more exact than this."""


def _passes(count: int) -> Picard:
    return Picard(tol=0.0, max_steps=count)


def check_hide(hide: str, more: bool) -> None:
    """Raise if `hide` is unknown, or if a state of other epochs would bring back the labels that it hides."""
    if hide not in get_args(Hide):
        raise ConfigError(f"hide {hide!r} is unknown; choose from {', '.join(get_args(Hide))}")
    if hide == "labels" and more:
        raise ConfigError(
            "hide='labels' solves from zero and hides no rows; leave out warm_start and forward_mask, or give the "
            "method option hide='rows'"
        )


class LabelReuse(LabelInputted):
    """`Ŷ ← f_θ(A, [(M_t̄ + M_o) Ŷ + M_i Y | X])`, with k passes before the one that is differentiated.

    Wang, "Bag of tricks of semi-supervised classification with graph neural networks", 2021.

    The published form hides the supervised labels from all passes. It still feeds back predictions of the supervised
    nodes. The same weights made these predictions, so they come to contain the labels (the leak of section 3.3).
    `corrected` (LR+) clamps all known labels in the k passes and hides whole rows of the state before the last one, as
    LI-GNN does.

    Args:
        backbone: network with c label inputs.
        mask_rate: share of the known labels that is hidden in an epoch, α.
        iterations: k.
        corrected: use LR+.
        loss: what the cross-entropy is computed from.
    """

    def __init__(
        self,
        backbone: Backbone,
        mask_rate: float = 0.5,
        iterations: int = 1,
        corrected: bool = False,
        loss: LossOf = "probabilities",
    ) -> None:
        masking = LoopingState() if corrected else ShareOfTraining()
        step = BackboneStep(backbone, loss=loss)
        super().__init__(step, masking, _passes(iterations), LastStep(), mask_rate, _passes(iterations + 1))


class LabelInput(LabelReuse):
    """`Ŷ = f_θ(A, [M_i Y | X])`: known labels are inputs of a single pass.

    Shi et al., "Masked label prediction: unified message passing model for semi-supervised classification", IJCAI 2021.

    Args:
        backbone: network with c label inputs.
        mask_rate: share of the known labels that is hidden in an epoch, α.
        loss: what the cross-entropy is computed from.
    """

    def __init__(self, backbone: Backbone, mask_rate: float = 0.5, loss: LossOf = "probabilities") -> None:
        super().__init__(backbone, mask_rate, iterations=0, loss=loss)


class LIGNN(LabelInputted):
    """Label-inputted implicit GNN, the paper's Algorithm 1.

    `Ŷ = σ(f_θ(A, [(I - M_t) Ŷ + M_t Y | X]))` solved to equilibrium, with the masked label strategy on the looping
    state and implicit differentiation.

    The defaults are the choices behind the paper's figures and tables.

    Args:
        backbone: network with c label inputs.
        mask_rate: β, or "adaptive".
        forward_mask: hide rows of the state in the forward solve too.
        solver: name of the solver of both solves, or a forward solver, whose own `tol` and `max_steps` are used.
        gradient: "paper", "exact", "last_step", or a gradient, whose own adjoint solver is used.
        warm_start: start each solve from the last epoch's state.
        feature_mask: share of the nodes whose features are hidden in the taped step, so that it has to use labels.
        jacobian: softmax Jacobian in the adjoint: "exact", or only its "diagonal", as the authors ran it. The loss is
            differentiated exactly in both cases.
        max_steps: budget of each solve, forward and backward.
        tol: root mean square tolerance of the forward solve; None is the paper's `1e-4 / c`.
        forward_growth: stop a forward solve once its change grows by more than this factor; None lets it grow, since
            changes may grow while labels travel along a path (docs/results/figure4.md).
        adjoint: tolerance of the backward solve. "paper" is the absolute `1e-5 (c-1) / c²`. "relative" is 1e-2 relative
            to the gradient; this solve also stops when the adjoint expands. With an adaptive mask rate, both stop when
            the adjoint expands by more than a factor of 1.1.
        contraction: "free" or "proved", see `methods.contraction`.
        kappa: bound κ that the weights are scaled to; default: that of `contraction`.
        loss: what the cross-entropy is computed from; always the probabilities for the paper's gradient, whose adjoint
            needs them.
        hide: what is hidden of the nodes that supervise. "rows" of the state in the taped step, as in the paper: the
            solve knows all labels. Or their "labels", in all steps: predictions take their place, as in Label Reuse.
    """

    def __init__(
        self,
        backbone: Backbone,
        mask_rate: MaskRate = 0.5,
        forward_mask: bool = False,
        solver: str | Solver = "picard",
        gradient: str | Gradient = "paper",
        warm_start: bool = False,
        feature_mask: float = 0.0,
        jacobian: SoftmaxJacobian = "exact",
        max_steps: int = 10,
        tol: float | None = None,
        forward_growth: float | None = None,
        adjoint: Adjoint = "paper",
        contraction: ContractionKind = "free",
        kappa: float | None = None,
        loss: LossOf = "probabilities",
        hide: Hide = "rows",
    ) -> None:
        c, adaptive = backbone.num_classes, mask_rate == "adaptive"
        if isinstance(solver, str):
            if solver not in BY_NAME:
                raise unknown("solver", solver, BY_NAME)
            tol = 1e-4 / c if tol is None else tol
            solver = BY_NAME[solver](tol=tol, max_steps=max_steps, growth=forward_growth)
        if adjoint not in get_args(Adjoint):
            raise ConfigError(f"adjoint {adjoint!r} is unknown; choose from {', '.join(get_args(Adjoint))}")
        if adjoint == "paper":
            backward = replace(solver, tol=1e-5 * (c - 1) / c**2, norm="rms", growth=1.1 if adaptive else None)
        else:
            backward = replace(solver, tol=_RELATIVE_TOL, norm="relative", growth=1.1 if adaptive else 1.0)
        if isinstance(gradient, str):
            gradient = gradient_named(gradient, backward)
        papers = isinstance(gradient, Implicit) and gradient.form == "paper"
        check_hide(hide, forward_mask or warm_start)
        if jacobian != "exact" and not papers:
            raise ConfigError(f"jacobian {jacobian!r} is for the paper's gradient only, got {gradient}")
        super().__init__(
            BackboneStep(backbone, jacobian, "probabilities" if papers else loss),
            ShareOfTraining() if hide == "labels" else LoopingState(forward_mask, constant_scale=papers),
            solver,
            gradient,
            mask_rate,
            warm_start=warm_start,
            feature_mask=feature_mask,
            contraction=Contraction.of(contraction, kappa),
        )


class LaE(LabelInputted):
    """Label as Equilibrium, the authors' successor of LI-GNN.

    All known labels are clamped in the solve. If training and prediction are on the same graph, the equilibrium of the
    last prediction is the state of the next epoch, because it was solved with the same weights. The gradient is exact,
    and its adjoint stops as soon as it expands.

    Args:
        backbone: network with c label inputs.
        mask_rate: β.
        max_steps: budget of each solve, forward and backward.
        tol: largest change of an entry.
        feature_mask: share of the nodes whose features are hidden in the taped step.
        contraction: "free" or "proved", see `methods.contraction`.
        kappa: bound κ that the weights are scaled to; default: that of `contraction`.
        loss: what the cross-entropy is computed from.
    """

    def __init__(
        self,
        backbone: Backbone,
        mask_rate: MaskRate = 0.5,
        max_steps: int = 300,
        tol: float = 3e-6,
        feature_mask: float = 0.0,
        contraction: ContractionKind = "free",
        kappa: float | None = None,
        loss: LossOf = "probabilities",
    ) -> None:
        forward = Picard(tol=tol, max_steps=max_steps, norm="max")
        super().__init__(
            BackboneStep(backbone, loss=loss),
            LoopingState(),
            forward,
            Implicit("exact", replace(forward, growth=1.0)),
            mask_rate,
            reuse_evaluation=True,
            feature_mask=feature_mask,
            contraction=Contraction.of(contraction, kappa),
        )
