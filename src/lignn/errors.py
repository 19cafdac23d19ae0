"""Every exception and warning that a user of lignn can meet."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any


class LignnError(Exception):
    """Base of all errors raised on purpose by lignn."""


class InputError(LignnError, ValueError):
    """Something given by the user is wrong; the message says what, where, and what to do. Exit code 2."""


class GraphError(InputError):
    """A graph that contradicts itself."""


class TableError(InputError):
    """A file of nodes, edges or features that cannot be read as one."""


class SplitError(InputError):
    """A split that overlaps, or that cannot be drawn from this graph."""


class DatasetError(InputError):
    """A dataset that is unknown, absent or damaged."""


class ConfigError(InputError):
    """An unknown or impossible setting."""


class ConvergenceError(LignnError, RuntimeError):
    """A solve that did not reach its tolerance; `solution` holds what it reached."""

    def __init__(self, message: str, solution: Any) -> None:
        super().__init__(message)
        self.solution = solution


class ConvergenceWarning(UserWarning):
    """A result that rests on a solve which did not reach its tolerance."""


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """The end of an error message: the closest choice if there is one, else all of them."""
    choices = sorted(choices)
    close = difflib.get_close_matches(word, choices, n=1)
    return f"did you mean {close[0]!r}?" if close else f"choose from {', '.join(choices)}"
