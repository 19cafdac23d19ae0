"""The paper's Figure 1: label transitions."""

from __future__ import annotations

from statistics import mean

from lignn.evaluation.page import Block, Picture, Table
from lignn.studies import figures
from lignn.studies.found import NOT_RUN, Found

LONGEST = 9
"""Letters of a class name that is written at the axes; where one is longer, classes are numbered."""


def view(found: Found) -> list[Block]:
    """Matrices of shades, and how many edges stay within a class."""
    there = {record["dataset"]: record for record in found.good}
    records = {dataset: there[dataset] for dataset in found.datasets if dataset in there}
    if not records:
        return [NOT_RUN]
    matrices, rows, numbered = {}, [], []
    for dataset, record in records.items():
        matrix = record["transitions"]
        names = record.get("class_names") or [str(number) for number in range(len(matrix))]
        short = max(map(len, names)) <= LONGEST
        matrices[dataset] = (matrix, names if short else [str(number) for number in range(len(matrix))])
        own = [100 * row[i] for i, row in enumerate(matrix)]
        rows.append((dataset, f"{min(own):.1f}", f"{mean(own):.1f}", f"{max(own):.1f}"))
        if not short:
            numbered.append(f"Classes of {dataset}: {', '.join(f'{i} {name}' for i, name in enumerate(names))}.")
    return [
        Picture(found.study, "P(label j | label i, edge) in percent", figures.transitions(matrices)),
        *numbered,
        Table("Share of edges to the own label over classes (%)", ("", "least", "mean", "most"), rows),
    ]
