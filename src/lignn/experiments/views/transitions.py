"""The paper's Figure 1: label transitions."""

from __future__ import annotations

from statistics import mean

from lignn.experiments import figures
from lignn.experiments.found import NOT_RUN, Found
from lignn.experiments.page import Block, Picture, Table


def view(found: Found) -> list[Block]:
    """Matrices of shades, and how many edges stay within a class."""
    matrices = {record["dataset"]: record["transitions"] for record in found.good}
    matrices = {dataset: matrices[dataset] for dataset in found.datasets if dataset in matrices}
    if not matrices:
        return [NOT_RUN]
    diagonals = {dataset: [100 * row[i] for i, row in enumerate(matrix)] for dataset, matrix in matrices.items()}
    rows = [(d, f"{min(values):.1f}", f"{mean(values):.1f}", f"{max(values):.1f}") for d, values in diagonals.items()]
    caption = "P(label j | label i, edge) in percent"
    return [
        Picture(found.study, caption, figures.transitions(matrices)),
        Table("Share of edges to the own label over classes (%)", ("", "least", "mean", "most"), rows),
    ]
