"""The first layer's product with sparse features, `A X Wᵀ`, kept until the weight changes.

A prediction after an update and the next epoch's training step multiply the same features with the same weight. For
wide features that is the most expensive product of an epoch.
"""

from __future__ import annotations

from typing import Any, Self

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from lignn.propagation import Adjacency, SparseMatrix


class FirstProduct:
    """The last product of a layer. Copies and pickles of it are empty."""

    def __init__(self) -> None:
        self._last: tuple[SparseMatrix, Tensor, Tensor] | None = None

    def __call__(self, weight: Tensor, x: SparseMatrix, adj: Adjacency, columns: slice) -> Tensor:
        """Return `A X Wᵀ` with these columns of W; the result is a new tensor."""
        with torch.no_grad():
            product = self._product(weight[:, columns], x)
        return _Propagated.apply(weight, product, x, adj, columns) if torch.is_grad_enabled() else adj @ product

    def _product(self, weight: Tensor, x: SparseMatrix) -> Tensor:
        """Return `X Wᵀ`, which is the last one if neither matrix has changed."""
        last = self._last
        if last is not None and last[0] is x and last[1].shape == weight.shape and torch.equal(last[1], weight):
            return last[2]
        product = x @ weight.T
        self._last = x, weight.detach().clone(), product
        return product

    def __deepcopy__(self, memo: Any) -> Self:
        return type(self)()

    def __reduce__(self) -> tuple[type[Self], tuple[()]]:
        return type(self), ()


class _Propagated(torch.autograd.Function):
    """`A (X Wᵀ)` from the product in brackets. The gradient of W is `(Xᵀ Aᵀ G)ᵀ` in the columns that were used."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, product: Tensor, x: SparseMatrix, adj: Adjacency, columns: slice) -> Tensor:
        ctx.shape, ctx.x, ctx.adj, ctx.columns = weight.shape, x, adj, columns
        return adj @ product

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None, None]:
        whole = grad.new_zeros(ctx.shape)
        whole[:, ctx.columns] = (ctx.x.T @ (ctx.adj.T @ grad)).T
        return whole, None, None, None, None
