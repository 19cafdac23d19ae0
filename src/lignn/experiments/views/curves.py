"""The paper's Figure 3: the test score of every epoch."""

from __future__ import annotations

from lignn.experiments import figures, published
from lignn.experiments.found import NOT_RUN, Found
from lignn.experiments.page import Block, Picture, Table
from lignn.experiments.records import Record


def view(found: Found) -> list[Block]:
    """The paper's Figure 3: each method's variant with the best validation score is drawn, all are in the table."""
    first = {record["row"]: record for record in sorted(found.good, key=lambda record: -record["seed"])}
    runs = {row: first[row] for row in found.rows if row in first}
    if not runs:
        return [NOT_RUN]
    drawn: dict[str, Record] = {}
    for row, record in runs.items():
        rival = drawn.get(figures.family(row))
        if rival is None or record["scores"]["val"] > rival["scores"]["val"]:
            drawn[figures.family(row)] = record
    lines = {record["row"]: [100 * value for value in record["curve"]] for record in drawn.values()}
    best = {record["row"]: record["best_epoch"] for record in drawn.values()}
    rows = []
    for row, record in runs.items():
        test, curve = 100 * record["scores"]["test"], [100 * value for value in record["curve"]]
        numbers = (f"{test:.2f}", f"{max(curve):.2f}", f"{curve[-1]:.2f}", f"{curve[-1] - max(curve):+.2f}")
        rows.append((row, *numbers, str(record["best_epoch"] + 1), str(record["epochs"])))
    header = ("", "at the best validation epoch", "highest", "last", "last − highest", "best epoch", "epochs")
    caption = (
        "Test F1-micro by epoch, of each method its best variant by validation score; marks: best validation epoch"
    )
    return [
        Picture(found.study, caption, figures.curves(lines, best, published.chance(found.datasets[0]))),
        Table("Test F1-micro (%) of one run; C&S: after both phases, its curve is that of its base", header, rows),
    ]
