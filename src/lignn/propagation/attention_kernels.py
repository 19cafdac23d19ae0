"""Attention over the rows of a CSR matrix on the CPU: the kernels.

A kernel is compiled for its numbers of heads and channels, so that the loops over them become vector instructions.
As in the product, a row is summed by one thread in the order of its entries: results are the same to the bit in every
run and for any number of threads.

Importing this module imports Numba, so the package does it at the first use.
"""

from collections.abc import Callable
from functools import cache

import numpy as np
import torch
from numba import njit
from torch import Tensor

from lignn.propagation.kernels import cached
from lignn.propagation.lanes import add_scaled, dot, store, zeros
from lignn.propagation.threads import over_rows

ZERO, ONE = np.uint64(0), np.uint64(1)  # unsigned indices spare Numba the check for negative ones


# Sums over the channels may be reordered into vectors, the same way in every run.
_jit = cached(njit, nogil=True, fastmath={"contract", "reassoc", "nsz"})


@cache
def _score_kernel(heads: int) -> Callable[..., None]:
    """Scores of all entries of a row, leaky ReLU of target plus source, less the row's largest; -∞ for weight 0."""

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

    return _jit(kernel)


@cache
def _sum_kernel(heads: int, channels: int) -> Callable[..., None]:
    """Coefficients of a row from the exponentials of its scores, in place, and the sum of its sources by them."""

    def kernel(first, last, indptr, indices, weights, keep, values, coefficients, out):  # type: ignore[no-untyped-def]
        for row in range(np.uint64(first), np.uint64(last)):
            start, stop = np.uint64(indptr[row]), np.uint64(indptr[row + ONE])
            for head in range(ZERO, np.uint64(heads)):
                total = coefficients.dtype.type(0)
                for entry in range(start, stop):
                    coefficients[entry, head] *= weights[entry]
                    total += coefficients[entry, head]
                scale = coefficients.dtype.type(1) / total if total > 0 else total
                lanes = zeros(values, channels)
                for entry in range(start, stop):
                    coefficient = coefficients[entry, head] * scale
                    coefficients[entry, head] = coefficient
                    if keep is not None:
                        coefficient *= keep[entry, head]
                    place = (np.uint64(indices[entry]) * np.uint64(heads) + head) * np.uint64(channels)
                    lanes = add_scaled(lanes, coefficient, values, place)
                store(lanes, out, (row * np.uint64(heads) + head) * np.uint64(channels))

    return _jit(kernel)


@cache
def _gradient_kernel(heads: int, channels: int) -> Callable[..., None]:
    """Gradients of a source from those of its targets: its values, its score, and the score of each entry.

    The softmax's gradient needs `Σ_k α_k ∂L/∂α_k`, which is the product `inner` of a target's output and its gradient.
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
                lanes = zeros(grad, channels)
                total = zero
                for place in range(start, stop):
                    row, entry = np.uint64(rows[place]), np.uint64(entries[place])
                    coefficient = coefficients[entry, head]
                    kept = coefficient if keep is None else coefficient * keep[entry, head]
                    other = (row * np.uint64(heads) + head) * np.uint64(channels)
                    lanes = add_scaled(lanes, kept, grad, other)
                    change = kept * dot(value, grad, other) - coefficient * inner[row, head]
                    change = change if target[row, head] + source[column, head] > 0 else slope * change
                    grad_scores[entry, head] = change
                    total += change
                grad_source[column, head] = total
                store(lanes, grad_values, own)

    return _jit(kernel)


@cache
def _row_sum_kernel(heads: int) -> Callable[..., None]:
    """Sums over the entries of each row."""

    def kernel(first, last, indptr, terms, out):  # type: ignore[no-untyped-def]
        for row in range(np.uint64(first), np.uint64(last)):
            for head in range(ZERO, np.uint64(heads)):
                total = terms.dtype.type(0)
                for entry in range(np.uint64(indptr[row]), np.uint64(indptr[row + ONE])):
                    total += terms[entry, head]
                out[row, head] = total

    return _jit(kernel)


def attend(
    indptr: Tensor, indices: Tensor, weights: Tensor, source: Tensor, target: Tensor, values: Tensor,
    keep: Tensor | None, slope: float,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Output and coefficients of `lignn::attend`."""
    rows, (_, heads, channels) = indptr.shape[0] - 1, values.shape
    coefficients = values.new_empty(indices.shape[0], heads)
    out = values.new_empty(rows, heads, channels)
    pattern = indptr.numpy(), indices.numpy(), weights.numpy()
    scoring = (*pattern, source.numpy(), target.numpy(), _scalar(slope, values), coefficients.numpy())
    score = _score_kernel(heads)
    over_rows(lambda first, last: score(first, last, *scoring), pattern[0], coefficients.numel())
    coefficients.exp_()  # PyTorch's is vectorised
    summing = (*pattern, None if keep is None else keep.numpy(), values.numpy(), coefficients.numpy(), out.numpy())
    add = _sum_kernel(heads, channels)
    over_rows(lambda first, last: add(first, last, *summing), pattern[0], coefficients.numel() * channels)
    return out, coefficients


def attend_gradient(
    indptr: Tensor, transposed: list[Tensor], source: Tensor, target: Tensor, values: Tensor, keep: Tensor | None,
    slope: float, coefficients: Tensor, out: Tensor, grad: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Gradients of `lignn::attend` with respect to source, target and values."""
    _, heads, channels = values.shape
    scores = torch.empty_like(coefficients)
    grad_source, grad_target, grad_values = (torch.empty_like(array) for array in (source, target, values))
    inner = (grad * out).sum(2)
    pattern = [array.numpy() for array in transposed]
    results = (scores.numpy(), grad_source.numpy(), grad_values.numpy())
    arguments = (
        *pattern, None if keep is None else keep.numpy(), source.numpy(), target.numpy(), _scalar(slope, values),
        values.numpy(), coefficients.numpy(), grad.numpy(), inner.numpy(), *results,
    )  # fmt: skip
    step = _gradient_kernel(heads, channels)
    over_rows(lambda first, last: step(first, last, *arguments), pattern[0], values.numel())
    rows = (indptr.numpy(), scores.numpy(), grad_target.numpy())
    add = _row_sum_kernel(heads)
    over_rows(lambda first, last: add(first, last, *rows), rows[0], scores.numel())
    return grad_source, grad_target, grad_values


def _scalar(value: float, like: Tensor) -> np.floating:
    """A number in a tensor's type: a Python one would make Numba compute in double."""
    return np.float32(value) if like.dtype == torch.float32 else np.float64(value)
