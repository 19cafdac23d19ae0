"""Labels that are added after training: scores and time of three ways to use them."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from matplotlib.figure import Figure

from lignn.evaluation.page import Block, Picture, Table
from lignn.evaluation.summary import mean_and_deviation
from lignn.runs.records import Record
from lignn.studies import figures
from lignn.studies.labels_added import WAYS
from lignn.studies.results import NOT_RUN, Results


def view(results: Results) -> list[Block]:
    """Return a table for each dataset, and a picture of all."""
    by_dataset = {name: [record for record in results.good if record["dataset"] == name] for name in results.datasets}
    there = {name: found for name, found in by_dataset.items() if found}
    if not there:
        return [NOT_RUN]
    caption = "Test F1-micro against labels a class added after the first fit, mean and standard deviation"
    tables = [table(name, found) for name, found in there.items()]
    return [*tables, Picture(results.study, caption, figure(there))]


def table(name: str, good: Sequence[Record]) -> Table:
    """Return the table of one dataset, with one row for each number of added labels."""
    amounts = sorted({point["added"] for record in good for point in record["points"]})
    start = good[0]["config"]["split"]["labels"]
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


def figure(by_dataset: dict[str, list[Record]]) -> Figure:
    """Draw one panel for each dataset and one line for each way to use the labels."""
    drawing = Figure(figsize=(max(5.0, 3.4 * len(by_dataset)), 3.6), layout="constrained")
    panels = drawing.subplots(1, len(by_dataset), squeeze=False)[0]
    for axes, (name, found) in zip(panels, by_dataset.items(), strict=True):
        points = [point for record in found for point in record["points"]]
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
