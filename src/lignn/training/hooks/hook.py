"""The interface of everything that happens around the epochs of a training."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lignn.methods import Problem
    from lignn.training.history import End
    from lignn.training.run import Run


class Hook:
    """Something that happens around the epochs of a training; every method does nothing unless it is overridden.

    The hooks of a training are called in their order, which is that of their random draws.
    """

    def training(self, run: Run) -> AbstractContextManager[None]:  # noqa: ARG002
        """Return a context around all epochs."""
        return nullcontext()

    def before_epoch(self, run: Run, problem: Problem) -> Problem:  # noqa: ARG002
        """Return the problem of the next epoch; `problem` is that of the hooks before."""
        return problem

    def after_update(self, run: Run, record: dict[str, Any]) -> None:
        """Take note of new weights, once an epoch; `record` begins to describe it."""

    def evaluating(self, run: Run, problem: Problem) -> AbstractContextManager[None]:  # noqa: ARG002
        """Return a context around the predictions of an epoch, which was trained on `problem`."""
        return nullcontext()

    def after_epoch(self, run: Run, record: dict[str, Any]) -> End | None:  # noqa: ARG002
        """Return why training ends after this epoch; None if it goes on."""
        return None

    def state(self) -> dict[str, Any]:
        """Return a copy of all that later epochs depend on, under a name of its own, for checkpoints."""
        return {}

    def load(self, state: dict[str, Any], inference: Problem) -> None:
        """Restore what `state` returned, from the state of the whole training; raise if it does not fit."""
