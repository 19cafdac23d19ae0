"""Can this prediction be relied on? Whether its solve converged, to what, and whether there is anything else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

import numpy as np

from lignn.backbones import GCN, SGC
from lignn.backbones.layers import Linear
from lignn.classifier.live import Live
from lignn.equilibrium import Status
from lignn.equilibrium.wellposed import Bound, spectral_radius, theorem1
from lignn.errors import InputError
from lignn.methods import EIGNN, IGNN, BackboneStep, LabelInputted, PropagationStep
from lignn.propagation import Adjacency

Verdict = Literal["yes", "no", "unknown"]


@dataclass(frozen=True)
class Certificate:
    """The account of the last solve, and how well-posed the equilibrium is.

    Attributes:
        solved: whether the method has an equilibrium at all; if not, nothing below says anything.
        status: how the solve ended.
        steps: of the solve.
        residual: its last change, in the solver's norm.
        tol: what was asked for.
        contraction: `K̂`, the largest ratio of two successive changes.
        spectral_radius: of the map's Jacobian at the equilibrium; None if it was not found, or for methods whose state
            is not labels.
        bounds: Theorem 1 in its three readings, where it applies (one-hop backbones).
        unique: "yes" where that is proved (a bound holds, a linear map whose spectral radius is below 1, IGNN, EIGNN),
            "no" where plain iteration is not even drawn to it (spectral radius at least 1) or label propagation keeps
            whatever it starts with (nodes that no known label reaches), else "unknown".
        message: of the solve, with what to try.
    """

    solved: bool
    status: str
    steps: int
    residual: float
    tol: float
    contraction: float
    spectral_radius: float | None
    bounds: tuple[Bound, ...]
    unique: Verdict
    message: str

    @property
    def contracts(self) -> bool:
        """Whether nothing speaks against a single equilibrium: K̂ and spectral radius are both below 1."""
        return self.solved and self.contraction < 1 and (self.spectral_radius or 0) < 1 and self.unique != "no"

    @property
    def error(self) -> float:
        """How far the state may be from the equilibrium, in the solver's norm: `residual / (1 - K̂)`."""
        return self.residual / (1 - self.contraction) if self.contraction < 1 else float("inf")

    def __str__(self) -> str:
        if not self.solved:
            return "This method predicts in a fixed number of passes: there is no equilibrium to certify."
        drawn = "plain iteration is drawn to it" if self.contracts else "plain iteration need not be drawn to it"
        radius = "not computed" if self.spectral_radius is None else f"{self.spectral_radius:.3f}; {drawn}"
        lines = [
            f"The last solve: {self.message}.",
            f"Spectral radius of the Jacobian at the equilibrium: {radius}.",
            *(_in_words(bound) for bound in self.bounds),
            {
                "yes": "The equilibrium is unique: every solve finds it, wherever it starts.",
                "no": "The equilibrium may not be unique: label updates are solved from zero.",
                "unknown": "Nothing speaks against a unique equilibrium, but it is not proved."
                if self.contracts
                else "Whether the equilibrium is unique is unknown: label updates are solved from zero.",
            }[self.unique],
        ]
        return "\n".join(lines)


def _in_words(bound: Bound) -> str:
    holds = "holds: the map contracts" if bound.holds else "does not hold, which proves nothing"
    return f"Theorem 1 ({bound.name}): {bound.value:.3g} < {bound.limit:.3g} {holds}."


def certify(live: Live) -> Certificate:
    """The certificate of a prediction."""
    solution, method = live.solution, live.method
    label_inputted = isinstance(method, LabelInputted)
    if solution is None or (label_inputted and not live.iterates):
        return Certificate(False, "no equilibrium", 0, 0.0, 0.0, 0.0, None, (), "unknown", "")
    finite = solution.status is not Status.NON_FINITE
    radius = spectral_radius_at(live) if label_inputted and finite else None
    bounds = tuple(theorem1_bounds(live)) if label_inputted else ()
    unique: Verdict = "unknown"
    if any(bound.holds for bound in bounds) or isinstance(method, IGNN | EIGNN):
        unique = "yes"
    elif solution.status in (Status.DIVERGING, Status.NON_FINITE) or _keeps_its_start(live):
        unique = "no"
    elif radius is not None and (radius >= 1 or _is_linear(live)):
        unique = "yes" if radius < 1 else "no"
    return Certificate(
        True,
        str(solution.status),
        solution.steps,
        solution.residual,
        solution.tol,
        solution.contraction,
        radius,
        bounds,
        unique,
        solution.message,
    )


def _is_linear(live: Live) -> bool:
    return isinstance(live.method, LabelInputted) and isinstance(live.method.step, PropagationStep)


def _keeps_its_start(live: Live) -> bool:
    """Whether label propagation has nodes that no known label reaches; with residuals they are held at zero.

    The spectral radius is 1 then, which its rounding may well put below.
    """
    step = live.method.step if isinstance(live.method, LabelInputted) else None
    return isinstance(step, PropagationStep) and step.residual is None and not bool(live.problem.evidence.all())


def spectral_radius_at(live: Live) -> float | None:
    """Of the Jacobian of `Ŷ ↦ step(clamp(Ŷ))` at the prediction; None if Arnoldi's method does not converge."""
    assert live.solution is not None
    clamp = live.problem.labels.clamp
    try:
        return spectral_radius(lambda state: live.step(clamp(state)), live.solution.value, tol=1e-3)
    except InputError:
        return None


def theorem1_bounds(live: Live) -> list[Bound]:
    """Theorem 1 for a backbone of one hop with a linear map, `σ(Ã Z W_z + …)`; nothing for others."""
    step = live.method.step if isinstance(live.method, LabelInputted) else None
    backbone = step.backbone if isinstance(step, BackboneStep) else None
    if isinstance(backbone, GCN) and len(backbone.convs) == 1:
        weight = cast(Linear, backbone.first.lin).weight
    elif isinstance(backbone, SGC) and backbone.hops == 1 and len(backbone.head.lins) == 1:
        weight = backbone.head.first.weight
    else:
        return []
    adj = live.problem.adjacency(backbone.normalization, backbone.self_loops)
    activation = "sigmoid" if live.problem.labels.multilabel else "softmax"
    label_weight = weight[:, : backbone.label_inputs].detach()
    return theorem1(label_weight, live.problem.edges.num_nodes, _norm(adj), activation)


def _norm(adj: Adjacency) -> float:
    """`‖Ã‖₂`; for a directed graph its bound `√(‖Ã‖₁ ‖Ã‖_∞)`."""
    if adj.T is adj:
        return adj.spectral_radius()
    matrix = adj.to_scipy()
    return float(np.sqrt(matrix.sum(0).max() * matrix.sum(1).max()))
