"""Does the equilibrium exist, and is it unique?

`theorem1` checks the conditions of Theorem 1 for one-hop backbones. `spectral_radius` is for any map: plain iteration
is attracted to an equilibrium if the spectral radius of the Jacobian there is below one. K̂, which every solve measures,
is `Solution.contraction`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy.sparse.linalg import ArpackError, LinearOperator, eigs
from torch import Tensor

from lignn.equilibrium.solve import Map
from lignn.errors import InputError, unknown

LIPSCHITZ = {"softmax": 0.5, "sigmoid": 0.25}
"""Lipschitz constants of the activations in the 2-norm."""

_DENSE = 64
"""Up to this many entries, all eigenvalues of the dense Jacobian are computed."""


@dataclass(frozen=True)
class Bound:
    """A sufficient condition `value < limit` for a contraction."""

    name: str
    value: float
    limit: float

    @property
    def holds(self) -> bool:
        """Whether the condition guarantees a contraction."""
        return self.value < self.limit


def theorem1(
    weight: Tensor, num_nodes: int, adjacency_norm: float = 1.0, activation: str = "softmax", mask_rate: float = 0.0
) -> list[Bound]:
    """Return three versions of the condition in Theorem 1 for a one-hop backbone `σ(Ã Z W_z + …)`.

    * as stated: `‖W_z‖_F² < 1/n`;
    * as proved: `‖W_z‖_F < 1/n`;
    * spectral: `‖W_z‖₂ ‖Ã‖₂ < 1/L`, where L is the Lipschitz constant of σ, ½ for softmax and ¼ for sigmoid. This is
        the weakest condition.

    Args:
        weight: `W_z`.
        num_nodes: n.
        adjacency_norm: `‖Ã‖₂`, at most 1 for the symmetric normalisation of an undirected graph.
        activation: σ, `softmax` or `sigmoid`.
        mask_rate: β if the solved map is masked (forward mask), since its inputs are scaled by `1/(1-β)`; otherwise 0.
    """
    if activation not in LIPSCHITZ:
        raise unknown("activation", activation, LIPSCHITZ)
    scale = 1 / (1 - mask_rate)
    frobenius = float(weight.detach().norm()) * scale
    spectral = float(torch.linalg.matrix_norm(weight.detach(), 2)) * scale
    return [
        Bound("as stated", frobenius**2, 1 / num_nodes),
        Bound("as proved", frobenius, 1 / num_nodes),
        Bound("spectral", spectral * adjacency_norm, 1 / LIPSCHITZ[activation]),
    ]


def spectral_radius(fn: Map, z: Tensor, tol: float = 1e-4) -> float:
    """Return the largest absolute eigenvalue of the Jacobian of `fn` at `z`.

    It is found by Arnoldi's method on vector-Jacobian products (the transpose has the same eigenvalues), which also
    finds complex and ± pairs. The result may be too large for a large map that is far from normal, e.g. one along a
    directed path: the eigenvalues of such a matrix are very sensitive to rounding.

    Args:
        fn: the map.
        z: the state.
        tol: relative tolerance of the eigenvalue.
    """
    at = z.detach().requires_grad_()
    with torch.enable_grad():
        out = fn(at)
    if not out.requires_grad:
        return 0.0

    def vjp(vector: np.ndarray) -> np.ndarray:
        g = torch.as_tensor(vector, dtype=z.dtype, device=z.device).view_as(out)
        product = torch.autograd.grad(out, at, g, retain_graph=True, materialize_grads=True)[0]
        return product.flatten().cpu().double().numpy()

    size = z.numel()
    if size <= _DENSE:
        jacobian = np.stack([vjp(row) for row in np.eye(size)])
        return float(np.abs(np.linalg.eigvals(jacobian)).max())
    start = np.random.default_rng(0).standard_normal(size)
    if not np.any(vjp(start)):
        return 0.0
    operator = LinearOperator((size, size), matvec=vjp, dtype=np.float64)
    try:
        values = eigs(operator, k=1, which="LM", v0=start, ncv=min(size, 40), tol=tol, return_eigenvectors=False)
    except ArpackError as error:
        raise InputError("Arnoldi's method found no eigenvalue to this tolerance; raise tol") from error
    return float(np.abs(values).max())
