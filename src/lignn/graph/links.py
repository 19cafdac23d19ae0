"""`Links`: the rules that join the rows of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lignn.errors import ConfigError, InputError, did_you_mean

NEAREST = "nearest"
"""Name of the rule that joins nearest rows, and of the type of its edges."""
NEIGHBOURS = 10
"""Nearest rows to which a row is joined unless another number is given."""


@dataclass(frozen=True)
class Links:
    """How rows of a table are joined.

    Attributes:
        columns: columns whose values join rows.
        nearest: number of nearest rows to which a row is joined; 0 for none.
        order: the column in whose order rows of a value, or all rows if no column joins them, follow each other.
    """

    columns: tuple[str, ...] = ()
    nearest: int = 0
    order: str | None = None

    @classmethod
    def of(cls, links: Iterable[str], order: str | None = None) -> Links:
        """Return the rules of names of columns, and of `nearest` or `nearest:k`."""
        columns, nearest = [], 0
        for link in [links] if isinstance(links, str) else links:
            rule, colon, count = link.partition(":")
            if rule != NEAREST:
                columns.append(link)
                continue
            if colon and not (count.isdecimal() and int(count) > 0):
                raise ConfigError(f"--link {link}: a number of nearest rows above 0 is needed, for example nearest:5")
            nearest = int(count) if colon else NEIGHBOURS
        return cls(tuple(dict.fromkeys(columns)), nearest, order)

    @classmethod
    def restored(cls, record: Mapping[str, Any] | None) -> Links | None:
        """Return the rules whose `dataclasses.asdict` was stored as JSON."""
        if record is None:
            return None
        order = record["order"]
        return cls(tuple(map(str, record["columns"])), int(record["nearest"]), None if order is None else str(order))

    @property
    def types(self) -> tuple[str, ...]:
        """The types of the edges."""
        following = () if self.order is None else tuple(f"{name} by {self.order}" for name in self.columns or ("rows",))
        return (*self.columns, *following, *[NEAREST] * (self.nearest > 0))

    def check(self, columns: Sequence[str], taken: Mapping[str, str], where: str) -> None:
        """Raise unless all columns are there.

        Args:
            columns: the columns that may join rows.
            taken: the role of each other column of the table.
            where: name of the table.
        """
        for option, name in [*(("link", name) for name in self.columns), ("order", self.order)]:
            if name is None or name in columns:
                continue
            if name in taken:
                raise InputError(f"--{option} {name}: this column of {where} is the {taken[name]}; name another one")
            raise InputError(f"--{option} {name}: {where} has no such column; {did_you_mean(name, columns)}")
