"""Reductions over the state: every norm and inner product of a solve is computed here.

A `Space` says who holds the entries of the state. If one process holds them all, use `WHOLE`, the default everywhere.
If the rows are spread over processes, each process runs the same solve on its own rows, with a `Space` whose reductions
run over all processes. Every process then sees the same numbers, takes the same decisions and stops at the same step.
"""

from __future__ import annotations

from torch import Tensor


class Space:
    """The reductions that solvers need, for a state that one process holds whole.

    For a state that is spread over processes, override all four methods. Each must return the same numbers in every
    process.
    """

    def norm(self, x: Tensor) -> float:
        """Return the Frobenius norm of `x`."""
        return x.norm().item()

    def largest(self, x: Tensor) -> float:
        """Return the largest absolute entry of `x`; 0 if it has no entries."""
        low, high = (bound.item() for bound in x.aminmax()) if x.numel() else (0.0, 0.0)
        return max(-low, high)

    def entries(self, x: Tensor) -> int:
        """Return the number of entries of `x`."""
        return x.numel()

    def inner(self, rows: Tensor, x: Tensor) -> Tensor:
        """Return `rows @ x`, a sum over the entries of the state.

        Args:
            rows: flattened states, [entries] or [k, entries].
            x: flattened states, [entries] or [entries, k].
        """
        return rows @ x


WHOLE = Space()
"""The space of a state that this process holds whole."""
