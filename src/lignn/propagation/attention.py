"""Graph attention without an edge × head × channel tensor: the PyTorch operator `lignn::attend`."""
# ruff: noqa: ARG001  (all implementations of an operator have its signature)

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from lignn.errors import InputError, LignnError
from lignn.propagation.adjacency import Adjacency, PerOperator
from lignn.propagation.sparse import check_same_device

_PATTERN = "Tensor indptr, Tensor indices, Tensor weights, Tensor[] transposed"
_INPUTS = "Tensor source, Tensor target, Tensor values, Tensor? keep, float slope"
_library = torch.library.Library("lignn", "FRAGMENT")
_library.define(f"attend({_PATTERN}, {_INPUTS}) -> (Tensor, Tensor)")
_library.define(
    f"attend_gradient({_PATTERN}, {_INPUTS}, Tensor coefficients, Tensor out, Tensor grad) -> (Tensor, Tensor, Tensor)"
)

_transposed_patterns: PerOperator[list[Tensor]] = PerOperator()


def attend(
    adj: Adjacency, values: Tensor, source: Tensor, target: Tensor, slope: float = 0.2, keep: Tensor | None = None
) -> Tensor:
    """Return for each node the sum of its sources' values, weighted by attention, for several heads at once.

    `out_i = Σ_j α_ij v_j` with `α_ij = w_ij exp(e_ij) / Σ_k w_ik exp(e_ik)`, `e_ij = LeakyReLU(target_i + source_j)`
    (Veličković et al. 2018, eq. 3 and 4). An entry of weight w_ij counts as w_ij parallel edges. The output of a node
    without sources is zero. The operator can be differentiated once, in values, source and target. Its largest
    intermediate tensors have one number per entry and head.

    Args:
        adj: matrix with targets in its rows and sources in its columns.
        values: v, of shape n × heads × channels.
        source: score of each node as a source, n × heads.
        target: score of each node as a target, n × heads.
        slope: slope of LeakyReLU for negative scores.
        keep: factors on the coefficients for dropout, nnz × heads.
    """
    if values.dtype != adj.dtype:
        raise InputError(f"the matrix is {adj.dtype} and the values {values.dtype}: convert one with .to(dtype)")
    check_same_device(adj.values, values)
    source, target, values = source.contiguous(), target.contiguous(), values.contiguous()
    needs_gradient = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (source, target, values))
    transposed = transposed_pattern(adj) if needs_gradient else []
    return torch.ops.lignn.attend(*adj._arrays, transposed, source, target, values, keep, slope)[0]


def transposed_pattern(adj: Adjacency) -> list[Tensor]:
    """Return row pointers and column indices of the transpose, and the position in `adj` of each of its entries."""
    if adj not in _transposed_patterns:
        matrix = adj.to_scipy()
        positions = np.arange(adj.nnz, dtype=matrix.indices.dtype)
        turned = sp.csr_array((positions, matrix.indices, matrix.indptr), shape=adj.shape).T.tocsr()
        arrays = (turned.indptr, turned.indices, turned.data)
        _transposed_patterns[adj] = [torch.from_numpy(array).to(adj.device) for array in arrays]
    return _transposed_patterns[adj]


@cache
def _kernels() -> ModuleType:
    return import_module("lignn.propagation.attention_kernels")  # imports Numba, so not before the first use


def _attend_on_cpu(*arguments: Any) -> tuple[Tensor, Tensor]:
    return _kernels().attend(*arguments)


def _gradient_on_cpu(*arguments: Any) -> tuple[Tensor, Tensor, Tensor]:
    return _kernels().attend_gradient(*arguments)


def _attend_elsewhere(
    indptr: Tensor, indices: Tensor, weights: Tensor, transposed: list[Tensor],
    source: Tensor, target: Tensor, values: Tensor, keep: Tensor | None, slope: float,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Compute output and coefficients with PyTorch's own operators, one head after the other."""
    row, column = _coordinates(indptr, indices)
    scores = torch.nn.functional.leaky_relu(target[row] + source[column], slope)
    scores = scores.masked_fill(weights.eq(0)[:, None], -torch.inf)
    index = row[:, None].expand_as(scores)
    peak = torch.full_like(target, -torch.inf).scatter_reduce(0, index, scores, "amax")
    coefficients = weights[:, None] * (scores - peak.nan_to_num(neginf=0.0)[row]).exp()
    total = torch.zeros_like(target).index_add(0, row, coefficients)
    coefficients = coefficients / torch.where(total > 0, total, 1)[row]
    kept = coefficients if keep is None else coefficients * keep
    out = torch.zeros_like(values)
    for head in range(values.shape[1]):
        out[:, head].index_add_(0, row, kept[:, head, None] * values[column, head])
    return out, coefficients


def _gradient_elsewhere(
    indptr: Tensor, indices: Tensor, weights: Tensor, transposed: list[Tensor],
    source: Tensor, target: Tensor, values: Tensor, keep: Tensor | None, slope: float,
    coefficients: Tensor, out: Tensor, grad: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Compute the gradients with PyTorch's own operators, one head after the other.

    The gradient of the softmax contains `Σ_k α_k ∂L/∂α_k`, which is the inner product of `out` and `grad`.
    """
    row, column = _coordinates(indptr, indices)
    kept = coefficients if keep is None else coefficients * keep
    grad_values, products = torch.zeros_like(values), torch.empty_like(coefficients)
    for head in range(values.shape[1]):
        gathered = grad[row, head]
        products[:, head] = (gathered * values[column, head]).sum(1)
        grad_values[:, head].index_add_(0, column, kept[:, head, None] * gathered)
    grad_scores = kept * products - coefficients * (grad * out).sum(2)[row]
    grad_scores = torch.where(target[row] + source[column] > 0, grad_scores, slope * grad_scores)
    grad_source = torch.zeros_like(source).index_add(0, column, grad_scores)
    return grad_source, torch.zeros_like(target).index_add(0, row, grad_scores), grad_values


def _coordinates(indptr: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
    """Return row and column of each entry; `output_size` spares a transfer of the row lengths from the device."""
    rows = torch.arange(indptr.shape[0] - 1, device=indptr.device)
    return torch.repeat_interleave(rows, indptr.diff().long(), output_size=indices.shape[0]), indices.long()


def _save_for_backward(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    indptr, indices, weights, transposed, source, target, values, keep, slope = inputs
    out, coefficients = output
    ctx.mark_non_differentiable(coefficients)
    ctx.slope, ctx.has_keep = slope, keep is not None
    optional = [keep] if ctx.has_keep else []
    ctx.save_for_backward(indptr, indices, weights, *transposed, source, target, values, coefficients, out, *optional)


def _backward(ctx: Any, grad: Tensor, _: Tensor | None) -> tuple[Any, ...]:
    indptr, indices, weights, *transposed = ctx.saved_tensors[:6]
    source, target, values, coefficients, out, *optional = ctx.saved_tensors[6:]
    keep = optional[0] if ctx.has_keep else None
    grads = torch.ops.lignn.attend_gradient(
        indptr, indices, weights, transposed, source, target, values, keep, ctx.slope,
        coefficients, out, grad.contiguous(),
    )  # fmt: skip
    return None, None, None, [None] * len(transposed), *grads, None, None


def _refuse_second_derivative(ctx: Any, *grads: Tensor) -> None:
    raise LignnError("attention has no second derivative: if you need one, use another backbone than GAT")


_library.impl("attend", _attend_on_cpu, "CPU")
_library.impl("attend", _attend_elsewhere, "CompositeExplicitAutograd")
_library.impl("attend_gradient", _gradient_on_cpu, "CPU")
_library.impl("attend_gradient", _gradient_elsewhere, "CompositeExplicitAutograd")
torch.library.register_autograd("lignn::attend", _backward, setup_context=_save_for_backward, lib=_library)
torch.library.register_autograd("lignn::attend_gradient", _refuse_second_derivative, lib=_library)
