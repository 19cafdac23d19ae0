"""Progress on the standard error: a live line on a terminal, plain lines in a log, nothing beside JSON."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from lignn.classifier.race.auto import Standing
    from lignn.training import History

_LOG_SECONDS = 10.0
"""Between two lines in a log."""


@contextmanager
def of_training(max_epochs: int, quiet: bool, sign: int = 1) -> Iterator[Callable[[History], None] | None]:
    """What to call after every epoch; `sign` is -1 for a metric of which less is better."""
    from rich.console import Console

    console = Console(stderr=True)
    if quiet:
        yield None
    elif console.is_terminal:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
        from rich.table import Column

        text = TextColumn("{task.fields[state]}", table_column=Column())  # folded where the terminal is narrow
        with Progress(TextColumn("epoch"), MofNCompleteColumn(), BarColumn(20), text, console=console) as bar:
            task = bar.add_task("", total=max_epochs, state="")
            clock = _Clock(max_epochs, sign)
            yield lambda history: bar.update(task, completed=len(history.epochs), state=clock.describe(history))
    else:
        yield _Lines(max_epochs, sign)


@contextmanager
def of_reading(files: Sequence[Path], quiet: bool) -> Iterator[None]:
    """Show on a terminal how much of `files` the body has read; nothing elsewhere."""
    from rich.console import Console

    from lignn.graph.files import watcher

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn

    total = sum(path.stat().st_size for path in files)
    columns = (TextColumn("reading"), DownloadColumn(), BarColumn(20), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=total)
        token = watcher.set(lambda count: bar.advance(task, count))
        try:
            yield
        finally:
            watcher.reset(token)


@contextmanager
def of_runs(total: int, quiet: bool, left: str = "nothing was written") -> Iterator[Callable[[str], None]]:
    """What to call, with a few words, after each of at most `total` runs.

    An interruption is told, with what is left of the work, and ends the command.
    """
    done = 0
    try:
        with _shown(total, quiet) as show:

            def tell(words: str) -> None:
                nonlocal done
                done += 1
                show(words)

            yield tell
    except KeyboardInterrupt:
        typer.echo(f"interrupted after {done} of {total} runs; {left}", err=True)
        raise typer.Exit(130) from None


@contextmanager
def of_race(quiet: bool) -> Iterator[Callable[[Standing], None] | None]:
    """What to call after each fit of a race."""
    from rich.console import Console

    console = Console(stderr=True)
    if quiet:
        yield None
    elif console.is_terminal:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn("fits"), MofNCompleteColumn(), BarColumn(20), TimeElapsedColumn())
        with Progress(*columns, TextColumn("{task.description}"), console=console) as bar:
            task = bar.add_task("", total=None)
            yield lambda now: bar.update(task, completed=now.done, total=now.total, description=_ahead(now))
    else:
        yield lambda now: typer.echo(f"{now.done}/{now.total}  {now.words}  {_ahead(now)}", err=True)


@contextmanager
def _shown(total: int, quiet: bool) -> Iterator[Callable[[str], None]]:
    from rich.console import Console

    console = Console(stderr=True)
    if quiet:
        yield lambda _: None
    elif console.is_terminal:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn("runs"), MofNCompleteColumn(), BarColumn(20), TimeElapsedColumn())
        with Progress(*columns, TextColumn("{task.description}"), console=console) as bar:
            task = bar.add_task("", total=total)
            yield lambda words: bar.update(task, advance=1, description=words)
    else:
        done = iter(range(1, total + 1))
        yield lambda words: typer.echo(f"{next(done)}/{total}  {words}", err=True)


class _Clock:
    """The state of training in words; early stopping may come before the time left is over."""

    def __init__(self, max_epochs: int, sign: int = 1) -> None:
        self.max_epochs, self.sign = max_epochs, sign
        self.first: tuple[int, float] | None = None

    def describe(self, history: History) -> str:
        record = history.epochs[-1]
        done = len(history.epochs)
        score = ""
        if "val" in record:
            now, best = (self.sign * each["val"] for each in (record, history.best_record))
            score = f"  validation {now:.4f} (best {best:.4f})"
        return f"loss {record['loss']:.4f}{score}{_steps(record)}{self._left(done)}"

    def _left(self, done: int) -> str:
        """From the second epoch on: the first one compiles, and says little about the others."""
        now = time.monotonic()
        if self.first is None or done <= self.first[0]:
            self.first = done, now
            return ""
        before, start = self.first
        return f"  at most {_minutes((now - start) / (done - before) * (self.max_epochs - done))} left"


class _Lines(_Clock):
    """A line for the first epoch, and then one every few seconds."""

    def __init__(self, max_epochs: int, sign: int = 1) -> None:
        super().__init__(max_epochs, sign)
        self.last = float("-inf")

    def __call__(self, history: History) -> None:
        words = self.describe(history)
        if time.monotonic() - self.last >= _LOG_SECONDS:
            typer.echo(f"epoch {len(history.epochs)}/{self.max_epochs}  {words}", err=True)
            self.last = time.monotonic()


def _steps(record: dict[str, Any]) -> str:
    """Steps of the forward and the backward solve, for methods that have them."""
    counts = [str(account["steps"]) for solve in ("forward", "backward") if (account := record.get(solve))]
    return f"  solver steps {'+'.join(counts)}" if counts else ""


def _ahead(now: Standing) -> str:
    """Return who leads a race, and how long it will take."""
    return f"ahead: {now.leader}  about {_minutes(now.left)} left"


def _minutes(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"
