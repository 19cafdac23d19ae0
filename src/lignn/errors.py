"""Every exception and warning that a user of lignn can meet."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable
from typing import Any


class LignnError(Exception):
    """Base class of all errors that lignn raises on purpose."""


class InputError(LignnError, ValueError):
    """A mistake in what the user provided; the message says what is wrong, where, and what to do. Exit code 2."""


class GraphError(InputError):
    """A graph whose parts are invalid or contradict each other."""


class TableError(InputError):
    """A file of nodes, edges or features that cannot be read."""


class SplitError(InputError):
    """A split whose parts overlap, or that cannot be drawn from the graph."""


class DatasetError(InputError):
    """A dataset that is unknown, missing or damaged."""


class ConfigError(InputError):
    """A setting that is unknown or has an impossible value."""


class ConflictError(InputError):
    """A change that does not fit what is there by now, such as a node that exists already."""


class UnknownNodeError(InputError):
    """A node that is not in the graph."""


class JournalError(LignnError, RuntimeError):
    """A journal of changes that cannot be opened, read or written."""


class ProcessError(LignnError):
    """A process of a run over several processes that has ended, so that the others cannot go on."""


class ConvergenceError(LignnError, RuntimeError):
    """A solve that did not reach its tolerance; `solution` holds what it reached."""

    def __init__(self, message: str, solution: Any) -> None:
        super().__init__(message)
        self.solution = solution


class ConvergenceWarning(UserWarning):
    """A result of a solve that did not reach its tolerance."""


class DataWarning(UserWarning):
    """A note on data that were read in a way that the user may not expect."""


class ImbalanceWarning(UserWarning):
    """A note on classes of very different size: a metric that was chosen, a model that is no better than a guess."""


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Return the end of an error message: the choice closest to `word` if one is close, else all choices."""
    choices = sorted(choices)
    close = difflib.get_close_matches(word, choices, n=1)
    return f"did you mean {close[0]!r}?" if close else f"choose from {', '.join(choices)}"


def unknown(what: str, name: object, choices: Iterable[str]) -> ConfigError:
    """Return the error for a name that is none of the choices; `what` says what kind of thing was named."""
    return ConfigError(f"{what} {name!r} is unknown; {did_you_mean(str(name), choices)}")


def quoted(text: str) -> str:
    """Return `text` in quotes for an error message, shortened if it is long; what an eye cannot see is escaped."""
    shown = text if len(text) <= 40 else f"{text[:37]}…"
    return repr(shown) if unicodedata.is_normalized("NFC", shown) else ascii(shown)
