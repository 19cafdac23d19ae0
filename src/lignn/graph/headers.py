"""The header of a table: its required columns, the columns that hold features, and likely misnamed columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

from lignn.errors import TableError, quoted

if TYPE_CHECKING:
    from lignn.graph.table_file import Table

_SPLIT = re.compile(r"split\d*")

_SYNONYMS = {
    "id": ("node", "node_id", "nodeid", "name"),
    "label": ("class", "category", "y"),
    "source": ("from", "src"),
    "target": ("to", "dst", "destination"),
    "split": ("set", "subset", "partition", "fold"),
}
"""Other common names of a column."""


def is_split(name: str) -> bool:
    """Return whether a column of the nodes holds a split (`split`, `split2`, …)."""
    return bool(_SPLIT.fullmatch(name))


def is_feature(name: str) -> bool:
    """Return whether a column of the nodes holds a feature, by its name."""
    return bool(name) and name not in ("id", "label", "labels") and not is_split(name)


def check(table: Table) -> None:
    """Raise if a column has no name, or if two columns have the same name."""
    seen: set[str] = set()
    for number, name in enumerate(table.columns, 1):
        if not name:
            raise TableError(f"{table.path}, column {number}: has no name in the header; name or remove it")
        if name.endswith("\0"):
            raise TableError(f"{table.path}, column {number}: its name ends in a NUL character; rename it")
        if name in seen:
            raise TableError(f"{table.path}, column {number}: a second column is named {name!r}; rename or remove one")
        seen.add(name)


def require(table: Table, names: Sequence[str]) -> None:
    """Raise if one of the columns `names` is missing; suggest which column to rename."""
    missing = [name for name in names if name not in table.columns]
    if missing:
        shown = ", ".join(map(quoted, table.columns[:10])) + (", …" if len(table.columns) > 10 else "")
        separator = next((sign for sign in ";\t" if len(table.columns) == 1 and sign in table.columns[0]), None)
        hint = _renaming(missing, [name for name in table.columns if name not in names])
        if separator:
            hint = f"; separate the cells by commas, not by {separator!r}"
        raise TableError(f"{table.path}: the column {missing[0]!r} is missing, the header has {shown}{hint}")


def check_case(table: Table) -> None:
    """Raise if a column such as `Label` differs from a special column in its case only."""
    for name in table.columns:
        if is_feature(name) and not is_feature(name.lower()) and name.lower() not in table.columns:
            hint = f"rename it to {name.lower()!r}, or to another name if it is a feature"
            raise TableError(f"{table.path}, column {name!r}: column names are case-sensitive; {hint}")


def likely(wanted: str, columns: Iterable[str]) -> str | None:
    """Return the column that is probably meant to be `wanted`: in another case, a synonym, or misspelt."""
    by_lower_case = {column.lower(): column for column in columns}
    words = [wanted, *_SYNONYMS.get(wanted, ()), *get_close_matches(wanted, by_lower_case, n=1)]
    return next((by_lower_case[word] for word in words if word in by_lower_case), None)


def misnamed(columns: Iterable[str]) -> dict[str, str]:
    """Return hints, by column, for features of a table that may hold the labels or the splits it seems to lack."""
    hints: dict[str, str] = {}
    for part, names in (("splits", ("split",)), ("labels", ("labels", "label"))):
        found = {} if set(names) & set(columns) else {likely(name, columns): name for name in names}
        hints |= {
            column: f"; if it holds the {part}, rename it to {name!r}" for column, name in found.items() if column
        }
    return hints


def _renaming(missing: Sequence[str], columns: Sequence[str]) -> str:
    found = [(column, name) for name in missing if (column := likely(name, columns))]
    return "; rename " + " and ".join(f"{column!r} to {name!r}" for column, name in found) if found else ""
