"""`Rows`: a matrix with one row per node that is computed block by block, only where it is needed.

Between two products with Ã, a network maps each row by itself. Such maps are recorded here instead of computed. A
product, or `dense`, then runs them on one block of rows after the other, so that wide hidden layers exist for one block
at a time. The backward pass computes each block once more. A tensor that is no `Rows` is the same for all rows, such as
a weight: its gradient is the sum over all blocks, and over all processes.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from lignn.errors import ConfigError
from lignn.store import Share


class Rows(ABC):
    """A matrix of which only one block of rows is computed at a time.

    Attributes:
        share: the nodes of its rows.
        sample: an empty block; it has the width and the type.
    """

    def __init__(self, share: Share, sample: Tensor) -> None:
        self.share, self.sample = share, sample

    @abstractmethod
    def block(self, rows: slice, given: dict[int, Tensor], memo: dict[int, Any]) -> Any:
        """Compute a block; `given` has the tensors to compute with, by the identity of those they stand for."""

    def tensors(self, found: dict[int, tuple[Tensor, bool]]) -> None:  # noqa: B027
        """Collect all tensors that it is computed from, and whether they have one row per node; by default none."""

    @property
    def shape(self) -> torch.Size:
        """Number of rows of this process, and of columns."""
        return torch.Size((len(self.share), self.sample.shape[1]))

    @property
    def dtype(self) -> torch.dtype:
        """Type of the entries."""
        return self.sample.dtype

    @property
    def device(self) -> torch.device:
        """Device of the entries."""
        return self.sample.device

    def __len__(self) -> int:
        return len(self.share)

    def dim(self) -> int:
        """Return 2, the number of dimensions."""
        return 2

    def numel(self) -> int:
        """Return the number of entries."""
        return self.shape.numel()

    def kept(self, p: float, generator: Generator | None) -> Rows:
        """Return dropout's factors, 0 with probability p and 1/(1-p) otherwise, drawn as for a tensor in memory."""
        bits = self.share.drawn(self.shape[1], lambda size: torch.rand(size, generator=generator) >= p)
        return _Kept(self.share, self.sample, p, bits)

    def __matmul__(self, other: Tensor) -> Rows:
        return Mapped(operator.matmul, (self, other))

    def __add__(self, other: Any) -> Rows:
        return Mapped(operator.add, (self, other))

    def __sub__(self, other: Any) -> Rows:
        return Mapped(operator.sub, (self, other))

    def __mul__(self, other: Any) -> Rows:
        return Mapped(operator.mul, (self, other))

    __radd__, __rmul__ = __add__, __mul__
    add_ = __add__  # the sum is recorded: nothing is overwritten

    def relu(self) -> Rows:
        """Record ReLU."""
        return Mapped(torch.relu, (self,))

    relu_ = relu

    def clone(self) -> Rows:
        """Return itself: nothing can be overwritten."""
        return self

    @classmethod
    def __torch_function__(cls, func: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Rows:
        if func is functional.batch_norm:
            return _batch_norm(*args, **(kwargs or {}))
        name = getattr(func, "__name__", str(func))
        if name not in _OF_ROWS or (name == "cat" and (kwargs or {}).get("dim", args[-1]) != 1):
            raise ConfigError(f"the network uses {name}, which is no map of rows; give it a graph in memory")
        return Mapped(func, args, kwargs)


_OF_ROWS = (
    *("linear", "cat", "add", "mul", "rmul", "sub", "relu", "sigmoid", "tanh", "leaky_relu", "elu", "gelu"),
    "layer_norm",
)
"""PyTorch's functions that compute each row from the same row of the arguments."""


class Held(Rows):
    """A matrix that is in memory."""

    def __init__(self, share: Share, tensor: Tensor) -> None:
        super().__init__(share, tensor[:0].detach())
        self.tensor = tensor

    def block(self, rows: slice, given: dict[int, Tensor], memo: dict[int, Any]) -> Tensor:  # noqa: ARG002
        """Return the rows of the tensor, or what stands for them."""
        return given[id(self.tensor)] if id(self.tensor) in given else self.tensor[rows]

    def tensors(self, found: dict[int, tuple[Tensor, bool]]) -> None:
        """Add the tensor."""
        found[id(self.tensor)] = self.tensor, True


class _Kept(Rows):
    """Dropout's factors, kept as bits."""

    def __init__(self, share: Share, sample: Tensor, p: float, bits: np.ndarray) -> None:
        super().__init__(share, sample)
        self.p, self.bits = p, bits

    def block(self, rows: slice, given: dict[int, Tensor], memo: dict[int, Any]) -> Tensor:  # noqa: ARG002
        """Return the factors of a block."""
        kept = np.unpackbits(self.bits[rows], axis=1, count=self.shape[1])
        return torch.from_numpy(kept).to(self.dtype) / (1 - self.p)


class Mapped(Rows):
    """A recorded map of rows."""

    def __init__(self, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any] | None = None) -> None:
        self.function, self.given = function, [tuple(args), kwargs or {}]
        first = next(arg for arg in _flat(self.given) if isinstance(arg, Rows))
        args, kwargs = _replaced(self.given, lambda each: each.sample)
        with torch.no_grad():
            super().__init__(first.share, function(*args, **kwargs))

    def block(self, rows: slice, given: dict[int, Tensor], memo: dict[int, Any]) -> Any:
        """Compute the arguments, then the function; what several maps share is computed once."""
        if id(self) not in memo:
            args, kwargs = _replaced(
                self.given,
                lambda each: each.block(rows, given, memo),
                lambda tensor: given.get(id(tensor), tensor),
            )
            memo[id(self)] = self.function(*args, **kwargs)
        return memo[id(self)]

    def tensors(self, found: dict[int, tuple[Tensor, bool]]) -> None:
        """Collect those of all arguments."""
        for arg in _flat(self.given):
            if isinstance(arg, Rows):
                arg.tensors(found)
            elif isinstance(arg, Tensor):
                found.setdefault(id(arg), (arg, False))


def _flat(args: Any) -> Iterator[Any]:
    for arg in args.values() if isinstance(args, dict) else args:
        yield from _flat(arg) if isinstance(arg, list | tuple | dict) else (arg,)


def _replaced(args: Any, rows: Callable[[Rows], Any], tensor: Callable[[Tensor], Tensor] = lambda each: each) -> Any:
    """Return arguments with other values for `Rows` and for tensors."""
    if isinstance(args, dict):
        return {name: _replaced(arg, rows, tensor) for name, arg in args.items()}
    if isinstance(args, list | tuple):
        return type(args)(_replaced(arg, rows, tensor) for arg in args)
    return rows(args) if isinstance(args, Rows) else tensor(args) if isinstance(args, Tensor) else args


def dense(x: Tensor | Rows) -> Tensor:
    """Return the matrix in memory, computed block by block; a tensor is returned as it is."""
    if isinstance(x, Tensor):
        return x
    return x.tensor if isinstance(x, Held) else _computed(x, summed=False)


def column_sums(x: Rows) -> Tensor:
    """Return the sum of all rows of all processes."""
    return _computed(x, summed=True)


def _computed(rows: Rows, summed: bool) -> Tensor:
    found: dict[int, tuple[Tensor, bool]] = {}
    rows.tensors(found)
    tensors = [tensor for tensor, _ in found.values()]
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        return _Compute.apply(rows, summed, tuple(found), tuple(each for _, each in found.values()), *tensors)
    return _forward(rows, summed)


def _forward(rows: Rows, summed: bool) -> Tensor:
    with torch.no_grad():
        if not summed:
            out = rows.sample.new_empty(rows.shape)
            for block in rows.share.blocks():
                out[block] = rows.block(block, {}, {})
            return out
        total = rows.sample.new_zeros(rows.shape[1])
        for block in rows.share.blocks():
            total += rows.block(block, {}, {}).sum(0)
        return rows.share.processes.sum(total)


class _Compute(torch.autograd.Function):
    """Computes recorded rows, or their sum; the backward pass computes each block once more."""

    @staticmethod
    def forward(
        ctx: Any, rows: Rows, summed: bool, keys: tuple[int, ...], by_row: tuple[bool, ...], *tensors: Tensor
    ) -> Tensor:
        ctx.rows, ctx.summed, ctx.keys, ctx.by_row = rows, summed, keys, by_row
        ctx.save_for_backward(*tensors)
        return _forward(rows, summed)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        rows: Rows = ctx.rows
        tensors, keys, by_row = ctx.saved_tensors, ctx.keys, ctx.by_row
        needed = ctx.needs_input_grad[-len(tensors) :]
        wanted = [i for i, function in enumerate(ctx.next_functions) if needed[i] and _is_wanted(function)]
        grads = {i: torch.zeros_like(tensors[i]) for i in wanted}
        for block in rows.share.blocks():
            given = {
                keys[i]: (tensors[i][block] if by_row[i] else tensors[i]).detach().requires_grad_(i in grads)
                for i in range(len(tensors))
            }
            with torch.enable_grad():
                out = rows.block(block, given, {})
            upstream = grad.expand_as(out) if ctx.summed else grad[block]
            found = torch.autograd.grad(
                out, [given[keys[i]] for i in wanted], upstream, allow_unused=True, materialize_grads=True
            )
            for i, each in zip(wanted, found, strict=True):
                if by_row[i]:
                    grads[i][block] = each
                else:
                    grads[i] += each
        shared = [i for i in wanted if not by_row[i]]
        grads |= zip(shared, rows.share.processes.sums([grads[i] for i in shared]), strict=True)
        return None, None, None, None, *(grads.get(i) for i in range(len(tensors)))


def _is_wanted(function: tuple[Any, int]) -> bool:
    """Return whether the present backward pass needs a gradient: the adjoint needs those of states, not of weights."""
    try:
        return torch._C._will_engine_execute_node(function[0])
    except RuntimeError:  # PyTorch does not answer for a tensor whose gradient was asked for itself
        return True


def _batch_norm(
    x: Rows,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Rows:
    """Return `functional.batch_norm` of the rows of all processes."""
    if training:
        count = x.share.total
        mean = column_sums(x) / count
        difference = x - mean
        variance = column_sums(difference * difference) / count
        if running_mean is not None and running_var is not None:
            with torch.no_grad():
                running_mean.lerp_(mean.detach(), momentum)
                running_var.lerp_(variance.detach() * (count / (count - 1)), momentum)
    else:
        assert running_mean is not None
        assert running_var is not None
        difference, variance = x - running_mean, running_var
    normal = difference * (variance + eps).rsqrt()
    normal = normal if weight is None else normal * weight
    return normal if bias is None else normal + bias
