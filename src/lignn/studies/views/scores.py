"""All scores of each row on each dataset, and what a fit cost."""

from __future__ import annotations

from statistics import mean

from lignn.evaluation.page import Block, Table
from lignn.evaluation.summary import mean_and_deviation
from lignn.studies.results import NOT_RUN, Results

_SCORES = {"f1_micro": "accuracy (%)", "roc_auc": "ROC AUC (%)", "average_precision": "average precision (%)"}


def view(results: Results) -> list[Block]:
    """Return a table for each dataset, with a line for each row."""
    blocks: list[Block] = []
    for dataset in results.datasets:
        cells = {row: results.good_by_cell.get((row, dataset), []) for row in results.rows}
        lines = []
        for row, found in cells.items():
            if found:
                told = [mean_and_deviation(100 * record["scores"][name] for record in found) for name in _SCORES]
                lines.append(
                    (row, *told, f"{mean(record['processor_seconds'] for record in found):.0f}", str(len(found)))
                )
        if lines:
            header = ("", *_SCORES.values(), "processor seconds", "runs")
            blocks.append(Table(f"{dataset}: test scores, mean ± standard deviation over runs", header, lines))
    return blocks or [NOT_RUN]
