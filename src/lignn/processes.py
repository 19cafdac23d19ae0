"""The processes that work on one problem together: which of them this is, and reductions over all of them.

A process that works alone uses `ALONE`. `joined` connects the processes that `torchrun` or `lignn … --workers` started.
Sums are taken in the order of the ranks, so that every process gets the same bits, and every run does.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any, TypeVar

import torch
from torch import Tensor

from lignn.errors import ConfigError, ProcessError

Function = TypeVar("Function", bound=Callable[..., Any])


class Processes:
    """A single process, and the interface of several."""

    rank = 0
    count = 1

    @property
    def is_first(self) -> bool:
        """Whether this process writes the files and speaks to the user."""
        return self.rank == 0

    def sum(self, x: Tensor) -> Tensor:
        """Return the sum of `x` over all processes."""
        return x

    def sums(self, several: Sequence[Tensor]) -> Sequence[Tensor]:
        """Return the sum of each tensor over all processes, by one exchange; all have the same type."""
        return several

    def largest(self, value: float) -> float:
        """Return the largest `value` of all processes; infinity if one is not a number."""
        return value

    def whole(self, rows: Tensor) -> Tensor:
        """Return the rows of all processes, in the order of the ranks, in the first process; `rows` in the others."""
        return rows

    def all_rows(self, rows: Tensor) -> Tensor:
        """Return the rows of all processes, in the order of the ranks, in every process."""
        return rows

    def exchange(
        self,
        sent: Tensor,  # noqa: ARG002
        out: Tensor,  # noqa: ARG002
        counts: tuple[list[int], list[int]],  # noqa: ARG002
    ) -> Callable[[], None]:
        """Start to send rows to all processes and to receive theirs; return a function that waits for the end.

        Args:
            sent: the rows to send, sorted by the receiving rank.
            out: receives the rows of the others, sorted by the sending rank.
            counts: the number of rows to send to each rank, and to receive from each.
        """
        raise AssertionError("a single process has nobody to exchange rows with")


ALONE = Processes()
"""A process that works alone."""


def _told(function: Function) -> Function:
    """Turn the error of a lost connection into one sentence."""

    @wraps(function)
    def call(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except RuntimeError as error:
            raise ProcessError(
                "another process of this run has ended, so that this one cannot go on; see its message, "
                "and continue the run with --resume"
            ) from error

    return call  # type: ignore[return-value]


class Group(Processes):
    """The processes of `torch.distributed`'s default group; gloo connects CPUs."""

    def __init__(self) -> None:
        self.rank = torch.distributed.get_rank()
        self.count = torch.distributed.get_world_size()

    @_told
    def _parts(self, x: Tensor) -> Tensor:
        """Return `x` of all processes, in the order of the ranks."""
        parts = x.new_empty((self.count, *x.shape))
        torch.distributed.all_gather(list(parts.unbind()), x)
        return parts

    def sum(self, x: Tensor) -> Tensor:
        """Return the sum of `x` over all processes, added in the order of the ranks."""
        return self._parts(x.detach().contiguous()).sum(0)

    def sums(self, several: Sequence[Tensor]) -> Sequence[Tensor]:
        """Return the sum of each tensor over all processes, by one exchange; all have the same type."""
        if not several:
            return several
        joined = self.sum(torch.cat([x.flatten() for x in several]))
        return [part.view_as(x) for part, x in zip(joined.split([x.numel() for x in several]), several, strict=True)]

    def largest(self, value: float) -> float:
        """Return the largest `value` of all processes; infinity if one is not a number."""
        values = self._parts(torch.tensor(value, dtype=torch.float64))
        return float(values.nan_to_num(nan=torch.inf, posinf=torch.inf).max())

    @_told
    def whole(self, rows: Tensor) -> Tensor:
        """Return the rows of all processes, in the order of the ranks, in the first process; `rows` in the others."""
        lengths = [int(length) for length in self._parts(torch.tensor(len(rows)))]
        rows = rows.contiguous()
        if not self.is_first:
            torch.distributed.send(rows, 0)
            return rows
        whole = rows.new_empty((sum(lengths), *rows.shape[1:]))
        parts = whole.split(lengths)
        parts[0].copy_(rows)
        for rank in range(1, self.count):
            torch.distributed.recv(parts[rank], rank)
        return whole

    def all_rows(self, rows: Tensor) -> Tensor:
        """Return the rows of all processes, in the order of the ranks, in every process."""
        lengths = [int(length) for length in self._parts(torch.tensor(len(rows)))]
        padded = rows.new_zeros((max(lengths), *rows.shape[1:]))
        padded[: len(rows)] = rows
        return torch.cat([part[:length] for part, length in zip(self._parts(padded), lengths, strict=True)])

    @_told
    def exchange(self, sent: Tensor, out: Tensor, counts: tuple[list[int], list[int]]) -> Callable[[], None]:
        """Start to send rows to all processes and to receive theirs; return a function that waits for the end."""
        give, take = counts
        work = torch.distributed.all_to_all_single(out, sent, take, give, async_op=True)
        return partial(self._wait, work)

    @_told
    def _wait(self, work: Any) -> None:
        work.wait()


def current() -> Processes:
    """Return the processes that this one has joined; `ALONE` if there are none."""
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1:
        return Group()
    return ALONE


def started() -> bool:
    """Return whether `torchrun` or `lignn … --workers` has started this process as one of several."""
    return "RANK" in os.environ and int(os.environ.get("WORLD_SIZE", "1")) > 1


@contextmanager
def joined(device: str = "cpu") -> Iterator[Processes]:
    """Connect this process to the others of its run, and yield all of them; `ALONE` if it was started alone."""
    if not started():
        yield ALONE
        return
    if not torch.distributed.is_available():
        raise ConfigError("this PyTorch has no torch.distributed; install another build, or use one process")
    torch.distributed.init_process_group("gloo" if device == "cpu" else "nccl")
    try:
        yield current()
    finally:
        torch.distributed.destroy_process_group()
