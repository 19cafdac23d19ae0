"""A two-layer step between two products with Ã, with compiled solves: what the kernels need, and how they are run.

This module imports Numba, so the package imports it at the first use.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from lignn.propagation import solve_kernel, step_kernels, threads
from lignn.propagation.product import NARROW
from lignn.propagation.product_kernels import NUMPY
from lignn.propagation.sparse import SparseMatrix

BURST = 1 << 31
"""Multiplications after which a solve returns to Python for a moment, so that Ctrl-C is noticed."""


@dataclass(frozen=True)
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


_ONE_STEP = Limits(0.0, 1, solve_kernel.RMS, None, 0.0)


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
        scale: factors of the state, n×c or n×1.
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
        return _Run(self, limits, start, self.scale, self.offset).outcome

    def tape(self, state: Tensor) -> Tape:
        """Take one step, and record what its derivative needs."""
        recorded = torch.empty_like(self.features)
        threads.use_huge_pages(recorded)
        run = _Run(self, _ONE_STEP, state, self.scale, self.offset, recorded=recorded)
        p, y = (run.rows[_ROWS[name], : len(state)] for name in ("p", "y"))
        return Tape(y + self.bias, p.clone(), recorded)  # a copy, so that the other rows are freed

    def solve_adjoint(
        self, b: Tensor, recorded: Tensor, output: Tensor, scale: Tensor, limits: Limits, diagonal: bool = False
    ) -> Outcome:
        """Solve `G = Jᵀ G + b` from `G = b`, where J is the derivative of the step.

        Args:
            b: the right-hand side, n×c.
            recorded: what `tape` recorded at the state at which J is taken.
            output: the step's output at that state.
            scale: factors of the state, n×c or n×1, for the backward pass.
            limits: when to stop.
            diagonal: use only the diagonal of the derivative of σ; always so for the sigmoid.
        """
        step = replace(self, matrix=self.matrix.T, first=self.second, second=self.first, mask=recorded)
        return _Run(step, limits, b, scale, b, output=output, diagonal=diagonal or self.sigmoid).outcome

    @property
    def shape(self) -> tuple[int, int, int]:
        """Number of nodes, of classes, and width of the hidden layer."""
        n, c = self.offset.shape
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
    threads.use_huge_pages(tiles)
    tiles[:whole].copy_(matrix[: whole * width].view(whole, width, m).transpose(1, 2))
    if whole < len(tiles):
        tiles[whole].zero_()[:, : n - whole * width].copy_(matrix[whole * width :].T)
    return tiles


class _Layout(NamedTuple):
    """What a solve hands to the compiled loop as 64-bit words, before the addresses of its memory are known.

    Attributes:
        words: the fields of `solve_kernel.SOLVE`, and room for all that is small; addresses count from zero.
        in_words: positions of the fields that are addresses in `words` itself.
        in_rows: positions of those that are addresses in the rows of the state's size.
        starts: at which word each small part starts.
        rows: number of rows of the state's size.
    """

    words: np.ndarray
    in_words: np.ndarray
    in_rows: np.ndarray
    starts: dict[str, int]
    rows: int


@lru_cache(maxsize=64)
def _layout(limits: Limits, c: int, kind: Any, size: int, flags: tuple[tuple[str, int], ...]) -> _Layout:
    """Return the layout of a solve; computing it takes longer than a step of a small graph.

    Args:
        limits: when the solve stops.
        c: number of classes.
        kind: type of all numbers.
        size: bytes of a row.
        flags: other fields by name.
    """
    numbers = dict(flags)
    lengths = {
        "task": len(_PLACES), "team": solve_kernel.TEAM + 1, "residuals": limits.max_steps,
        "sums": numbers["blocks"] * step_kernels.SUMS, "gram": 2 * step_kernels.MEMORY**2,
        "gamma": step_kernels.MEMORY, "totals": step_kernels.SUMS,
    }  # fmt: skip
    starts = dict(zip(lengths, accumulate(lengths.values(), initial=0), strict=False))
    memory, past = limits.memory, _Z + solve_kernel.STATES
    own = {name: 8 * place for name, place in starts.items()} | {"taken": 8 * (starts["team"] + solve_kernel.TEAM)}
    places = {**_ROWS, "states": _Z, "r": past, "last_r": past + 1, "values": past + 2, "changes": past + 2 + memory}
    enter, rows, finish = (kernel(c, kind).address for kernel in _KERNELS)
    numbers |= own | {name: row * size for name, row in places.items()} | {
        "remembers": memory > 0, "yield_thread": threads.sched_yield(), "enter": enter, "rows": rows, "finish": finish,
        "norm": limits.norm, "follows": memory == 0, "fixed": limits.fixed, "memory": memory,
        "max_steps": limits.max_steps, "at_f": -1, "at_last_z": -1, "at_last_f": -1, "at_best": -1, "state_bytes": size,
    }  # fmt: skip
    reals = {
        "tol": limits.tol, "growth": limits.growth or 0.0, "rounding": limits.rounding, "eps": np.finfo(kind).eps,
        "tiny": np.finfo(kind).tiny, "shortest": math.inf,
    }  # fmt: skip
    words = np.zeros(sum(lengths.values()), np.int64)
    words[_at(numbers)] = [*numbers.values()]
    words.view(np.float64)[_at(reals)] = [*reals.values()]
    return _Layout(words, _at(own), _at(places), starts, past + (2 * memory + 2 if memory else 0))


class _Run:
    """One solve: its memory, whose rows the kernels know by their addresses, and its outcome."""

    def __init__(
        self, step: FusedStep, limits: Limits, start: Tensor, scale: Tensor, offset: Tensor,
        recorded: Tensor | None = None, output: Tensor | None = None, diagonal: bool = False,
    ) -> None:  # fmt: skip
        n, c, hidden = step.shape
        kind = NUMPY[start.dtype]
        width = step_kernels.lanes(kind)
        tiles = -(-n // width)
        flags = (
            ("entries", n * c), ("padded", tiles * width * c), ("hidden", hidden), ("tiles", tiles),
            ("blocks", -(-tiles // step_kernels.BLOCK_TILES)), ("backward", output is not None),
            ("diagonal", diagonal), ("sigmoid", step.sigmoid), ("has_mask", step.mask is not None),
            ("records", recorded is not None),
        )  # fmt: skip
        layout = _layout(limits, c, kind, tiles * width * c * start.element_size(), flags)
        self.rows = start.new_empty((layout.rows, tiles * width, c))
        threads.use_huge_pages(self.rows)
        rows = self.rows.numpy()
        rows[:, n:] = 0  # the last tile may have more rows than there are nodes
        given = {"scale": scale, "offset": offset, "z": start} | ({} if output is None else {"output": output})
        for name, tensor in given.items():
            rows[_ROWS[name], :n] = tensor.numpy()
        self.outcome = self._solve(step, limits, layout, recorded, n)

    def _solve(self, step: FusedStep, limits: Limits, layout: _Layout, recorded: Tensor | None, n: int) -> Outcome:
        """Run the compiled loop until it ends."""
        words, team = layout.words.copy(), layout.starts["team"]
        words[layout.in_words] += words.ctypes.data
        words[layout.in_rows] += self.rows.data_ptr()
        weights = step.first, step.second, step.features, step.mask, recorded, step.bias
        count = threads.threads_for(step.work)
        product, first, second = self._products(step.matrix, count, limits.max_steps)
        burst = min(max(BURST // max(step.work, 1), 1), limits.max_steps)
        addresses = (0 if tensor is None else tensor.data_ptr() for tensor in weights)
        words[_AT_RUN] = [*addresses, product, first.ctypes.data, second.ctypes.data, burst]
        while words[_STATUS] == solve_kernel.RUNNING:
            words[team : team + solve_kernel.TEAM] = 0
            threads.run_in_threads(_advance(), words.ctypes.data, count)
        status, at, best = (int(number) for number in words[_AT_END])
        if status == solve_kernel.CONVERGED:
            at = int(words[_PLACES["at_f"]])
        elif best >= 0 and not (status == solve_kernel.BUDGET and limits.memory == 0):
            at = best
        reals, residuals = words.view(np.float64), layout.starts["residuals"]
        measured = reals[residuals : residuals + int(words[_PLACES["steps"]])].tolist()
        return Outcome(self.rows[_Z + at, :n].clone(), status, tuple(measured), float(reals[_PLACES["contraction"]]))

    def _products(self, matrix: SparseMatrix, count: int, steps: int) -> tuple[int, np.ndarray, np.ndarray]:
        """Return the address of the C function of both products, and their tasks: `P = Ã X` and `Y = Ã Q`."""
        x, p = self.rows[0], self.rows[1]
        ((function, first),) = matrix.product.prepared(x, p, count, 2 * steps)
        second = first.copy()
        second[-2:] += 2 * x.nbytes
        return function.address, first, second


_PLACES = {name: place for place, name in enumerate(step_kernels.FIELDS + solve_kernel.INTEGERS + solve_kernel.REALS)}
"""Position of each field of `solve_kernel.SOLVE`."""
_ROWS = {name: row for row, name in enumerate(("x", "p", "q", "y", "scale", "offset", "output", "z"))}
"""Row of each matrix of the state's size; the other states follow z, then what Anderson's method remembers."""
_Z = _ROWS["z"]
_KERNELS = step_kernels.enter, step_kernels.rows, step_kernels.finish


def _at(names: Iterable[str]) -> np.ndarray:
    return np.array([_PLACES[name] for name in names])


_AT_RUN = _at(
    ("first", "second", "features", "mask", "recorded", "bias", "product", "first_product", "second_product", "burst")
)
_AT_END, _STATUS = _at(("status", "at_value", "at_best")), _PLACES["status"]


@cache
def _advance() -> Any:
    return threads.ThreadFunction(solve_kernel.advance().address)
