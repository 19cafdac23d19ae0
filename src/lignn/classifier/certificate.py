"""Can this prediction be relied on? Whether its solve converged, and whether the equilibrium is the only one."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Literal

import numpy as np

from lignn import notebook
from lignn.equilibrium import Map, Solution, Status
from lignn.equilibrium.wellposed import Bound, spectral_radius, theorem1
from lignn.errors import ConvergenceWarning, InputError
from lignn.methods import BoundMethod, Prediction
from lignn.methods.starts import Starts, measure
from lignn.propagation import Adjacency, TypedAdjacency
from lignn.propagation.streamed import StreamedAdjacency, StreamedTyped

Verdict = Literal["yes", "no", "unknown"]

_TYPED = (TypedAdjacency, StreamedTyped)

PRODUCT = "product"
"""Name of the bound that contraction="proved" keeps (docs/how_it_works/contraction.md)."""


@dataclass(frozen=True)
class Certificate:
    """How the last solve ended, and how well-posed the equilibrium is.

    Attributes:
        solved: whether the method has an equilibrium at all; if not, all other values are meaningless.
        status: how the solve ended.
        steps: number of steps of the solve.
        residual: last change of the solve, in the solver's norm.
        tol: tolerance of the solve.
        contraction: `K̂`, the largest ratio of two successive changes, in the solve and in plain iteration.
        spectral_radius: spectral radius of the map's Jacobian at the equilibrium; None if it was not found, or for
            methods whose state is not labels.
        bounds: Theorem 1 in its three readings, if it applies (one-hop backbones), and the product bound.
        unique: "yes" if that is proved (a bound holds, a linear map has a spectral radius below 1, or the method
            contracts by construction), "no" if plain iteration does not converge to it (spectral radius of at least 1)
            or another start gives other predictions, or label propagation keeps its start (at nodes that no known label
            reaches), otherwise "unknown".
        message: message of the solve, with what to try.
        starts: what other starts give; None if they were not tried, since the equilibrium is proved to be unique or
            the map is linear.
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
    starts: Starts | None = None

    @property
    def contracts(self) -> bool:
        """Whether nothing speaks against a unique equilibrium: K̂ and the spectral radius are both below 1."""
        return self.solved and self.contraction < 1 and (self.spectral_radius or 0) < 1 and self.unique != "no"

    @property
    def error(self) -> float:
        """Bound on the distance to the equilibrium, in the solver's norm: `residual / (1 - K̂)`."""
        return self.residual / (1 - self.contraction) if self.contraction < 1 else float("inf")

    def _repr_html_(self) -> str:
        return notebook.paragraphs(str(self))

    def __str__(self) -> str:
        if not self.solved:
            return "This method predicts in a fixed number of passes: there is no equilibrium to certify."
        drawn = "plain iteration is drawn to it" if self.contracts else "plain iteration need not be drawn to it"
        radius = "not computed" if self.spectral_radius is None else f"{self.spectral_radius:.3f}; {drawn}"
        lines = [
            f"The last solve: {self.message}.",
            f"Spectral radius of the Jacobian at the equilibrium: {radius}.",
            *([] if self.starts is None else [_starts_in_words(self.starts)]),
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
    name = "The product of the layers' norms" if bound.name == PRODUCT else f"Theorem 1 ({bound.name})"
    return f"{name}: {bound.value:.3g} < {bound.limit:.3g} {holds}."


def _start_matters(starts: Starts | None) -> bool:
    return starts is not None and starts.differing > 0


def _starts_in_words(starts: Starts) -> str:
    shares = (
        f"{starts.random:.2%} from random classes, {starts.opposite:.2%} from other classes than the predicted ones"
    )
    return f"Plain iteration: K̂ {starts.contraction:.3g}. Predictions that differ from another start: {shares}."


def certify(prediction: Prediction, starts: Starts | None) -> Certificate:
    """Return the certificate of a prediction.

    Args:
        prediction: to be certified.
        starts: what other starts give, see `try_starts`.
    """
    bound, solution = prediction.bound, prediction.solution
    if solution is None or not bound.iterates:
        return Certificate(False, "no equilibrium", 0, 0.0, 0.0, 0.0, None, (), "unknown", "")
    # Arnoldi's method would keep 40 vectors of the size of the state.
    radius = None if prediction.problem.streamed else _spectral_radius(bound.map, solution)
    unique: Verdict = "unknown"
    if unique_for_all_labels(bound):
        unique = "yes"
    elif solution.status in (Status.DIVERGING, Status.NON_FINITE) or bound.keeps_start or _start_matters(starts):
        unique = "no"
    elif radius is not None and (radius >= 1 or bound.linear):
        unique = "yes" if radius < 1 else "no"
    return Certificate(
        True,
        str(solution.status),
        solution.steps,
        solution.residual,
        solution.tol,
        max(solution.contraction, 0.0 if starts is None else starts.contraction),
        radius,
        tuple(bounds_of(bound)),
        unique,
        solution.message,
        starts,
    )


def _spectral_radius(fn: Map | None, solution: Solution) -> float | None:
    """Return the spectral radius of the Jacobian at the solution; None if there is none, or Arnoldi's method fails."""
    if fn is None or solution.status is Status.NON_FINITE:
        return None
    try:
        return spectral_radius(fn, solution.value, tol=1e-3)
    except InputError:
        return None


def unique_for_all_labels(bound: BoundMethod) -> bool:
    """Return whether the equilibrium is proved to be unique whatever labels are known.

    The method proves it, or a bound of the map's Lipschitz constant holds: clamping known rows cannot expand a map that
    contracts on all of them. All other findings (K̂, spectral radius) belong to the labels they were measured with.
    """
    return bound.proof is not None or any(each.holds for each in bounds_of(bound))


def bounds_of(bound: BoundMethod) -> list[Bound]:
    """Return all bounds that prove one equilibrium if they hold: Theorem 1, and the product over a network's layers."""
    product = bound.lipschitz if bound.iterates else None
    return [*theorem1_bounds(bound), *([] if product is None else [Bound(PRODUCT, product, 1.0)])]


def one_line(prediction: Prediction, starts: Starts | None) -> str:
    """Return in one line how well-posed the equilibrium of a prediction is; empty for methods without one.

    Args:
        prediction: the prediction.
        starts: what other starts give, see `try_starts`.
    """
    bound = prediction.bound
    if prediction.solution is None or not bound.iterates:
        return ""
    if unique_for_all_labels(bound):
        factor = "" if bound.lipschitz is None else f" (a step shrinks differences to {bound.lipschitz:.2f} or less)"
        return f"One equilibrium, proved for any labels{factor}."
    if starts is None:
        return "Whether there is one equilibrium was not measured; diagnose() tells more."
    if starts.agree:
        return f"One equilibrium, measured: K̂ {starts.contraction:.2f} over 100 steps, and all starts agree."
    if starts.differing:
        return (
            f"{starts.differing:.2%} of the predictions depend on the start of the solve (K̂ {starts.contraction:.2f})."
        )
    return f"All starts agree, but K̂ is {starts.contraction:.2f}: one equilibrium is neither proved nor measured."


def theorem1_bounds(bound: BoundMethod) -> list[Bound]:
    """Return Theorem 1 for maps of one hop that are linear before the activation; no bounds for others."""
    found = bound.label_weight
    if found is None:
        return []
    labels = bound.problem.labels
    activation = "sigmoid" if labels.multilabel else "softmax"
    norm = bound.problem.once(("norm", found.adjacency), lambda: _norm(found.adjacency))
    bounds = theorem1(found.weight, labels.num_nodes, norm, activation)
    # The readings "as stated" and "as proved" are for one operator; the spectral one holds for stacked ones too.
    return bounds[2:] if isinstance(found.adjacency, _TYPED) else bounds


def _norm(adj: Adjacency) -> float:
    """Return `‖Ã‖₂`; for a directed graph its bound `√(‖Ã‖₁ ‖Ã‖_∞)`, for types of edges that of `[I; Ã_1; …]`."""
    if isinstance(adj, _TYPED):
        return adj.stacked_norm()
    if isinstance(adj, StreamedAdjacency) or adj.T is adj:
        return adj.spectral_radius()
    matrix = adj.to_scipy()
    return float(np.sqrt(matrix.sum(0).max() * matrix.sum(1).max()))


def warn_if_unsolved(prediction: Prediction) -> None:
    """Warn if the solve did not reach its tolerance; to be called by functions that the user calls."""
    if prediction.solution is not None and not prediction.solution.ok:
        warnings.warn(prediction.solution.message, ConvergenceWarning, stacklevel=3)


def try_starts(prediction: Prediction) -> Starts | None:
    """Iterate the plain map, and solve from other starts; compare with the prediction.

    Nothing is tried, and None returned, if the equilibrium is proved to be unique, the map is linear (its spectral
    radius decides) or the method does not iterate.
    """
    return None if unique_for_all_labels(prediction.bound) else measure(prediction)


def warn_if_start_matters(prediction: Prediction) -> Starts | None:
    """Warn if another start gives other predictions; to be called by functions that the user calls.

    It returns what other starts give. A streamed graph is not solved again for this: it would take longer than many
    epochs. `diagnose` does it.
    """
    if prediction.problem.streamed:
        return None
    starts = try_starts(prediction)
    if starts is not None and starts.differing > 0:
        message = (
            f"{starts.differing:.2%} of the predictions would be others if the solve had another start "
            f"(K̂ {starts.contraction:.3g}): there are several equilibria; try another backbone, "
            "or contraction='proved', which has one"
        )
        warnings.warn(message, ConvergenceWarning, stacklevel=3)
    return starts
