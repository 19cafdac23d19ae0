"""Columns under other names than those of the format: which one is probably meant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

_OTHERS = {
    "id": ("node", "node_id", "nodeid", "name"),
    "label": ("class", "category", "y"),
    "source": ("from", "src"),
    "target": ("to", "dst", "destination"),
    "split": ("set", "subset", "partition", "fold"),
}
"""What else people call a column."""


def likely(wanted: str, columns: Iterable[str]) -> str | None:
    """The column that may be meant to be `wanted`: by its letters, by another usual name, or misspelt."""
    by_letters = {column.lower(): column for column in columns}
    words = [wanted, *_OTHERS.get(wanted, ()), *get_close_matches(wanted, by_letters, n=1)]
    return next((by_letters[word] for word in words if word in by_letters), None)


def renaming(missing: Sequence[str], columns: Sequence[str]) -> str:
    """The end of an error message on missing columns: what to rename, if anything."""
    found = [(column, name) for name in missing if (column := likely(name, columns))]
    return "; rename " + " and ".join(f"{column!r} to {name!r}" for column, name in found) if found else ""
