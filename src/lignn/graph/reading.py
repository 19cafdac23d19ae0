"""How the tables of a graph were read: which column has which role, which are features, which are left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_SHOWN = 8
"""Names of ignored columns that are listed before the rest is counted."""


@dataclass(frozen=True)
class TableReading:
    """How one table was read.

    Attributes:
        file: name of the file or table.
        roles: pairs of a role and its column.
        features: number of columns that are features.
        ignored: columns that are not used.
        notes: what else a user should know, in words.
    """

    file: str
    roles: tuple[tuple[str, str], ...]
    features: int = 0
    ignored: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = [f"{role} = {name}" for role, name in self.roles]
        parts += [f"{self.features} feature{'s' * (self.features > 1)}"] * bool(self.features)
        if self.ignored:
            more = f" and {len(self.ignored) - _SHOWN} more" if len(self.ignored) > _SHOWN else ""
            parts.append(f"ignored: {', '.join(self.ignored[:_SHOWN])}{more}")
        return "; ".join([f"{self.file}: {', '.join(parts)}", *self.notes])


@dataclass(frozen=True)
class Reading:
    """How the tables of a graph were read; `str` gives one line per table."""

    nodes: TableReading
    edges: TableReading

    def __str__(self) -> str:
        return f"{self.nodes}\n{self.edges}"

    @property
    def columns(self) -> dict[str, str]:
        """The column of each role; of several splits the first."""
        return dict(reversed([*self.nodes.roles, *self.edges.roles]))

    @property
    def ignored(self) -> tuple[str, ...]:
        """Columns of both tables that are not used."""
        return (*self.nodes.ignored, *self.edges.ignored)

    @classmethod
    def restored(cls, record: Mapping[str, Any]) -> Reading:
        """Return the reading whose `dataclasses.asdict` was stored as JSON."""
        return cls(*(_table(record[part]) for part in ("nodes", "edges")))


def _table(record: Mapping[str, Any]) -> TableReading:
    roles = tuple((str(role), str(name)) for role, name in record["roles"])
    ignored, notes = (tuple(map(str, record[part])) for part in ("ignored", "notes"))
    return TableReading(str(record["file"]), roles, int(record["features"]), ignored, notes)
