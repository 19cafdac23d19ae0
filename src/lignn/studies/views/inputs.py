"""Rows that differ in one setting, by the metric of each dataset: scores, gains over another row and over the first."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from lignn.declarations import DEFAULT_METRIC, METRICS
from lignn.evaluation.page import Block, Table
from lignn.evaluation.summary import mean_and_deviation, paired
from lignn.runs.records import Record
from lignn.studies.results import NOT_RUN, Results
from lignn.studies.views.settings import by_dataset, mean_of

_RANKS = ("roc_auc", "average_precision")
Cells = dict[tuple[str, str], dict[int, float]]
"""Scores in percent by run, of each row and dataset."""


def view(results: Results) -> list[Block]:
    """Return a table of scores and one of gains for each metric, and the time of a run."""
    blocks: list[Block] = []
    for metric in (DEFAULT_METRIC, *_RANKS):
        cells = {
            cell: {record["seed"]: 100 * record["scores"][metric] for record in records}
            for cell, records in results.good_by_cell.items()
            if metric in metrics_of(records[0])
        }
        datasets = [dataset for dataset in results.datasets if any(cell[1] == dataset for cell in cells)]
        if datasets:
            blocks += [_scores(results, cells, metric, datasets), _gains(results, cells, metric, datasets)]
    if not blocks:
        return [NOT_RUN]
    seconds = by_dataset(
        results, "Processor seconds of a run, mean", partial(mean_of, results, "processor_seconds", ".1f")
    )
    return [*blocks, seconds]


def metrics_of(record: Record) -> tuple[str, ...]:
    """Return the metrics that are shown: both ranks where the run was chosen by one."""
    chosen = record["config"]["training"].get("metric", DEFAULT_METRIC)
    return _RANKS if chosen in _RANKS else (chosen,)


def _scores(results: Results, cells: Cells, metric: str, datasets: Sequence[str]) -> Table:
    def shown(row: str, dataset: str) -> str:
        found = cells.get((row, dataset))
        return f"{mean_and_deviation(found.values())} ({len(found)})" if found else ""

    caption = f"{METRICS[metric].title} of the test nodes (%): mean ± sample standard deviation (runs)"
    rows = [[row, *(shown(row, dataset) for dataset in datasets)] for row in results.rows]
    return Table(caption, ("", *datasets), [row for row in rows if any(row[1:])])


def _gains(results: Results, cells: Cells, metric: str, datasets: Sequence[str]) -> Table:
    """Return the table of gains over the row that each is compared with, and over the first row of the same base."""
    known = {record["row"]: record for record in results.good}
    first: dict[str, str] = {}
    pairs = []
    for row in (row for row in results.rows if row in known):
        beginning = first.setdefault(known[row]["config"]["method"].get("base", ""), row)
        pairs += [(row, base) for base in dict.fromkeys([known[row]["against"], beginning]) if base not in (None, row)]

    def shown(row: str, base: str, dataset: str) -> str:
        found = paired(cells.get((row, dataset), {}), cells.get((base, dataset), {}))
        return "" if found is None else found.with_interval

    caption = (
        f"Gain in points of {METRICS[metric].title} over the same splits and seeds: mean [95 % interval], paired t-test"
    )
    rows = [[f"{row} − {base}", *(shown(row, base, dataset) for dataset in datasets)] for row, base in pairs]
    return Table(caption, ("", *datasets), [row for row in rows if any(row[1:])])
