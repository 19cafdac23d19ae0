"""`SparseMatrix`: an immutable CSR matrix with a differentiable product, and the PyTorch operator `lignn::spmm`."""

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
from torch.nn import Parameter

from lignn.errors import InputError

_library = torch.library.Library("lignn", "DEF")
_library.define("spmm(Tensor indptr, Tensor indices, Tensor values, Tensor dense, Tensor[] transposed) -> Tensor")
_spmm = torch.ops.lignn.spmm.default

_PLAIN = (Tensor, Parameter)
"""Tensors that nobody has subclassed."""
_is_compiling, _profiles = torch.compiler.is_compiling, torch._C._autograd._profiler_enabled
_modes, _function_modes = torch._C._len_torch_dispatch_stack, torch._C._len_torch_function_stack
_transforms, _traces = torch._C._functorch.maybe_current_level, torch._C._get_tracing_state


@cache
def _kernels() -> ModuleType:
    return import_module("lignn.propagation.product")  # imports Numba, so not before the first product


def _multiply_on_cpu(indptr: Tensor, indices: Tensor, values: Tensor, dense: Tensor, _: Sequence[Tensor]) -> Tensor:
    return _kernels().Product(indptr, indices, values, dense.shape[0])(dense)


def _multiply_elsewhere(indptr: Tensor, indices: Tensor, values: Tensor, dense: Tensor, _: Sequence[Tensor]) -> Tensor:
    check_same_device(values, dense)
    return _torch_csr(indptr, indices, values, (indptr.shape[0] - 1, dense.shape[0])) @ dense


def _torch_csr(indptr: Tensor, indices: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(indptr, indices, values, shape, check_invariants=False)


def _multiply_shapes(indptr: Tensor, _indices: Tensor, values: Tensor, dense: Tensor, _: Sequence[Tensor]) -> Tensor:
    check_same_device(values, dense)
    return dense.new_empty((indptr.shape[0] - 1, dense.shape[1]))


def check_same_device(matrix: Tensor, x: Tensor) -> None:
    """Raise an error if the entries of a matrix and a dense tensor x are on different devices."""
    if matrix.device != x.device:
        raise InputError(f"the matrix is on {matrix.device} and the tensor on {x.device}: move one with .to(device)")


class _Product(torch.autograd.Function):
    """The product S X for a constant S. Its gradient with respect to X is Sᵀ G, computed by the same operator."""

    @staticmethod
    def forward(indptr: Tensor, indices: Tensor, values: Tensor, dense: Tensor, *transposed: Tensor) -> Tensor:
        with torch._C._AutoDispatchBelowAutograd():
            return _spmm(indptr, indices, values, dense, transposed)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], _output: Tensor) -> None:
        if len(inputs) < 7:
            raise InputError("lignn::spmm needs the transposed matrix to be differentiable: pass its three arrays")
        ctx.save_for_backward(*inputs[:3], *inputs[4:])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        matrix, transposed = ctx.saved_tensors[:3], ctx.saved_tensors[3:]
        return None, None, None, _spmm(*transposed, grad, matrix), None, None, None


class _ProductHere(torch.autograd.Function):
    """The product S X on the CPU outside of the dispatcher, and its gradient Sᵀ G."""

    @staticmethod
    def forward(ctx: Any, dense: Tensor, matrix: SparseMatrix) -> Tensor:
        ctx.matrix = matrix
        return matrix @ dense

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return ctx.matrix.T @ grad, None


def _multiply_with_autograd(
    indptr: Tensor, indices: Tensor, values: Tensor, dense: Tensor, transposed: Sequence[Tensor]
) -> Tensor:
    if dense.requires_grad and torch.is_grad_enabled():
        return _Product.apply(indptr, indices, values, dense, *transposed)
    with torch._C._AutoDispatchBelowAutograd():
        return _spmm(indptr, indices, values, dense, transposed)


# torch.library.register_autograd would make a product that records gradients several times slower.
_library.impl("spmm", _multiply_with_autograd, "Autograd")
_library.impl("spmm", _multiply_on_cpu, "CPU")
_library.impl("spmm", _multiply_elsewhere, "CompositeExplicitAutograd")
torch.library.register_fake("lignn::spmm", _multiply_shapes, lib=_library)


def numpy_dtype(dtype: torch.dtype) -> type[np.floating]:
    """Return the NumPy equivalent of a dtype that a sparse matrix can have."""
    if dtype not in (torch.float32, torch.float64):
        raise InputError(f"a sparse matrix is float32 or float64, not {dtype}")
    return np.float32 if dtype == torch.float32 else np.float64


@dataclass(frozen=True, eq=False, repr=False)
class SparseMatrix:
    """Immutable CSR matrix S for products `S @ dense`, which can be differentiated in `dense` any number of times.

    On the CPU, a product has the same bits in every run and for any number of threads.

    A matrix is built and checked on the CPU. `to(device)` returns a copy on another device that keeps a reference to
    the matrix on the CPU. Only products run on the other device. Everything else (the transpose, SciPy and dense
    copies, derived matrices) is computed on the CPU, and the result is moved. The tests use PyTorch's `meta` device;
    products have not been run on an accelerator here.

    Attributes:
        indptr: position in `indices` and `values` at which each row starts; int64 only for 2³¹ or more entries.
        indices: column of each entry, in ascending order within a row and without repetition.
        values: the entries, float32 or float64.
        shape: number of rows and of columns.
        original: the same matrix on the CPU if this one is on another device, else None.
    """

    indptr: Tensor
    indices: Tensor
    values: Tensor
    shape: tuple[int, int]
    original: Self | None = None

    def __post_init__(self) -> None:
        if self.original is not None:
            return
        # The kernels rely on these checks: a wrong index would make them read memory outside the arrays.
        rows, columns = self.shape
        indptr, indices, values = self._arrays
        if any(array.device.type != "cpu" for array in self._arrays):
            raise InputError("the arrays of a new sparse matrix must be on the CPU: move the matrix with .to(device)")
        numpy_dtype(values.dtype)
        if indptr.dtype != indices.dtype or indices.dtype not in (torch.int32, torch.int64):
            raise InputError(f"indptr ({indptr.dtype}) and indices ({indices.dtype}) must both be int32 or both int64")
        if indptr.shape != (rows + 1,) or indices.shape != values.shape or values.ndim != 1:
            raise InputError(
                f"a CSR matrix of {rows} rows needs {rows + 1} row pointers and as many indices as values, "
                f"not {tuple(indptr.shape)}, {tuple(indices.shape)} and {tuple(values.shape)}"
            )
        if indptr[0] != 0 or indptr[-1] != len(values) or bool((indptr[1:] < indptr[:-1]).any()):
            raise InputError(f"row pointers must rise from 0 to the number of entries, {len(values)}")
        low, high = (int(indices.min()), int(indices.max())) if len(values) else (0, -1)
        if low < 0 or high >= columns:
            raise InputError(f"column indices from {low} to {high} do not fit in a matrix of {columns} columns")

    @classmethod
    def from_scipy(cls, matrix: Any, dtype: torch.dtype | None = None) -> Self:
        """Copy a SciPy sparse matrix or array of any format, and sum entries that are given twice.

        Args:
            matrix: the matrix to copy.
            dtype: float32 or float64; by default float64 for a float64 matrix, else float32.
        """
        csr = sp.csr_array(matrix, copy=True)
        return cls._wrap(csr, dtype or (torch.float64 if csr.dtype == np.float64 else torch.float32))

    @classmethod
    def _wrap(cls, csr: sp.csr_array, dtype: torch.dtype) -> Self:
        """Build a matrix from the arrays of a SciPy matrix that is not used elsewhere; they are copied only if cast."""
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
        """Type of the entries; a product needs a dense matrix of the same type."""
        return self.values.dtype

    @property
    def device(self) -> torch.device:
        """Device of the entries; a product needs a dense matrix on the same device."""
        return self.values.device

    @property
    def nnz(self) -> int:
        """Number of stored entries."""
        return self.values.shape[0]

    @property
    def T(self) -> Self:  # noqa: N802
        """The transpose, computed once; `S.T is S` if the matrix is symmetric."""
        return self if self._transposed is None else self._transposed

    @cached_property
    def _transposed(self) -> Self | None:
        """The transpose, or None if the matrix is symmetric."""
        if self._pattern is not None:
            transposed, places = self._pattern._transposed_pattern
            return transposed.with_values(self.values[places])  # type: ignore[return-value]
        mine, other = self.to_scipy(), self.to_scipy().T.tocsr()
        if all(np.array_equal(getattr(mine, name), getattr(other, name)) for name in ("indptr", "indices", "data")):
            return None
        transposed = self._wrap_like_self(other)
        transposed.__dict__["_transposed"] = self
        return transposed

    def with_values(self, values: Tensor) -> SparseMatrix:
        """Return a matrix with the same positions and other entries.

        The positions are neither checked nor transposed again, so that every epoch can have a matrix of its own.
        """
        if (values.shape, values.dtype, values.device) != (self.values.shape, self.dtype, self.device):
            raise InputError(f"{self.nnz} entries of type {self.dtype} on {self.device} are needed")
        other = object.__new__(SparseMatrix)  # without the checks
        arrays = {"indptr": self.indptr, "indices": self.indices, "values": values.contiguous()}
        vars(other).update(arrays, shape=self.shape, original=self.original, _pattern=self._pattern or self)
        return other

    @cached_property
    def _pattern(self) -> SparseMatrix | None:
        """The matrix that this one has its positions from; None if they are its own."""
        return None  # `with_values` replaces it

    @cached_property
    def _transposed_pattern(self) -> tuple[SparseMatrix, Tensor]:
        """The transpose, and the place in this matrix of each of its entries."""
        mine = self.to_scipy()
        places = sp.csr_array((np.arange(self.nnz), mine.indices, mine.indptr), shape=self.shape).T.tocsr()
        entries = sp.csr_array((mine.data[places.data], places.indices, places.indptr), shape=places.shape)
        return SparseMatrix._wrap(entries, self.dtype).to(self.device), torch.from_numpy(places.data).to(self.device)

    @property
    def _arrays(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.indptr, self.indices, self.values

    def _wrap_like_self(self, csr: sp.csr_array) -> Self:
        """Build a matrix of this one's class, type and device from a SciPy matrix that is not used elsewhere."""
        return self._wrap(csr, self.dtype).to(self.device)

    def __matmul__(self, dense: Tensor) -> Tensor:
        if dense.ndim == 1:
            return (self @ dense.unsqueeze(1)).squeeze(1)
        if dense.ndim != 2 or dense.shape[0] != self.shape[1]:
            raise InputError(
                f"a {self.shape[0]} × {self.shape[1]} matrix can multiply a tensor of {self.shape[1]} rows, "
                f"not one of shape {tuple(dense.shape)}"
            )
        if dense.dtype != self.dtype:
            raise InputError(f"the matrix is {self.dtype} and the tensor {dense.dtype}: convert one with .to(dtype)")
        needs_gradient = dense.requires_grad and torch.is_grad_enabled()
        if not self.runs_here(dense):
            return _spmm(*self._arrays, dense, self.T._arrays if needs_gradient else ())
        if needs_gradient:
            return _ProductHere.apply(dense, self)
        if _profiles():
            with torch.profiler.record_function("lignn::spmm"):
                return self.product(dense)
        return self.product(dense)

    def runs_here(self, dense: Tensor) -> bool:
        """Return whether a product is computed by the kernel and nobody watches operators.

        PyTorch's dispatcher takes several times longer than a product of a small graph. It is needed for other devices,
        and for everything that sees a product as an operator: compilation, tracing, functional transforms and modes.
        """
        return (
            type(dense) in _PLAIN
            and dense.is_cpu
            and self.original is None
            and not (_is_compiling() or _modes() or _function_modes())
            and _transforms() is None
            and _traces() is None
        )

    @cached_property
    def product(self) -> Any:
        """The product on the CPU, with everything that was chosen for it."""
        return _kernels().Product(*self._arrays, self.shape[1], lasting=self._pattern is None)

    def __getstate__(self) -> dict[str, Any]:
        # Addresses of memory cannot be copied or pickled. They are found again at the first product.
        return {name: value for name, value in vars(self).items() if name != "product"}

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Return the matrix with another dtype, on another device, or both; the arguments are those of `Module.to`."""
        device, dtype, *_ = torch._C._nn._parse_to(*args, **kwargs)
        device = self.device if device is None else torch.empty(0, device=device).device  # "cuda" becomes "cuda:0"
        dtype = dtype or self.dtype
        if (device, dtype) == (self.device, self.dtype):
            return self
        on_cpu: Any = self if self.original is None else self.original
        if self.original is not None and self._pattern is not None:
            on_cpu = self.original.with_values(self.values.cpu())
        if dtype != self.dtype:
            on_cpu = type(self)(on_cpu.indptr, on_cpu.indices, on_cpu.values.to(dtype), self.shape)
        if device.type == "cpu":
            return on_cpu
        indptr, indices, values = (array.to(device) for array in on_cpu._arrays)
        return type(self)(indptr, indices, values, self.shape, original=on_cpu)

    def to_scipy(self) -> sp.csr_array:
        """Return the matrix as a SciPy one. It shares its memory with the matrix on the CPU: do not write to it."""
        indptr, indices, values = (array.numpy() for array in self.to("cpu")._arrays)
        matrix = sp.csr_array((values, indices, indptr), shape=self.shape)
        matrix.has_canonical_format = True
        return matrix

    def to_dense(self) -> Tensor:
        """Return the matrix as a dense tensor on the same device."""
        return torch.from_numpy(self.to_scipy().toarray()).to(self.device)

    @property
    def torch_sparse(self) -> Tensor:
        """The matrix as a `torch.sparse` CSR tensor that shares its memory."""
        return _torch_csr(*self._arrays, self.shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.shape[0]} × {self.shape[1]}, nnz={self.nnz}, {self.dtype})"


def scaled_rows(x: Tensor | SparseMatrix, factor: Tensor) -> Tensor | SparseMatrix:
    """Return a matrix with each row multiplied by a number."""
    if isinstance(x, SparseMatrix):
        return x.with_values(x.values * factor.repeat_interleave(x.indptr.diff(), output_size=x.nnz))
    return x * factor[:, None]


def unit_rows(x: sp.csr_array) -> sp.csr_array:
    """Return `x` with every row divided by its length; rows of zeros stay."""
    length = np.sqrt(x.multiply(x).sum(1, dtype=np.float64))
    factor = np.divide(1, length, out=np.zeros_like(length), where=length > 0)
    data = x.data * np.repeat(factor, np.diff(x.indptr))
    return sp.csr_array((data.astype(x.dtype, copy=False), x.indices, x.indptr), shape=x.shape)
