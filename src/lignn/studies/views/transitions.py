"""The paper's Figure 1: label transitions."""

from __future__ import annotations

from statistics import mean

from lignn.evaluation.page import Block, Picture, Table
from lignn.studies import figures
from lignn.studies.results import NOT_RUN, Results

LONGEST = 9
"""Maximum length of class names at the axes; if one is longer, the classes are numbered."""


def view(results: Results) -> list[Block]:
    """Return a picture of the transitions, and a table of the share of edges within a class."""
    there = {record["dataset"]: record for record in results.good}
    records = {dataset: there[dataset] for dataset in results.datasets if dataset in there}
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
        Picture(results.study, "P(label j | label i, edge) in percent", figures.transitions(matrices)),
        *numbered,
        Table("Share of edges to the own label over classes (%)", ("", "least", "mean", "most"), rows),
    ]
