"""Report of the study of added labels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median

from matplotlib.figure import Figure

from lignn.evaluation import page
from lignn.evaluation.page import Picture, Section, Table
from lignn.evaluation.summary import mean_and_deviation
from lignn.runs.records import FAILED, OK, Record
from lignn.studies import figures
from lignn.studies.labels_added import RETRAINED, SOLVED, STUDY, TRAINED_ON

WAYS = (SOLVED, TRAINED_ON, RETRAINED)

_TEXT = (
    "A classifier with the practical preset is fitted with few labels a class; then more labels come. "
    f"'{SOLVED}': `update_labels(…)`, nothing is trained. '{TRAINED_ON}': `update_labels(…, epochs=…)` from the "
    f"present weights. '{RETRAINED}': a new fit. Test F1-micro in percent, mean ± standard deviation over runs; the "
    "second line is the median processor time on one thread, of a fit including its early stopping."
)


def write(folder: Path, found: Sequence[Record]) -> list[Path]:
    """Write the report of these records into `folder`, and return its files."""
    good = [record for record in found if record["status"] == OK]
    failed = [f"{r['dataset']}, run {r['seed']} failed: {r['reason']}" for r in found if r["status"] == FAILED]
    names = list(dict.fromkeys(record["dataset"] for record in good))
    tables = [table(name, [record for record in good if record["dataset"] == name]) for name in names]
    blocks: list[str | Table | Picture] = [_TEXT, *failed, *tables]
    if names:
        caption = "Test F1-micro against labels a class added after the first fit, mean and standard deviation"
        blocks.append(Picture(STUDY, caption, figure(names, good)))
    return page.write(folder, "Labels added after training", [Section("What added labels bring", blocks)])


def table(name: str, good: Sequence[Record]) -> Table:
    """Return the table of one dataset, with one row for each number of added labels."""
    amounts = sorted({point["added"] for record in good for point in record["points"]})
    start = good[0]["config"]["start"]
    rows = [(f"+{amount}", *(_cell(good, amount, way) for way in WAYS)) for amount in amounts]
    caption = f"{name}: {start} labels a class to begin with; runs: {len(good)}"
    return Table(caption, ("labels a class added", *WAYS), rows)


def _cell(good: Sequence[Record], amount: int, way: str) -> str:
    points = [p for record in good for p in record["points"] if (p["added"], p["way"]) == (amount, way)]
    if not points:
        return ""
    seconds = median(point["processor_seconds"] for point in points)
    spent = f"{1000 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
    steps = f", {median(point['steps'] for point in points):.0f} steps" if points[0].get("steps") else ""
    return f"{mean_and_deviation(100 * point['test'] for point in points)}\n{spent}{steps}"


def figure(names: Sequence[str], good: Sequence[Record]) -> Figure:
    """Draw one panel for each dataset and one line for each way to use the labels."""
    drawing = Figure(figsize=(max(5.0, 3.4 * len(names)), 3.6), layout="constrained")
    panels = drawing.subplots(1, len(names), squeeze=False)[0]
    for axes, name in zip(panels, names, strict=True):
        points = [p for record in good if record["dataset"] == name for p in record["points"]]
        amounts = sorted({point["added"] for point in points})
        for number, way in enumerate(WAYS):
            mine = [point for point in points if point["way"] == way or point["added"] == 0]
            scores: figures.Series = {
                place: [100 * point["test"] for point in mine if point["added"] == amount]
                for place, amount in enumerate(amounts)
            }
            figures.line(axes, scores, way, number)
        axes.set_xticks(range(len(amounts)), [f"+{amount}" for amount in amounts])
        axes.set(title=name, xlabel="labels a class added")
    panels[0].set_ylabel("test F1-micro (%)")
    drawing.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return drawing
