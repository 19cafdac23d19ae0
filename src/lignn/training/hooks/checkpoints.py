"""Checkpoints of a training as it goes, from which a killed or interrupted one continues."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lignn.errors import InputError, ProcessError
from lignn.training import checkpoint
from lignn.training.hooks.hook import Hook

if TYPE_CHECKING:
    from lignn.training.run import Run


class Checkpoints(Hook):
    """Writes all that the next epoch depends on to a file, and continues from it with the same result.

    The file has whole epochs only: one that is interrupted in its middle is repeated from its beginning.

    Args:
        path: the file; training continues from it if it exists.
        run_id: tells this run from others, whose files are refused. The file of run "a" is one of an earlier attempt
            of run "a/b", which replaces it.
        seconds: seconds between two checkpoints.
    """

    def __init__(self, path: Path, run_id: str = "", seconds: float = 10.0) -> None:
        self.path, self.run_id, self.seconds = path, run_id, seconds
        self._written = 0.0
        self._whole: dict[str, Any] = {}

    @contextmanager
    def training(self, run: Run) -> Iterator[None]:
        """Continue from the file, and write it at the end, or on an interruption."""
        if self.path.exists():
            self._resume(run)
        self._whole, self._written = self._state(run), time.monotonic()
        try:
            yield
            if run.history.epochs:  # there is nothing to continue if the first epoch failed
                self._write(run)
        except (KeyboardInterrupt, ProcessError):
            self._write(run)
            raise

    def after_epoch(self, run: Run, record: dict[str, Any]) -> None:  # noqa: ARG002
        """Note the state, and write it if the last time is long ago."""
        self._whole = self._state(run)
        if time.monotonic() - self._written > self.seconds:
            self._write(run)
            self._written = time.monotonic()

    def _state(self, run: Run) -> dict[str, Any]:
        return {"run": self.run_id, **run.state()}

    def _write(self, run: Run) -> None:
        if run.inference.processes.is_first:
            checkpoint.write(self.path, self._whole)

    def _resume(self, run: Run) -> None:
        try:
            state = checkpoint.read(self.path)
            theirs = state.get("run", "")
            if self.run_id.startswith(f"{theirs}/"):
                return
            if theirs != self.run_id or not run.fits(state):
                raise InputError(
                    f"{self.path}: the checkpoint of another run with another graph, split or settings; "
                    "delete it, or give another file"
                )
            run.load(state)
        except InputError:
            raise
        except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
            raise InputError(f"{self.path}: a damaged checkpoint ({error}); delete it to start over") from error
