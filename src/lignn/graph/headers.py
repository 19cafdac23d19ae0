"""The header of a table: its required columns, columns without a name, and likely misnamed columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

from lignn.errors import TableError, quoted

if TYPE_CHECKING:
    from lignn.graph.table_file import Table

_SPLIT = re.compile(r"split\d*")
_UNNAMED = re.compile(r"\(column \d+\)")

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


def named(header: Iterable[str]) -> list[str]:
    """Return the names in a header without spaces around them; a column without a name is called by its number."""
    return [name.strip() or f"(column {number})" for number, name in enumerate(header, 1)]


def is_unnamed(name: str) -> bool:
    """Return whether `named` made this name."""
    return bool(_UNNAMED.fullmatch(name))


def check(table: Table) -> None:
    """Raise if two columns have the same name, or if a name cannot be stored."""
    seen: set[str] = set()
    for number, name in enumerate(table.columns, 1):
        if name.endswith("\0"):
            raise TableError(f"{table.path}, column {number}: its name ends in a NUL character; rename it")
        if name in seen:
            raise TableError(f"{table.path}, column {number}: a second column is named {name!r}; rename or remove one")
        seen.add(name)


def require(table: Table, names: Sequence[str]) -> None:
    """Raise if one of the columns `names` is missing; suggest which column to name for it, or to rename."""
    missing = [name for name in names if name not in table.columns]
    if missing:
        raise lacking(table, missing, rename=True)


def lacking(table: Table, missing: Sequence[str], rename: bool = False) -> TableError:
    """Return the error for columns that are missing; it says how to name, or to `rename`, columns that are meant."""
    shown = ", ".join(map(quoted, table.columns[:10])) + (", …" if len(table.columns) > 10 else "")
    found = {name: likely(name, table.columns) for name in missing}
    hints = [f"rename {column!r} to {name!r}" for name, column in found.items() if column]
    if not rename:
        hints = [f"give --column {name}={column or 'NAME'}" for name, column in found.items()]
    advice = f"; {' and '.join(hints)}" if hints else ""
    return TableError(f"{table.path}: the column {missing[0]!r} is missing, the header has {shown}{advice}")


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
