"""A fused step on PyTorch's tape: the logits of one step, and their gradient by `gradient_kernel`.

This module imports Numba, so the package imports it at the first use.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from lignn.propagation import gradient_kernel, threads
from lignn.propagation.fused import FusedStep, Tape
from lignn.propagation.product_kernels import NUMPY
from lignn.propagation.threads import ThreadFunction


class Taped(torch.autograd.Function):
    """The logits `Ã (relu(Ã X W + F) ∘ D) V + b` of a step that was taken already, with their gradient.

    Args of `apply`:
        state: Z; `X = scale ∘ Z + offset`.
        features: F, n×hidden.
        first: Wᵀ, hidden×c.
        second: Vᵀ, c×hidden.
        bias: b.
        step: the fused step.
        tape: the step at `state`.
        backward: dX/dZ, n×1; need not be `scale`.
    """

    @staticmethod
    def forward(
        ctx: Any, state: Tensor, features: Tensor, first: Tensor, second: Tensor, bias: Tensor,  # noqa: ARG004
        step: FusedStep, tape: Tape, backward: Tensor,
    ) -> Tensor:  # fmt: skip
        """Return the logits that the step has computed."""
        ctx.save_for_backward(features, first, second, step.mask_rows, backward)
        ctx.matrix, ctx.propagated = step.matrix, tape.propagated
        return tape.logits

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of the state, the features and the weights."""
        features, first, second, mask, backward = ctx.saved_tensors
        transposed = ctx.matrix.T
        rows = row_gradients(ctx.propagated, transposed @ grad, features, first.T.contiguous(), second, mask)
        d_features, d_propagated, d_first, d_second = rows
        d_state = backward * (transposed @ d_propagated) if ctx.needs_input_grad[0] else None
        return d_state, d_features, d_first.T, d_second, grad.sum(0), None, None, None


def row_gradients(
    p: Tensor, b: Tensor, features: Tensor, first: Tensor, second: Tensor, mask: Tensor | None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return dF, dP, dW and dV (both c×hidden) of `Q = (relu(P W + F) ∘ D) V`; see `gradient_kernel`.

    Args:
        p: P, n×c.
        b: the gradient of Q, n×c.
        features: F, n×hidden.
        first: W, c×hidden.
        second: Vᵀ, c×hidden.
        mask: D, n×hidden; None for ones.
    """
    (n, hidden), c = features.shape, p.shape[1]
    blocks = -(-n // gradient_kernel.BLOCK_ROWS)
    d_features, d_p = torch.empty_like(features), torch.empty_like(p)
    sums, scratch = features.new_zeros((blocks, 2, c, hidden)), features.new_empty((blocks, 2, hidden))
    threads.use_huge_pages(d_features)
    tensors = [tensor.contiguous() for tensor in (p, b, features, features if mask is None else mask, first, second)]
    addresses = [tensor.data_ptr() for tensor in (*tensors, d_features, d_p, sums, scratch)]
    task = np.array([0, *addresses, n, hidden, blocks], np.int64)
    function = _function(c, NUMPY[p.dtype], mask is not None)
    threads.run_in_threads(function, task.ctypes.data, threads.threads_for(6 * n * c * hidden))
    d_first, d_second = sums.sum(0).unbind()  # to unpack a tensor takes several times longer
    return d_features, d_p, d_first, d_second


@cache
def _function(c: int, kind: Any, masked: bool) -> Any:
    return ThreadFunction(gradient_kernel.kernel(c, kind, masked).address)
