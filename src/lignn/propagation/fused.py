"""A two-layer step between two products with Ã, with compiled solves: what the kernels need, and how they are run.

This module imports Numba, so the package imports it at the first use.
"""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import accumulate
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lignn.propagation import solve_kernel, step_kernels, threads
from lignn.propagation.product import NARROW
from lignn.propagation.product_kernels import NUMPY
from lignn.propagation.sparse import SparseMatrix

BURST = 1 << 31
"""Multiplications after which a solve returns to Python for a moment, so that Ctrl-C is noticed."""


@dataclass(frozen=True, eq=False)
class Limits:
    """When a solve stops; the fields are those of `equilibrium.solvers.Solver`."""

    tol: float
    max_steps: int
    norm: int
    growth: float | None
    rounding: float
    memory: int = 0
    """Number of steps that Anderson's method remembers; 0 for plain iteration."""

    fixed: bool = False
    """Whether exactly `max_steps` steps are taken and nothing can stop them."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of a compiled solve: the last f(z) or best state, its status as a number, and what was measured."""

    value: Tensor
    status: int
    residuals: tuple[float, ...]
    contraction: float


@dataclass(frozen=True, eq=False)
class Tape:
    """One step at a state, and what its derivative needs.

    Attributes:
        logits: the output before σ, n×c.
        propagated: `P = Ã (scale ∘ Z + offset)`, n×c.
        recorded: `D ∘ [P W + F > 0]` as tiles, for `FusedStep.solve_adjoint`.
    """

    logits: Tensor
    propagated: Tensor
    recorded: Tensor


@dataclass(frozen=True, eq=False)
class FusedStep:
    """`Z ↦ σ(Ã relu(Ã (scale ∘ Z + offset) W + F) V + b)`, or the transpose of its derivative; see `step_kernels`.

    All matrices are on the CPU, contiguous and of one type.

    Attributes:
        matrix: Ã; its transpose is used backward.
        first: W as hidden×c.
        second: V as hidden×c.
        features: F as tiles, see `tiled`.
        scale: factors of the state, n×c.
        offset: what is added to it, n×c.
        bias: b, of length c.
        mask: factors D of the hidden layer as tiles; None for ones.
        sigmoid: whether σ is the sigmoid, else the softmax.
        mask_rows: the same factors as `mask` as n×hidden, for gradients of weights.
    """

    matrix: SparseMatrix
    first: Tensor
    second: Tensor
    features: Tensor
    scale: Tensor
    offset: Tensor
    bias: Tensor
    mask: Tensor | None = None
    sigmoid: bool = False
    mask_rows: Tensor | None = None

    def solve(self, start: Tensor, limits: Limits) -> Outcome:
        """Solve `Z = f(Z)`."""
        return _Run(self, start, self.scale, self.offset).solve(limits)

    def tape(self, state: Tensor) -> Tape:
        """Take one step, and record what its derivative needs."""
        recorded = torch.empty_like(self.features)
        run = _Run(self, state, self.scale, self.offset, recorded=recorded)
        run.solve(Limits(0.0, 1, solve_kernel.RMS, None, 0.0))
        _, propagated, _, product = run.work[:, : len(state)]
        return Tape(product + self.bias, propagated, recorded)

    def solve_adjoint(
        self, b: Tensor, recorded: Tensor, output: Tensor, scale: Tensor, limits: Limits, diagonal: bool = False
    ) -> Outcome:
        """Solve `G = Jᵀ G + b` from `G = b`, where J is the derivative of the step.

        Args:
            b: the right-hand side, n×c.
            recorded: what `tape` recorded at the state at which J is taken.
            output: the step's output at that state.
            scale: factors of the state, n×c, for the backward pass.
            limits: when to stop.
            diagonal: use only the diagonal of the derivative of σ; always so for the sigmoid.
        """
        step = replace(self, matrix=self.matrix.T, first=self.second, second=self.first, mask=recorded)
        return _Run(step, b, scale, b, output=output, diagonal=diagonal or self.sigmoid).solve(limits)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Number of nodes, of classes, and width of the hidden layer."""
        n, c = self.scale.shape
        return n, c, self.first.shape[0]

    @cached_property
    def work(self) -> int:
        """Number of multiplications in one step."""
        n, c, hidden = self.shape
        return 2 * self.matrix.nnz * max(c, NARROW) + 2 * n * c * hidden


def tiled(matrix: Tensor) -> Tensor:
    """Return an n×m matrix as tiles×m×lanes, in which the rows of a tile lie side by side; the last tile is padded."""
    n, m = matrix.shape
    width = step_kernels.lanes(NUMPY[matrix.dtype])
    whole = n // width
    tiles = matrix.new_empty((-(-n // width), m, width))
    tiles[:whole].copy_(matrix[: whole * width].view(whole, width, m).transpose(1, 2))
    if whole < len(tiles):
        tiles[whole].zero_()[:, : n - whole * width].copy_(matrix[whole * width :].T)
    return tiles


class _Run:
    """One solve: its buffers and its task."""

    def __init__(
        self, step: FusedStep, start: Tensor, scale: Tensor, offset: Tensor, recorded: Tensor | None = None,
        output: Tensor | None = None, diagonal: bool = False,
    ) -> None:  # fmt: skip
        self.step, self.start = step, start
        n, self.c, hidden = step.shape
        self.kind = NUMPY[start.dtype]
        width = step_kernels.lanes(self.kind)
        tiles = -(-n // width)
        self.blocks = -(-tiles // step_kernels.BLOCK_TILES)
        self.entries, self.padded = n * self.c, tiles * width * self.c
        self.threads = threads.threads_for(step.work)
        self.work = start.new_empty((4, tiles * width, self.c))
        self.work[:, n:] = 0
        tensors = {
            "first": step.first, "second": step.second, "features": step.features, "mask": step.mask,
            "recorded": recorded, "bias": step.bias, "scale": self._padded(scale), "offset": self._padded(offset),
            "output": None if output is None else self._padded(output),
        }  # fmt: skip
        self.kept = list(tensors.values())  # the kernels have only addresses
        size = self.work[0].nbytes
        x, p, q, y = (self.work.data_ptr() + number * size for number in range(4))
        self.numbers: dict[str, int] = {
            **{name: 0 if tensor is None else tensor.data_ptr() for name, tensor in tensors.items()},
            "x": x, "p": p, "q": q, "y": y,
            "entries": self.entries, "padded": self.padded, "hidden": hidden, "tiles": tiles, "blocks": self.blocks,
            "backward": output is not None, "diagonal": diagonal, "sigmoid": step.sigmoid,
            "has_mask": step.mask is not None, "records": recorded is not None,
        }  # fmt: skip

    def _padded(self, matrix: Tensor) -> Tensor:
        flat = matrix.new_empty(self.padded)
        flat[: self.entries].view(matrix.shape).copy_(matrix)
        flat[self.entries :] = 0
        return flat

    def solve(self, limits: Limits) -> Outcome:
        """Run the compiled loop until it ends."""
        states = self.start.new_empty((solve_kernel.STATES, self.padded))
        states[0] = self._padded(self.start)
        history = self.start.new_empty((2 * limits.memory + 2 if limits.memory else 0, self.padded))
        words, starts, products = self._words(limits, states, history)
        done = words[: len(_PLACES)].view(solve_kernel.SOLVE)[0]
        function, address, team = _advance(), words.ctypes.data, starts["team"]
        done["burst"] = min(max(BURST // max(self.step.work, 1), 1), limits.max_steps)
        while done["status"] == solve_kernel.RUNNING:
            words[team : team + solve_kernel.TEAM] = 0
            threads.run_in_threads(function, address, self.threads)
        del products, history  # the kernels had only their addresses
        status, at = int(done["status"]), done["at_value"]
        if status == solve_kernel.CONVERGED:
            at = done["at_f"]
        elif done["at_best"] >= 0 and not (status == solve_kernel.BUDGET and limits.memory == 0):
            at = done["at_best"]
        value = states[int(at)][: self.entries].view(self.start.shape).clone()
        residuals = words[starts["residuals"] :].view(np.float64)[: int(done["steps"])].tolist()
        return Outcome(value, status, tuple(residuals), float(done["contraction"]))

    def _words(self, limits: Limits, states: Tensor, history: Tensor) -> tuple[np.ndarray, dict[str, int], list[Any]]:
        """Return all that is small as 64-bit words, at which word each part starts, and the tasks of the products."""
        lengths = {
            "task": len(_PLACES), "team": solve_kernel.TEAM + 1, "residuals": limits.max_steps,
            "sums": self.blocks * step_kernels.SUMS, "gram": 2 * step_kernels.MEMORY**2, "gamma": step_kernels.MEMORY,
            "totals": step_kernels.SUMS,
        }  # fmt: skip
        starts = dict(zip(lengths, accumulate(lengths.values(), initial=0), strict=False))
        words = np.zeros(sum(lengths.values()), np.int64)
        memory, size = limits.memory, states.nbytes // solve_kernel.STATES
        x, p, q, y = self.work
        product, first = self._product(x, p, limits.max_steps)
        _, second = self._product(q, y, limits.max_steps)
        enter, rows, finish = _addresses(self.c, self.kind)
        start, past, base = states.data_ptr(), history.data_ptr(), words.ctypes.data
        numbers: dict[str, int] = self.numbers | {name: base + 8 * place for name, place in starts.items()} | {
            "taken": base + 8 * (starts["team"] + solve_kernel.TEAM), "z": start, "remembers": memory > 0,
            "r": past, "last_r": past + size, "values": past + 2 * size, "changes": past + (2 + memory) * size,
            "yield_thread": threads.sched_yield(), "enter": enter, "rows": rows, "finish": finish, "product": product,
            "first_product": first.ctypes.data, "second_product": second.ctypes.data,
            "norm": limits.norm, "follows": memory == 0, "fixed": limits.fixed, "memory": memory,
            "max_steps": limits.max_steps, "at_f": -1, "at_last_z": -1, "at_last_f": -1, "at_best": -1,
            "states": start, "state_bytes": size,
        }  # fmt: skip
        dtype = torch.finfo(self.start.dtype)
        reals = {
            "tol": limits.tol, "growth": limits.growth or 0.0, "rounding": limits.rounding, "eps": dtype.eps,
            "tiny": dtype.tiny, "shortest": math.inf,
        }  # fmt: skip
        task = [0] * len(_PLACES)
        for name, number in numbers.items():
            task[_PLACES[name]] = number
        words[: len(task)] = task
        for name, real in reals.items():
            words.view(np.float64)[_PLACES[name]] = real
        return words, starts, [first, second]

    def _product(self, dense: Tensor, out: Tensor, steps: int) -> tuple[int, np.ndarray]:
        """Return the address of the C function of a product, and the task to call it with."""
        ((function, task),) = self.step.matrix.product.prepared(dense, out, self.threads, steps)
        return ctypes.cast(function, ctypes.c_void_p).value or 0, task


_PLACES = {name: place for place, name in enumerate(step_kernels.FIELDS + solve_kernel.INTEGERS + solve_kernel.REALS)}
"""Position of each field of `solve_kernel.SOLVE`."""


@cache
def _addresses(c: int, kind: Any) -> tuple[int, ...]:
    return tuple(kernel(c, kind).address for kernel in (step_kernels.enter, step_kernels.rows, step_kernels.finish))


@cache
def _advance() -> Any:
    return threads.ThreadFunction(solve_kernel.advance().address)
