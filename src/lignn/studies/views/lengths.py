"""The paper's Figure 4: scores against the length of the chains, and LI-GCN against every other row."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from lignn.evaluation.page import Block, Picture, Table
from lignn.evaluation.summary import Difference, mean_and_deviation, paired
from lignn.runs.records import scores
from lignn.studies import figures
from lignn.studies.results import NOT_RUN, Results

OURS = "LI-GCN"
END_TO_END = ("backbone", "ignn", "eignn")
"""Methods that take no labels as input."""

Cell = dict[Hashable, float]
"""Scores by seed."""


@dataclass(frozen=True)
class Against:
    """A row and LI-GCN, averaged over the lengths that both have.

    Attributes:
        lengths: the lengths that both have.
        row, ours: average over these lengths, by seed; seeds that lack a length are left out.
    """

    lengths: list[int]
    row: dict[Hashable, float]
    ours: dict[Hashable, float]

    @classmethod
    def of(cls, row: Mapping[int, Cell], ours: Mapping[int, Cell], least: int = 1) -> Against:
        """Average over the lengths at which the row and LI-GCN have at least `least` seeds in common."""
        lengths = [length for length in row if len(set(row[length]) & set(ours.get(length, {}))) >= least]
        keys = [key for key in row[lengths[0]] if _everywhere(key, lengths, row, ours)] if lengths else []
        averages = ({key: mean(one[length][key] for length in lengths) for key in keys} for one in (row, ours))
        return cls(lengths, *averages)

    @property
    def gain(self) -> Difference | None:
        """Paired difference, LI-GCN minus the row."""
        return paired(self.ours, self.row)


def _everywhere(key: Hashable, lengths: Sequence[int], *rows: Mapping[int, Cell]) -> bool:
    return all(key in row[length] for row in rows for length in lengths)


def view(results: Results) -> list[Block]:
    """Return a picture and a table of the scores, averages over common lengths, and which rows LI-GCN is above."""
    by_cell = scores(results.records)
    cells: dict[str, dict[int, Cell]] = {}
    for row in results.rows:
        own = {_length(dataset): by_cell[row, dataset] for dataset in results.datasets if (row, dataset) in by_cell}
        if own:
            cells[row] = own
    if not cells:
        return [NOT_RUN]
    against = {row: Against.of(own, cells.get(OURS, {})) for row, own in cells.items()}
    inputs = {record["row"]: record["method"] not in END_TO_END for record in results.good}
    drawn = {
        "end-to-end methods, and LI-GCN": {row: cells[row] for row in cells if not inputs[row] or row == OURS},
        "methods that input labels": {row: cells[row] for row in cells if inputs[row]},
    }
    caption = "Test F1-micro against the length of the chains, mean over seeds"
    picture = Picture(results.study, caption, figures.lengths({title: rows for title, rows in drawn.items() if rows}))
    several = {row: Against.of(own, cells.get(OURS, {}), least=2) for row, own in cells.items()}
    return [*_verdict(against), picture, _scores(results, cells), _averages(results, against, several)]


def _length(dataset: str) -> int:
    return int(dataset.rpartition("-")[2])


def _verdict(against: Mapping[str, Against]) -> list[Block]:
    groups: dict[str, list[str]] = {}
    for row, gain in ((row, own.gain) for row, own in against.items() if row != OURS):
        if gain is None:
            groups.setdefault("nothing in common with", []).append(row)
            continue
        side = gain.mean if gain.sign is None else gain.sign
        group = "above" if side > 0 else "below" if side < 0 else "undecided (0 is in the interval) against"
        groups.setdefault(group, []).append(row if gain.count > 1 else f"{row} (one seed)")
    said = "; ".join(f"{group} {', '.join(rows)}" for group, rows in groups.items())
    return [f"{OURS}, averaged over the lengths that both have: {said}."] if said else []


def _scores(results: Results, cells: Mapping[str, Mapping[int, Cell]]) -> Table:
    lengths = sorted({length for own in cells.values() for length in own})
    rows = [
        (row, *(f"{mean_and_deviation(own[n].values())} ({len(own[n])})" if n in own else NOT_RUN for n in lengths))
        for row, own in cells.items()
    ]
    rows += [(row, *(NOT_RUN for _ in lengths)) for row in results.rows if row not in cells]
    caption = "Test F1-micro (%) by length: mean ± standard deviation (seeds)"
    return Table(caption, ("", *map(str, lengths)), rows)


def _averages(results: Results, against: Mapping[str, Against], several: Mapping[str, Against]) -> Table:
    planned = {_length(dataset) for dataset in results.datasets}
    rows = []
    for row, own in against.items():
        lengths = "all" if set(own.lengths) == planned else ", ".join(map(str, own.lengths))
        values = (mean_and_deviation(one.values()) if one else "" for one in (own.row, own.ours))
        gains = [] if row == OURS or own.gain is None else [f"{own.gain} ({own.gain.count})"]
        fewer = several[row].gain
        if row != OURS and own.gain is not None and fewer is not None and fewer.count > own.gain.count:
            gains.append(f"over {', '.join(map(str, several[row].lengths))}: {fewer} ({fewer.count})")
        rows.append((row, lengths or "none", *values, "\n".join(gains)))
    caption = (
        "Average test F1-micro (%) over the lengths and seeds that a row has in common with LI-GCN: mean ± standard "
        "deviation over seeds; paired difference [95 % interval], t-test (seeds), and below it over fewer lengths "
        "that have more seeds. All runs of a length share one split: intervals are over the seeds of the weights only"
    )
    return Table(caption, ("", "lengths", "this row", OURS, f"{OURS} − this row"), rows)
