"""Scores beside the published ones, paired gains, and what they cost."""

from __future__ import annotations

from collections.abc import Hashable
from statistics import mean

from lignn.experiments import figures, published
from lignn.experiments.found import Found
from lignn.experiments.page import Block, Picture, Table
from lignn.experiments.summary import mean_and_deviation, paired, scores


def view(found: Found) -> list[Block]:
    """Scores beside the published ones, paired gains, and what they cost."""
    cells = scores(found.records)
    panels = {}
    for dataset in found.datasets:
        panel = {row: list(cells.get((row, dataset), {}).values()) for row in found.rows}
        if any(panel.values()):
            known = {row: published.accuracy(found.study, row, dataset) for row in found.rows}
            panels[dataset] = {row: (panel[row], known[row]) for row in found.rows if panel[row] or known[row]}
    blocks: list[Block] = [_score_table(found, cells), _gain_table(found, cells), _cost_table(found)]
    if panels:
        drawn = [row for row in found.rows if any(row in panel for panel in panels.values())]
        caption = "Test F1-micro, mean and standard deviation over runs, beside the paper's where it has one"
        blocks.insert(1, Picture(found.study, caption, figures.accuracy(drawn, panels)))
    return blocks


def _score_table(found: Found, cells: dict[tuple[str, str], dict[Hashable, float]]) -> Table:
    def cell(row: str, dataset: str) -> str:
        values = cells.get((row, dataset))
        known = published.accuracy(found.study, row, dataset)
        paper = "" if known is None else f"\npaper {known[0]:.2f} ± {known[1]:.2f}"
        if not values:
            return found.absence(row, dataset) + paper
        outside = known is not None and abs(mean(values.values()) - known[0]) > known[1]
        return f"{mean_and_deviation(values.values())} ({len(values)}){' †' if outside else ''}{paper}"

    caption = (
        "Test F1-micro (%) at the best validation epoch: mean ± sample standard deviation (runs). "
        "†: further from the paper's mean than its standard deviation"
    )
    rows = [(row, *(cell(row, dataset) for dataset in found.datasets)) for row in found.rows]
    return Table(caption, ("", *found.datasets), rows)


def _gain_table(found: Found, cells: dict[tuple[str, str], dict[Hashable, float]]) -> Table:
    bases = {record["row"]: record["against"] for record in found.records if record.get("against")}

    def cell(row: str, dataset: str) -> str:
        gain = paired(cells.get((row, dataset), {}), cells.get((bases[row], dataset), {}))
        ours, base = (published.accuracy(found.study, name, dataset) for name in (row, bases[row]))
        lines = [] if gain is None else [f"{gain} ({gain.count})"]
        lines += [] if ours is None or base is None else [f"paper {ours[0] - base[0]:+.2f}"]
        return "\n".join(lines)

    rows = [
        (f"{row} − {bases[row]}", *(cell(row, dataset) for dataset in found.datasets))
        for row in found.rows
        if row in bases
    ]
    caption = "Gains in points of F1-micro over the same splits and seeds: mean [95 % interval], paired t-test (pairs)"
    return Table(caption, ("", *found.datasets), rows)


def _cost_table(found: Found) -> Table:
    def cell(row: str, dataset: str) -> str:
        own = [record for record in found.good if (record["row"], record["dataset"]) == (row, dataset)]
        if not own:
            return ""
        # Wall time is not shown: it is stretched by whatever else the machine did.
        seconds = [record["processor_seconds"] for record in own if "processor_seconds" in record]
        epochs = f"{mean(record['epochs'] for record in own):.0f} epochs"
        return f"{mean(seconds):.1f} s\n{epochs}" if seconds else epochs

    rows = [(row, *(cell(row, dataset) for dataset in found.datasets)) for row in found.rows]
    return Table("Mean epochs of a run, and its processor time where it was recorded", ("", *found.datasets), rows)
