"""Telling how far training is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lignn.training.history import History
from lignn.training.hooks.hook import Hook

if TYPE_CHECKING:
    from lignn.training.run import Run

Progress = Callable[[History], object]
"""Function that is called with the history after every epoch, e.g. to show the progress."""


class Watch(Hook):
    """Calls a function after every epoch.

    Args:
        progress: the function.
    """

    def __init__(self, progress: Progress) -> None:
        self.progress = progress

    def after_epoch(self, run: Run, record: dict[str, Any]) -> None:  # noqa: ARG002
        """Call the function with the history so far."""
        self.progress(run.history)
