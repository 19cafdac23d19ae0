"""When training ends by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lignn.training.history import End
from lignn.training.hooks.hook import Hook

if TYPE_CHECKING:
    from lignn.training.run import Run


class Stopping(Hook):
    """Ends training after all epochs, or after some without a better validation score."""

    def after_epoch(self, run: Run, record: dict[str, Any]) -> End | None:
        """Return why training ends, if it does."""
        waited = record["epoch"] - max(run.history.best, run.settings.first_epoch)
        if run.score is not None and waited >= run.settings.patience:
            return End.PATIENCE
        return End.EPOCHS if len(run.history.epochs) >= run.settings.max_epochs else None
