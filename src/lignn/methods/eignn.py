"""EIGNN: an implicit graph neural network with a linear equilibrium, in closed form or iterated."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from scipy.sparse.csgraph import connected_components
from torch import Generator, Tensor
from torch.autograd.function import once_differentiable

from lignn.backbones.layers import uniform
from lignn.equilibrium import Map, Solution, Status, solve
from lignn.equilibrium.solvers import Solver
from lignn.errors import ConfigError, did_you_mean
from lignn.methods.problem import Problem
from lignn.methods.representation import Representation
from lignn.propagation import Adjacency, SparseMatrix

_SMALL = 1000**3
"""Up to this cost `Σ n_i³`, the eigendecomposition of Ã is cheaper than iterating in every epoch."""

Route = Literal["auto", "closed", "iterative"]

Eigen = tuple[Tensor, Tensor]
"""Eigenvalues and eigenvectors of g(F)."""


class EIGNN(Representation):
    """`Z = γ Ã Z g(F) + X`, `g(F) = FᵀF / (‖FᵀF‖_F + ε)`, output a linear map of Z.

    Liu et al., "EIGNN: efficient infinite-depth graph neural networks", NeurIPS 2021. In the eigenvectors of g(F) =
    Q_F diag(μ) Q_Fᵀ the columns do not mix, and there are two routes to the equilibrium:

    - closed: `Z = Q_S [G ∘ (Q_Sᵀ X Q_F)] Q_Fᵀ`, `G_ij = 1 / (1 - γ λ_i μ_j)`. The eigendecomposition Q_S diag(λ) Q_Sᵀ
      of Ã is computed once, separately for each connected component. Errors are as large as the rounding error of the
      largest entry. Rows smaller than that, such as those far from every feature, contain only rounding errors.
    - iterative: `Z Q_F ← γ Ã (Z Q_F) diag(μ) + X Q_F`, on graphs of any size. It contracts: `γ ‖g(F)‖ ‖Ã‖ < 1`.

    Args:
        num_features: width of X and of Z.
        num_classes: c.
        gamma: γ.
        route: "closed" (for symmetric Ã), "iterative", or "auto": closed for undirected graphs with small components,
            unless rows are normalised, which would make rounding as large as the signal.
        normalize: L2-normalise the rows of Z before the output map.
        dropout: dropout probability, before the output map.
        solver: solver of the iterative route; its tolerance is relative in the backward pass.
        generator: draws the weights.
    """

    proof: ClassVar[str] = "the map is linear and contracts, γ ρ(g(F)) ρ(Ã) < 1"

    def __init__(
        self,
        num_features: int,
        num_classes: int,
        gamma: float = 0.8,
        route: Route = "auto",
        normalize: bool = False,
        dropout: float = 0.0,
        solver: Solver | None = None,
        generator: Generator | None = None,
    ) -> None:
        super().__init__(num_features, num_classes, solver, normalize, dropout, generator)
        if not 0 < gamma < 1:
            raise ConfigError(f"γ must be between 0 and 1, got {gamma}")
        if route not in ("auto", "closed", "iterative"):
            raise ConfigError(f"route {route!r} is unknown; {did_you_mean(route, ('auto', 'closed', 'iterative'))}")
        self.gamma = gamma
        self.route = route
        self.weight = uniform((num_features, num_features), (3 / num_features) ** 0.5, generator)

    def represent(self, problem: Problem, known: Solution | None = None) -> Solution:
        """Return the equilibrium by the chosen route."""
        adj = problem.adjacency()
        x = problem.x.to_dense() if isinstance(problem.x, SparseMatrix) else problem.x
        assert x is not None
        gram = self.weight.T @ self.weight
        g = gram / (gram.norm() + 1e-12)
        eigen = torch.linalg.eigh(g.detach())
        if self._closed(problem):
            backward = _spectrum(problem).inverse(eigen, self.gamma)
            solution = known or Solution(backward(x), Status.CONVERGED, 0, (0.0,), 0.0, 0.0)
        else:
            solution = known or self._iterate(adj, x, eigen, self.solver)

            def backward(b: Tensor) -> Tensor:
                # The adjoint is as small as 1/|known nodes|: an absolute tolerance would stop far from its solution.
                solution.adjoints.append(self._iterate(adj.T, b, eigen, replace(self.solver, norm="relative")))
                return solution.adjoints[-1].value

        return replace(solution, value=_Equilibrium.apply(g, x, solution.value, adj, self.gamma, backward))

    def _closed(self, problem: Problem) -> bool:
        adj = problem.adjacency()
        symmetric = adj.T is adj
        if self.route == "closed" and not symmetric:
            raise ConfigError("EIGNN's closed form needs an undirected graph; use route='iterative'")
        small = self.route == "auto" and not self.normalize and symmetric and _spectrum(problem).cost <= _SMALL
        return self.route == "closed" or small

    def _iterate(self, adj: Adjacency, b: Tensor, eigen: Eigen, solver: Solver) -> Solution:
        """Solve `Z = γ Ã Z g + B`."""
        values, vectors = eigen
        rotated, scale = b @ vectors, self.gamma * values
        solution = solve(lambda z: torch.addcmul(rotated, adj @ z, scale), rotated, solver, throw=False)
        return replace(solution, value=solution.value @ vectors.T)


def _spectrum(problem: Problem) -> _Spectrum:
    return problem.once("spectrum", lambda: _Spectrum(problem.adjacency()))


class _Spectrum:
    """The eigendecomposition `Q_S diag(λ) Q_Sᵀ` of a symmetric Ã, whose blocks are the connected components."""

    def __init__(self, adj: Adjacency) -> None:
        self.matrix, self.device = adj.to_scipy(), adj.device
        self.component = connected_components(self.matrix, directed=False)[1]
        self.sizes = np.bincount(self.component)
        self.cost = float((self.sizes.astype(float) ** 3).sum())

    @cached_property
    def blocks(self) -> list[tuple[Tensor, Tensor, Tensor]]:
        """Nodes [k, s], eigenvalues [k, s] and eigenvectors [k, s, s] of the k components of each size s."""
        size = self.sizes[self.component]
        blocks = []
        for s in np.unique(size):
            nodes = np.flatnonzero(size == s)
            nodes = nodes[np.argsort(self.component[nodes], kind="stable")]
            inside = self.matrix[nodes][:, nodes].tocoo()
            dense = np.zeros((len(nodes) // s, s, s), self.matrix.dtype)
            dense[inside.row // s, inside.row % s, inside.col % s] = inside.data
            values, vectors = torch.linalg.eigh(torch.from_numpy(dense).to(self.device))
            blocks.append((torch.from_numpy(nodes).view(-1, s).to(self.device), values, vectors))
        return blocks

    def inverse(self, eigen: Eigen, gamma: float) -> Map:
        """Return the map `B ↦ Z` with `Z = γ Ã Z g + B`."""
        f_values, f_vectors = eigen

        def apply(b: Tensor) -> Tensor:
            z = torch.empty_like(b)
            for nodes, values, vectors in self.blocks:
                scale = 1 / (1 - gamma * values[..., None] * f_values)
                z[nodes] = vectors @ (scale * (vectors.mT @ b[nodes] @ f_vectors)) @ f_vectors.T
            return z

        return apply


class _Equilibrium(torch.autograd.Function):
    """The solved Z; backward by the implicit formula, `H = γ Ãᵀ H g + ∂L/∂Z`.

    The gradient of `eigh` itself is not finite for repeated eigenvalues.
    """

    @staticmethod
    def forward(
        ctx: Any,
        g: Tensor,  # noqa: ARG004
        x: Tensor,  # noqa: ARG004
        z: Tensor,
        adj: Adjacency,
        gamma: float,
        backward: Map,
    ) -> Tensor:
        ctx.save_for_backward(z)
        ctx.adj, ctx.gamma, ctx.solve = adj, gamma, backward
        return z.view_as(z)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, b: Tensor) -> tuple[Tensor | None, ...]:
        (z,) = ctx.saved_tensors
        h = ctx.solve(b)
        return ctx.gamma * (ctx.adj @ z).T @ h, h, None, None, None, None
