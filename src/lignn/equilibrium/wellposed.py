"""Is the equilibrium there, and is it the only one?

`K̂` of a solve is its `Solution.contraction`. Here: the conditions of Theorem 1 for one-hop backbones, and for any map
the spectral radius of its Jacobian at the equilibrium, which must be below one for plain iteration to be drawn to it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy.sparse.linalg import ArpackError, LinearOperator, eigs
from torch import Tensor

from lignn.equilibrium.solve import Map
from lignn.errors import ConfigError, InputError, did_you_mean

_LIPSCHITZ = {"softmax": 0.5, "sigmoid": 0.25}
"""Lipschitz constants of the activations in the 2-norm."""

_DENSE = 64
"""States this small get all their eigenvalues from the dense Jacobian."""


@dataclass(frozen=True)
class Bound:
    """A sufficient condition `value < limit` for a contraction."""

    name: str
    value: float
    limit: float

    @property
    def holds(self) -> bool:
        """Whether the map is guaranteed to contract."""
        return self.value < self.limit


def theorem1(
    weight: Tensor, num_nodes: int, adjacency_norm: float = 1.0, activation: str = "softmax", mask_rate: float = 0.0
) -> list[Bound]:
    """Theorem 1 for a one-hop backbone `σ(Ã Z W_z + …)`, in three readings.

    * as stated, `‖W_z‖_F² < 1/n`;
    * as proved, `‖W_z‖_F < 1/n`;
    * spectral, `‖W_z‖₂ ‖Ã‖₂ < 1/L` with the Lipschitz constant L of σ, ½ for softmax and ¼ for sigmoid, which is the
        weakest condition.

    Args:
        weight: `W_z`.
        num_nodes: n.
        adjacency_norm: `‖Ã‖₂`, at most 1 for the symmetric normalisation of an undirected graph.
        activation: `softmax` or `sigmoid`.
        mask_rate: β if the solved map is masked (forward mask on), whose inputs are scaled by `1/(1-β)`; 0 otherwise.
    """
    if activation not in _LIPSCHITZ:
        raise ConfigError(f"activation {activation!r} is unknown; {did_you_mean(activation, _LIPSCHITZ)}")
    scale = 1 / (1 - mask_rate)
    frobenius = weight.norm().item() * scale
    spectral = torch.linalg.matrix_norm(weight, 2).item() * scale
    return [
        Bound("as stated", frobenius**2, 1 / num_nodes),
        Bound("as proved", frobenius, 1 / num_nodes),
        Bound("spectral", spectral * adjacency_norm, 1 / _LIPSCHITZ[activation]),
    ]


def spectral_radius(fn: Map, z: Tensor, tol: float = 1e-4) -> float:
    """Largest absolute eigenvalue of the Jacobian of `fn` at `z`.

    By Arnoldi's method on vector-Jacobian products (the transpose has the same eigenvalues), which also finds complex
    and ± pairs. Of a large map that is far from normal, such as one along a directed path, it may find too much:
    eigenvalues of such a matrix move far with its rounding.
    """
    at = z.detach().requires_grad_()
    with torch.enable_grad():
        out = fn(at)
    if not out.requires_grad:
        return 0.0

    def vjp(vector: np.ndarray) -> np.ndarray:
        g = torch.as_tensor(vector, dtype=z.dtype).view_as(out)
        return torch.autograd.grad(out, at, g, retain_graph=True, materialize_grads=True)[0].flatten().double().numpy()

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
