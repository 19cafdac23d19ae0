"""A rare class: how well its hidden nodes are ranked, and how many are found."""

from __future__ import annotations

from statistics import mean

from lignn.evaluation.page import Block, Table
from lignn.evaluation.summary import mean_and_deviation
from lignn.studies.results import NOT_RUN, Results

_HEADER = ("", "dataset", "average precision (%)", "times the base rate", "found", "called so", "accuracy")


def view(results: Results) -> list[Block]:
    """Return a table with a line for each row and dataset."""
    lines = []
    for (row, dataset), found in results.good_by_cell.items():
        rare = min(range(2), key=lambda c: found[0]["classes"]["there"][c])
        there = [record["classes"]["there"][rare] for record in found]
        precision = [record["scores"]["average_precision"] for record in found]
        times = [p * record["nodes"] / n for p, record, n in zip(precision, found, there, strict=True)]
        right, called = (mean(record["classes"][what][rare] for record in found) for what in ("right", "predicted"))
        ranked = mean_and_deviation(100 * p for p in precision), mean_and_deviation(times)
        accuracy = mean(sum(record["classes"]["right"]) / record["nodes"] for record in found)
        lines.append((row, dataset, *ranked, f"{right:.1f} of {mean(there):.0f}", f"{called:.1f}", f"{accuracy:.4f}"))
    return [Table("The rarer class, mean ± standard deviation over runs", _HEADER, lines)] if lines else [NOT_RUN]
