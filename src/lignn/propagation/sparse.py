"""`SparseMatrix`: an immutable CSR matrix with a differentiable product, and the PyTorch operator behind it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from types import ModuleType
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from lignn.errors import InputError

_library = torch.library.Library("lignn", "DEF")
_library.define("spmm(Tensor indptr, Tensor indices, Tensor values, Tensor dense, Tensor[] transposed) -> Tensor")
_spmm = torch.ops.lignn.spmm.default


@cache
def _kernels() -> ModuleType:
    return import_module("lignn.propagation.product_kernels")  # imports Numba, so not before the first product


def _multiply_on_cpu(indptr: Tensor, indices: Tensor, values: Tensor, dense: Tensor, _: Sequence[Tensor]) -> Tensor:
    return _kernels().multiply(indptr, indices, values, dense)


def _multiply_elsewhere(indptr: Tensor, indices: Tensor, values: Tensor, dense: Tensor, _: Sequence[Tensor]) -> Tensor:
    return _torch_csr(indptr, indices, values, (indptr.shape[0] - 1, dense.shape[0])) @ dense


def _torch_csr(indptr: Tensor, indices: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(indptr, indices, values, shape, check_invariants=False)


def _shape_only(indptr: Tensor, _indices: Tensor, _values: Tensor, dense: Tensor, _: Sequence[Tensor]) -> Tensor:
    return dense.new_empty((indptr.shape[0] - 1, dense.shape[1]))


class _Product(torch.autograd.Function):
    """S X for fixed S. The gradient with respect to X is Sᵀ times the incoming one: the same operator again."""

    @staticmethod
    def forward(indptr: Tensor, indices: Tensor, values: Tensor, dense: Tensor, *transposed: Tensor) -> Tensor:
        with torch._C._AutoDispatchBelowAutograd():
            return _spmm(indptr, indices, values, dense, transposed)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], _output: Tensor) -> None:
        if len(inputs) < 7:
            raise InputError("lignn::spmm is differentiable only if it is given the transposed matrix too")
        ctx.save_for_backward(*inputs[:3], *inputs[4:])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        matrix, transposed = ctx.saved_tensors[:3], ctx.saved_tensors[3:]
        return None, None, None, _spmm(*transposed, grad, matrix), None, None, None


def _multiply_taped(
    indptr: Tensor, indices: Tensor, values: Tensor, dense: Tensor, transposed: Sequence[Tensor]
) -> Tensor:
    if dense.requires_grad and torch.is_grad_enabled():
        return _Product.apply(indptr, indices, values, dense, *transposed)
    with torch._C._AutoDispatchBelowAutograd():
        return _spmm(indptr, indices, values, dense, transposed)


# An autograd kernel of its own: torch.library.register_autograd would cost several times as much a taped call.
_library.impl("spmm", _multiply_taped, "Autograd")
_library.impl("spmm", _multiply_on_cpu, "CPU")
_library.impl("spmm", _multiply_elsewhere, "CompositeExplicitAutograd")
torch.library.register_fake("lignn::spmm", _shape_only, lib=_library)


def numpy_dtype(dtype: torch.dtype) -> type[np.floating]:
    """NumPy's name of a type that a sparse matrix can have."""
    if dtype not in (torch.float32, torch.float64):
        raise InputError(f"a sparse matrix is float32 or float64, not {dtype}")
    return np.float32 if dtype == torch.float32 else np.float64


@dataclass(frozen=True, eq=False, repr=False)
class SparseMatrix:
    """Immutable CSR matrix S for products `S @ dense`, differentiable in the dense matrix, to any order.

    On the CPU the product is the same to the bit in every run and for any number of threads.

    Attributes:
        indptr: where each row begins in `indices` and `values`; int32 unless there are more than 2³¹ entries.
        indices: the column of each entry, ascending within a row, none twice.
        values: the entries, float32 or float64.
        shape: rows and columns.
    """

    indptr: Tensor
    indices: Tensor
    values: Tensor
    shape: tuple[int, int]

    def __post_init__(self) -> None:
        rows, columns = self.shape
        indptr, indices, values = self._arrays
        numpy_dtype(values.dtype)
        if indptr.dtype != indices.dtype or indices.dtype not in (torch.int32, torch.int64):
            raise InputError(f"indptr ({indptr.dtype}) and indices ({indices.dtype}) must both be int32 or both int64")
        if indptr.shape != (rows + 1,) or indices.shape != values.shape or values.ndim != 1:
            raise InputError(
                f"a CSR matrix of {rows} rows needs {rows + 1} row pointers and as many indices as values, "
                f"not {tuple(indptr.shape)}, {tuple(indices.shape)} and {tuple(values.shape)}"
            )
        # The kernels trust what is checked here: a wrong index would read foreign memory.
        if indptr[0] != 0 or indptr[-1] != len(values) or bool((indptr[1:] < indptr[:-1]).any()):
            raise InputError(f"row pointers must rise from 0 to the number of entries, {len(values)}")
        if len(values) and not 0 <= int(indices.min()) <= int(indices.max()) < columns:
            raise InputError(f"column indices from {int(indices.min())} to {int(indices.max())} in {columns} columns")

    @classmethod
    def from_scipy(cls, matrix: Any, dtype: torch.dtype | None = None) -> Self:
        """A copy of any SciPy sparse matrix or array; entries given twice are summed. `dtype` defaults to its own."""
        csr = sp.csr_array(matrix, copy=True)
        if dtype is None:
            dtype = torch.float64 if csr.dtype == np.float64 else torch.float32
        return cls._adopt(csr, dtype)

    @classmethod
    def _adopt(cls, csr: sp.csr_array, dtype: torch.dtype) -> Self:
        """The arrays of a SciPy matrix that nobody else holds."""
        csr.sum_duplicates()
        index = np.int32 if max(csr.nnz, *csr.shape) < 2**31 else np.int64
        return cls(
            torch.from_numpy(csr.indptr.astype(index, copy=False)),
            torch.from_numpy(csr.indices.astype(index, copy=False)),
            torch.from_numpy(csr.data.astype(numpy_dtype(dtype), copy=False)),
            (int(csr.shape[0]), int(csr.shape[1])),
        )

    @property
    def dtype(self) -> torch.dtype:
        """Type of the entries; a product needs a dense matrix of the same."""
        return self.values.dtype

    @property
    def device(self) -> torch.device:
        """Where the entries are; a product needs a dense matrix there too."""
        return self.values.device

    @property
    def nnz(self) -> int:
        """Number of stored entries."""
        return self.values.shape[0]

    @property
    def T(self) -> Self:  # noqa: N802
        """The transpose, built once; a symmetric matrix is its own."""
        return self if self._transposed is None else self._transposed

    @cached_property
    def _transposed(self) -> Self | None:
        mine, other = self.to_scipy(), self.to_scipy().T.tocsr()
        if all(np.array_equal(getattr(mine, name), getattr(other, name)) for name in ("indptr", "indices", "data")):
            return None
        transposed = self._like(other)
        transposed.__dict__["_transposed"] = self
        return transposed

    @property
    def _arrays(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.indptr, self.indices, self.values

    def _like(self, csr: sp.csr_array) -> Self:
        """A new SciPy matrix as one of this class, type and device."""
        return self._adopt(csr, self.dtype).to(self.device)

    def __matmul__(self, dense: Tensor) -> Tensor:
        if dense.ndim == 1:
            return (self @ dense.unsqueeze(1)).squeeze(1)
        if dense.ndim != 2 or dense.shape[0] != self.shape[1]:
            raise InputError(
                f"a {self.shape[0]} × {self.shape[1]} matrix needs {self.shape[1]} rows to multiply, "
                f"the tensor given has shape {tuple(dense.shape)}"
            )
        if dense.dtype != self.dtype:
            raise InputError(f"the matrix is {self.dtype}, the tensor given {dense.dtype}: convert one with .to(dtype)")
        wanted = dense.requires_grad and torch.is_grad_enabled()
        return _spmm(*self._arrays, dense, self.T._arrays if wanted else ())

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """The matrix in another type or on another device, called like `Tensor.to`."""
        values = self.values.to(*args, **kwargs)
        if values is self.values:
            return self
        return type(self)(self.indptr.to(values.device), self.indices.to(values.device), values, self.shape)

    def to_scipy(self) -> sp.csr_array:
        """As a SciPy matrix; it shares memory with this one on the CPU, so do not write to it."""
        indptr, indices, values = (array.cpu().numpy() for array in self._arrays)
        matrix = sp.csr_array((values, indices, indptr), shape=self.shape)
        matrix.has_canonical_format = True
        return matrix

    def to_dense(self) -> Tensor:
        """As a dense tensor."""
        return torch.from_numpy(self.to_scipy().toarray()).to(self.device)

    @property
    def torch_sparse(self) -> Tensor:
        """As a `torch.sparse` CSR tensor that shares memory with this matrix."""
        return _torch_csr(*self._arrays, self.shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.shape[0]} × {self.shape[1]}, nnz={self.nnz}, {self.dtype})"
