"""How the tables of a graph were read: which column has which role, which are features, which are left out."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lignn.graph.links import Links

if TYPE_CHECKING:
    from lignn.graph.carried import Carried

GIVEN, BOTH = "given", "both"
"""How edges are followed: from source to target, or both ways."""
KINDS = ("number", "category", "date", "text")
"""What a column of features may be said to hold."""
READINGS = ("number:.", "number:,", "date:ymd", "date:dmy", "date:mdy")
"""How numbers and dates may be said to be written: with a decimal point or comma; with the day, month or year first."""
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
        kinds: pairs of a column of features and what it is said to hold.
    """

    file: str
    roles: tuple[tuple[str, str], ...]
    features: int = 0
    ignored: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    kinds: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        parts = [f"{role} = {name}" for role, name in self.roles]
        parts += [f"{kind} = {name}" for name, kind in self.kinds]
        parts += [f"{self.features} feature{'s' * (self.features > 1)}"] * bool(self.features)
        if self.ignored:
            more = f" and {len(self.ignored) - _SHOWN} more" if len(self.ignored) > _SHOWN else ""
            parts.append(f"ignored: {', '.join(self.ignored[:_SHOWN])}{more}")
        return "; ".join([f"{self.file}: {', '.join(parts)}", *self.notes])


@dataclass(frozen=True)
class Reading:
    """How the tables of a graph were read; `str` gives one line per table and rule.

    Attributes:
        nodes: the table of the nodes.
        edges: the table of the edges; None if rules make them.
        links: the rules that make the edges of a graph of one table.
        joined: what these rules did, in words.
        direction: how edges are followed: "given", from source to target, or "both" ways; None if nobody has said, so
            that a race may choose.
        carried: which columns of the edges become columns of the nodes.
    """

    nodes: TableReading
    edges: TableReading | None = None
    links: Links | None = None
    joined: tuple[str, ...] = ()
    carried: Carried | None = None
    direction: str | None = None

    def __str__(self) -> str:
        return "\n".join([*map(str, self.tables), *self.joined])

    def following(self, direction: str | None) -> Reading:
        """Return the same with a direction that was said or chosen."""
        return replace(self, direction=direction)

    @property
    def tables(self) -> tuple[TableReading, ...]:
        """The tables."""
        return (self.nodes,) if self.edges is None else (self.nodes, self.edges)

    @property
    def notes(self) -> tuple[str, ...]:
        """What else a user should know, in words."""
        return (*(note for table in self.tables for note in table.notes), *self.joined)

    @property
    def columns(self) -> dict[str, str]:
        """The column of each role; of several splits the first."""
        return dict(reversed([role for table in self.tables for role in table.roles]))

    @property
    def ignored(self) -> tuple[str, ...]:
        """Columns of both tables that are not used."""
        return tuple(name for table in self.tables for name in table.ignored)

    def with_notes(self, notes: tuple[str, ...]) -> Reading:
        """Return the reading with more notes on the nodes."""
        return replace(self, nodes=replace(self.nodes, notes=(*self.nodes.notes, *notes)))

    def mended(self, said: Collection[str]) -> str | None:
        """Return a column that is not `said` to be what it was read as, in words; None if there is none."""
        for table in self.tables:
            for name, form in table.kinds:
                if name not in said:
                    return f"column {name!r} of {table.file} is read as --column {form}={name}"
        return None

    @classmethod
    def restored(cls, record: Mapping[str, Any]) -> Reading:
        """Return the reading whose `dataclasses.asdict` was stored as JSON."""
        nodes, edges = (None if record[part] is None else _table(record[part]) for part in ("nodes", "edges"))
        assert nodes is not None
        carried = None
        if record.get("carried") is not None:
            from lignn.graph.carried import Carried  # imports pyarrow, which models without tables do not need

            carried = Carried.restored(record["carried"])
        return cls(
            nodes,
            edges,
            Links.restored(record.get("links")),
            tuple(record.get("joined", ())),
            carried,
            record.get("direction"),
        )


def _table(record: Mapping[str, Any]) -> TableReading:
    roles, kinds = (tuple((str(a), str(b)) for a, b in record.get(part, ())) for part in ("roles", "kinds"))
    ignored, notes = (tuple(map(str, record[part])) for part in ("ignored", "notes"))
    return TableReading(str(record["file"]), roles, int(record["features"]), ignored, notes, kinds)
