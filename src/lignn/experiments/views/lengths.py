"""The paper's Figure 4: scores against the length of chains."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from statistics import mean

from lignn.experiments import figures
from lignn.experiments.found import NOT_RUN, Found
from lignn.experiments.page import Block, Picture, Table
from lignn.experiments.summary import Difference, mean_and_deviation, paired, scores


def view(found: Found) -> list[Block]:
    """The paper's Figure 4: scores against length, averages over lengths, and LI-GCN against each other method."""
    cells = scores(found.records)
    datasets = [dataset for dataset in found.datasets if any(cell[1] == dataset for cell in cells)]
    lines: dict[str, figures.Series] = {}
    for row in found.rows:
        series: figures.Series = {_length(d): list(cells[row, d].values()) for d in datasets if (row, d) in cells}
        if series:
            lines[row] = series
    if not lines:
        return [NOT_RUN]
    header = ("", *(str(_length(dataset)) for dataset in datasets), "average", "LI-GCN − this")
    averages = {row: _average_by_seed(cells, row, datasets) for row in lines}
    rows = []
    for row in lines:
        own = (mean_and_deviation(cells[row, d].values()) if (row, d) in cells else NOT_RUN for d in datasets)
        average = mean_and_deviation(averages[row].values()) if averages[row] else ""
        gain: Difference | None = None if row == "LI-GCN" else paired(averages.get("LI-GCN", {}), averages[row])
        rows.append((row, *own, average, "" if gain is None else f"{gain} ({gain.count})"))
    caption = (
        "Test F1-micro (%) by length: mean ± standard deviation; average over these lengths by seed; "
        "paired difference [95 % interval], t-test (pairs)"
    )
    picture = Picture(found.study, "Test F1-micro against the length of the chains", figures.lengths(lines))
    return [picture, Table(caption, header, rows)]


def _length(dataset: str) -> int:
    return int(dataset.rpartition("-")[2])


def _average_by_seed(
    cells: dict[tuple[str, str], dict[Hashable, float]], row: str, datasets: Sequence[str]
) -> dict[Hashable, float]:
    """The mean over all lengths of each seed that has them all."""
    whole = [cells.get((row, dataset), {}) for dataset in datasets]
    return {key: mean(values[key] for values in whole) for key in whole[0] if all(key in values for values in whole)}
