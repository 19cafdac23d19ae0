"""Attention over the rows of a CSR matrix on the CPU: the kernels.

A kernel is compiled for its numbers of heads and channels, so that the loops over them become vector instructions. As
in the product, each row is summed by one thread in the order of its entries. So results have the same bits in every
run and for any number of threads.

This module imports Numba, so the package imports it at the first use.
"""
# ruff: noqa: ARG001  (all implementations of an operator have its signature)

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch
from numba import njit
from torch import Tensor

from lignn.propagation.intrinsics import add_scaled, dot, store, zeros
from lignn.propagation.product_kernels import cached_on_disk
from lignn.propagation.sparse import numpy_dtype
from lignn.propagation.threads import run_over_rows

ZERO, ONE = np.uint64(0), np.uint64(1)  # with unsigned indices, Numba omits its check for negative ones

# The compiler may reorder sums over the channels to use vectors; the order is the same in every run.
_compiled = cached_on_disk(njit, nogil=True, fastmath={"contract", "reassoc", "nsz"})


@cache
def _score_kernel(heads: int) -> Callable[..., None]:
    """Compute LeakyReLU(target + source) for each entry, less the maximum of its row; -∞ for entries of weight 0."""

    def kernel(first, last, indptr, indices, weights, source, target, slope, scores):  # type: ignore[no-untyped-def]
        lowest = scores.dtype.type(-np.inf)
        for row in range(np.uint64(first), np.uint64(last)):
            start, stop = np.uint64(indptr[row]), np.uint64(indptr[row + ONE])
            for head in range(ZERO, np.uint64(heads)):
                own, peak = target[row, head], lowest
                for entry in range(start, stop):
                    score = own + source[np.uint64(indices[entry]), head]
                    score = max(score, slope * score)
                    score = score if weights[entry] != 0 else lowest
                    scores[entry, head] = score
                    peak = max(peak, score)
                if peak > lowest:
                    for entry in range(start, stop):
                        scores[entry, head] -= peak

    return _compiled(kernel)


@cache
def _sum_kernel(heads: int, channels: int) -> Callable[..., None]:
    """Replace the exponentials of a row's scores by its coefficients, and sum its sources' values with them."""

    def kernel(first, last, indptr, indices, weights, keep, values, coefficients, out):  # type: ignore[no-untyped-def]
        for row in range(np.uint64(first), np.uint64(last)):
            start, stop = np.uint64(indptr[row]), np.uint64(indptr[row + ONE])
            for head in range(ZERO, np.uint64(heads)):
                total = coefficients.dtype.type(0)
                for entry in range(start, stop):
                    coefficients[entry, head] *= weights[entry]
                    total += coefficients[entry, head]
                scale = coefficients.dtype.type(1) / total if total > 0 else total
                sums = zeros(values, channels)
                for entry in range(start, stop):
                    coefficient = coefficients[entry, head] * scale
                    coefficients[entry, head] = coefficient
                    if keep is not None:
                        coefficient *= keep[entry, head]
                    place = (np.uint64(indices[entry]) * np.uint64(heads) + head) * np.uint64(channels)
                    sums = add_scaled(sums, coefficient, values, place)
                store(sums, out, (row * np.uint64(heads) + head) * np.uint64(channels))

    return _compiled(kernel)


@cache
def _gradient_kernel(heads: int, channels: int) -> Callable[..., None]:
    """Compute the gradients of each source's values and score, and of the score of each of its entries.

    The gradient of the softmax contains `Σ_k α_k ∂L/∂α_k`, which is the inner product of a target's output and its
    gradient, given as `inner`.
    """

    def kernel(  # type: ignore[no-untyped-def]
        first, last, indptr, rows, entries, keep, source, target, slope, values, coefficients, grad, inner,
        grad_scores, grad_source, grad_values,
    ):  # fmt: skip
        zero, one = grad.dtype.type(0), grad.dtype.type(1)
        for column in range(np.uint64(first), np.uint64(last)):
            start, stop = np.uint64(indptr[column]), np.uint64(indptr[column + ONE])
            for head in range(ZERO, np.uint64(heads)):
                own = (column * np.uint64(heads) + head) * np.uint64(channels)
                value = add_scaled(zeros(values, channels), one, values, own)
                sums = zeros(grad, channels)
                total = zero
                for place in range(start, stop):
                    row, entry = np.uint64(rows[place]), np.uint64(entries[place])
                    coefficient = coefficients[entry, head]
                    kept = coefficient if keep is None else coefficient * keep[entry, head]
                    other = (row * np.uint64(heads) + head) * np.uint64(channels)
                    sums = add_scaled(sums, kept, grad, other)
                    grad_score = kept * dot(value, grad, other) - coefficient * inner[row, head]
                    grad_score = grad_score if target[row, head] + source[column, head] > 0 else slope * grad_score
                    grad_scores[entry, head] = grad_score
                    total += grad_score
                grad_source[column, head] = total
                store(sums, grad_values, own)

    return _compiled(kernel)


@cache
def _row_sum_kernel(heads: int) -> Callable[..., None]:
    """Sum the entries of each row."""

    def kernel(first, last, indptr, terms, out):  # type: ignore[no-untyped-def]
        for row in range(np.uint64(first), np.uint64(last)):
            for head in range(ZERO, np.uint64(heads)):
                total = terms.dtype.type(0)
                for entry in range(np.uint64(indptr[row]), np.uint64(indptr[row + ONE])):
                    total += terms[entry, head]
                out[row, head] = total

    return _compiled(kernel)


def attend(
    indptr: Tensor, indices: Tensor, weights: Tensor, transposed: list[Tensor],
    source: Tensor, target: Tensor, values: Tensor, keep: Tensor | None, slope: float,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return output and coefficients of `lignn::attend`."""
    rows, (_, heads, channels) = indptr.shape[0] - 1, values.shape
    coefficients = values.new_empty(indices.shape[0], heads)
    out = values.new_empty(rows, heads, channels)
    pattern = indptr.numpy(), indices.numpy(), weights.numpy()
    scoring = (*pattern, source.numpy(), target.numpy(), _scalar(slope, values), coefficients.numpy())
    _run(_score_kernel(heads), scoring, coefficients.numel())
    coefficients.exp_()  # PyTorch's exponential uses vector instructions
    summing = (*pattern, _optional(keep), values.numpy(), coefficients.numpy(), out.numpy())
    _run(_sum_kernel(heads, channels), summing, coefficients.numel() * channels)
    return out, coefficients


def attend_gradient(
    indptr: Tensor, indices: Tensor, weights: Tensor, transposed: list[Tensor],
    source: Tensor, target: Tensor, values: Tensor, keep: Tensor | None, slope: float,
    coefficients: Tensor, out: Tensor, grad: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Return the gradients of `lignn::attend` with respect to source, target and values."""
    _, heads, channels = values.shape
    grad_scores = torch.empty_like(coefficients)
    grad_source, grad_target, grad_values = (torch.empty_like(array) for array in (source, target, values))
    inner = (grad * out).sum(2)
    arguments = (
        *(array.numpy() for array in transposed), _optional(keep), source.numpy(), target.numpy(),
        _scalar(slope, values), values.numpy(), coefficients.numpy(), grad.numpy(), inner.numpy(),
        grad_scores.numpy(), grad_source.numpy(), grad_values.numpy(),
    )  # fmt: skip
    _run(_gradient_kernel(heads, channels), arguments, values.numel())
    _run(_row_sum_kernel(heads), (indptr.numpy(), grad_scores.numpy(), grad_target.numpy()), grad_scores.numel())
    return grad_source, grad_target, grad_values


def _run(kernel: Callable[..., None], arguments: tuple[Any, ...], multiplications: int) -> None:
    """Run a kernel over the rows of a pattern whose row pointers are its first argument."""
    run_over_rows(lambda first, last: kernel(first, last, *arguments), arguments[0], multiplications)


def _optional(tensor: Tensor | None) -> np.ndarray | None:
    return None if tensor is None else tensor.numpy()


def _scalar(value: float, like: Tensor) -> np.floating:
    """Return a number with the dtype of a tensor; with a Python number Numba would compute in double precision."""
    return numpy_dtype(like.dtype)(value)
