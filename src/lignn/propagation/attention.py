"""Graph attention without an edge × head × channel tensor: the PyTorch operator `lignn::attend`."""
# ruff: noqa: ARG001  (all implementations of an operator have its signature)

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from lignn.errors import InputError, LignnError
from lignn.propagation.adjacency import Adjacency, PerOperator

_PATTERN = "Tensor indptr, Tensor indices, Tensor weights, Tensor[] transposed"
_INPUTS = "Tensor source, Tensor target, Tensor values, Tensor? keep, float slope"
_library = torch.library.Library("lignn", "FRAGMENT")
_library.define(f"attend({_PATTERN}, {_INPUTS}) -> (Tensor, Tensor)")
_library.define(
    f"attend_gradient({_PATTERN}, {_INPUTS}, Tensor coefficients, Tensor out, Tensor grad) -> (Tensor, Tensor, Tensor)"
)

_transposed: PerOperator[list[Tensor]] = PerOperator()


def attend(
    adj: Adjacency, values: Tensor, source: Tensor, target: Tensor, slope: float = 0.2, keep: Tensor | None = None
) -> Tensor:
    """Sums of the sources of each node, weighted by attention, for several heads at once.

    `out_i = Σ_j α_ij v_j` with `α_ij = w_ij exp(e_ij) / Σ_k w_ik exp(e_ik)`, `e_ij = LeakyReLU(target_i + source_j)`
    (Veličković et al. 2018, eq. 3 and 4); the weight w_ij of an entry counts it as so many parallel edges. A row
    without entries gives zeros. Differentiable, once, in values, source and target. At most entry × head numbers are
    held.

    Args:
        adj: rows are targets, columns sources.
        values: n × heads × channels, v.
        source: n × heads, each node's score as a source.
        target: n × heads, each node's score as a target.
        slope: of LeakyReLU for negative scores.
        keep: entry × head factors on the coefficients, for dropout.
    """
    if values.dtype != adj.dtype:
        raise InputError(f"the matrix is {adj.dtype}, the values given {values.dtype}: convert one with .to(dtype)")
    source, target, values = source.contiguous(), target.contiguous(), values.contiguous()
    wanted = torch.is_grad_enabled() and (source.requires_grad or target.requires_grad or values.requires_grad)
    transposed = transposed_pattern(adj) if wanted else []
    out, _ = torch.ops.lignn.attend(
        adj.indptr, adj.indices, adj.values, transposed, source, target, values, keep, slope
    )
    return out


def transposed_pattern(adj: Adjacency) -> list[Tensor]:
    """Row starts and row indices of the transpose, and which entry of `adj` each of its entries is; built once."""
    if adj not in _transposed:
        indptr, indices = adj.indptr.cpu().numpy(), adj.indices.cpu().numpy()
        numbered = sp.csr_array((np.arange(adj.nnz, dtype=indices.dtype), indices, indptr), shape=adj.shape)
        turned = numbered.T.tocsr()
        arrays = (turned.indptr, turned.indices, turned.data)
        _transposed[adj] = [torch.from_numpy(array).to(adj.device) for array in arrays]
    return _transposed[adj]


def _attend_on_cpu(
    indptr: Tensor, indices: Tensor, weights: Tensor, transposed: list[Tensor], *inputs: Any
) -> tuple[Tensor, Tensor]:
    from lignn.propagation import attention_kernels  # imports Numba

    return attention_kernels.attend(indptr, indices, weights, transposed, *inputs)


def _gradient_on_cpu(
    indptr: Tensor, indices: Tensor, weights: Tensor, transposed: list[Tensor], *inputs: Any
) -> tuple[Tensor, Tensor, Tensor]:
    from lignn.propagation import attention_kernels  # imports Numba

    return attention_kernels.attend_gradient(indptr, indices, weights, transposed, *inputs)


def _attend_elsewhere(
    indptr: Tensor, indices: Tensor, weights: Tensor, transposed: list[Tensor],
    source: Tensor, target: Tensor, values: Tensor, keep: Tensor | None, slope: float,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The same by PyTorch's own operations, one head at a time."""
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
    """Its gradient likewise; the softmax needs `Σ_k α_k ∂L/∂α_k`, which is the output times its gradient."""
    row, column = _coordinates(indptr, indices)
    kept = coefficients if keep is None else coefficients * keep
    grad_values, products = torch.zeros_like(values), torch.empty_like(coefficients)
    for head in range(values.shape[1]):
        gathered = grad[row, head]
        products[:, head] = (gathered * values[column, head]).sum(1)
        grad_values[:, head].index_add_(0, column, kept[:, head, None] * gathered)
    changes = kept * products - coefficients * (grad * out).sum(2)[row]
    changes = torch.where(target[row] + source[column] > 0, changes, slope * changes)
    grad_source = torch.zeros_like(source).index_add(0, column, changes)
    return grad_source, torch.zeros_like(target).index_add(0, row, changes), grad_values


def _coordinates(indptr: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
    rows = torch.arange(indptr.shape[0] - 1, device=indptr.device)
    return torch.repeat_interleave(rows, indptr.diff().long()), indices.long()


def _shapes_only(
    indptr: Tensor, indices: Tensor, weights: Tensor, transposed: list[Tensor],
    source: Tensor, target: Tensor, values: Tensor, keep: Tensor | None, slope: float,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    return torch.empty_like(values), values.new_empty(indices.shape[0], values.shape[1])


def _gradient_shapes_only(
    indptr: Tensor, indices: Tensor, weights: Tensor, transposed: list[Tensor],
    source: Tensor, target: Tensor, values: Tensor, *others: Any,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    return torch.empty_like(source), torch.empty_like(target), torch.empty_like(values)


def _remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    indptr, indices, weights, transposed, source, target, values, keep, slope = inputs
    out, coefficients = output
    ctx.mark_non_differentiable(coefficients)
    ctx.slope, ctx.keeps = slope, keep is not None
    optional = [keep] if ctx.keeps else []
    ctx.save_for_backward(indptr, indices, weights, *transposed, source, target, values, coefficients, out, *optional)


def _gradient(ctx: Any, grad: Tensor, _: Tensor | None) -> tuple[Any, ...]:
    indptr, indices, weights, *transposed = ctx.saved_tensors[:6]
    source, target, values, coefficients, out, *optional = ctx.saved_tensors[6:]
    keep = optional[0] if ctx.keeps else None
    grads = torch.ops.lignn.attend_gradient(
        indptr, indices, weights, transposed, source, target, values, keep, ctx.slope,
        coefficients, out, grad.contiguous(),
    )  # fmt: skip
    return None, None, None, [None] * len(transposed), *grads, None, None


def _refuse(ctx: Any, *grads: Tensor) -> None:
    raise LignnError("attention has no second derivative; use another backbone than GAT where one is needed")


_library.impl("attend", _attend_on_cpu, "CPU")
_library.impl("attend", _attend_elsewhere, "CompositeExplicitAutograd")
_library.impl("attend_gradient", _gradient_on_cpu, "CPU")
_library.impl("attend_gradient", _gradient_elsewhere, "CompositeExplicitAutograd")
torch.library.register_fake("lignn::attend", _shapes_only, lib=_library)
torch.library.register_fake("lignn::attend_gradient", _gradient_shapes_only, lib=_library)
torch.library.register_autograd("lignn::attend", _gradient, setup_context=_remember, lib=_library)
torch.library.register_autograd("lignn::attend_gradient", _refuse, lib=_library)
