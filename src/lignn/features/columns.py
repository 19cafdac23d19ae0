"""`Column`: what a column of a table holds, and what becomes of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["number", "boolean", "category", "date", "text", "id", "constant", "duplicate", "other"]
Scaling = Literal["standard", "quantiles"]

RARE, SHARE = 5, 20
"""A category is rare if fewer than 5 rows have it; in small tables, fewer than one row in 20."""


def rare(num_rows: int) -> int:
    """Return the number of rows that a category needs in order not to be rare."""
    return max(1, min(RARE, num_rows // SHARE))


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes:
        name: its name.
        kind: what it holds.
        missing: number of rows without a value.
        distinct: number of different values; 0 if nobody counted them, as for lists.
        summary: the range of numbers and dates, or examples, as a short text.
        scaling: how a number, or the age of a date, is scaled.
        parts: the parts of a date that vary: "month", "weekday", "hour".
        same_as: the column that a duplicate repeats.
        num_rows: number of rows that it was described by.
    """

    name: str
    kind: Kind
    missing: int
    distinct: int
    summary: str
    scaling: Scaling | None = None
    parts: tuple[str, ...] = ()
    same_as: str | None = None
    num_rows: int = 0

    @property
    def used(self) -> bool:
        """Whether it becomes a feature."""
        return self.kind in ("number", "boolean", "category", "date", "text")

    @property
    def treatment(self) -> str:
        """What becomes of it, in words."""
        if self.kind == "constant":
            return "ignored: it is empty" if self.missing == self.num_rows else "ignored: all rows have the same value"
        scaled = "scaled by quantiles (heavy tail)" if self.scaling == "quantiles" else "scaled"
        least = rare(self.num_rows)
        together = f", values in fewer than {least} rows together" if least > 1 else ""
        words = {
            "number": scaled + self._gaps("the mean"),
            "boolean": "0/1" + self._gaps("0"),
            "category": "one-hot" + together + (f", {self.missing} missing are a value" if self.missing else ""),
            "date": "; ".join([f"age in days, {scaled}", *(f"{part} as a cycle" for part in self.parts)])
            + self._gaps("the mean"),
            "text": "hashed TF-IDF of words and of character n-grams"
            + (f", {self.missing} missing → no words" if self.missing else ""),
            "id": "ignored: an id, every row has another value",
            "duplicate": f"ignored: the same as {self.same_as!r}",
            "other": f"ignored: its type is {self.summary}, not numbers, dates or texts",
        }
        return words[self.kind]

    def _gaps(self, filled: str) -> str:
        return f", {self.missing} missing → {filled}, with an indicator" if self.missing else ""
