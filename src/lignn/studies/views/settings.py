"""Settings of a classifier on many graphs: scores, differences to the first, cost, calibration, and the equilibrium."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from statistics import mean, median

from matplotlib.figure import Figure

from lignn.evaluation.page import Block, Picture, Table
from lignn.evaluation.summary import mean_and_deviation, paired
from lignn.runs.records import scores
from lignn.studies.results import NOT_RUN, Results

CURVE = "contraction"
"""The study whose scores are drawn against the share of predictions that depend on the start."""


def view(results: Results) -> list[Block]:
    """Return the tables of all settings, a line for each; what no run has recorded is left out."""
    if not results.good:
        return [NOT_RUN]
    blocks: list[Block] = [_scores(results), _costs(results)]
    if any("calibration_error" in record for record in results.good):
        caption = "Expected calibration error, mean"
        blocks.append(by_dataset(results, caption, partial(mean_of, results, "calibration_error", ".3f")))
    if any(record.get("K") is not None for record in results.good):
        caption = "Predictions that depend on the start, K̂ over 100 steps, and proofs: means, and how many models"
        blocks += [_agreeing(results), by_dataset(results, caption, partial(_equilibrium, results))]
    if results.study == CURVE:
        caption = "Accuracy against the share of predictions that depend on the start, for bounds κ from 0.95 to none"
        blocks.append(Picture(results.study, caption, curve(results)))
    return blocks


def by_dataset(results: Results, caption: str, shown: Callable[[str, str], str]) -> Table:
    """Return a table with a line for each row, a column for each dataset, and in a cell what `shown` returns."""
    there = {dataset for _, dataset in results.good_by_cell}
    datasets = [dataset for dataset in results.datasets if dataset in there]
    lines = [[row, *(shown(row, dataset) for dataset in datasets)] for row in results.rows]
    return Table(caption, ("", *datasets), [line for line in lines if any(line[1:])])


def values(results: Results, row: str, dataset: str, name: str) -> dict[Hashable, float]:
    """Return a recorded value by run."""
    found = results.good_by_cell.get((row, dataset), [])
    return {record["seed"]: record[name] for record in found if record.get(name) is not None}


def mean_of(results: Results, name: str, digits: str, row: str, dataset: str) -> str:
    """Return the mean of a recorded value over the runs of a cell; nothing if there are none."""
    found = values(results, row, dataset, name)
    return f"{mean(found.values()):{digits}}" if found else ""


def _scores(results: Results) -> Table:
    """Return scores with their differences to the first row, and the mean of these over all datasets."""
    cells, base = scores(results.records), results.rows[0]
    gains: dict[str, list[float]] = {row: [] for row in results.rows}

    def shown(row: str, dataset: str) -> str:
        found = cells.get((row, dataset), {})
        gain = None if row == base else paired(found, cells.get((base, dataset), {}))
        gains[row] += [] if gain is None else [gain.mean]
        told = f"{mean_and_deviation(found.values())} ({len(found)})" if found else ""
        return told if gain is None else f"{told}\n{gain.with_interval}"

    caption = (
        f"{results.metric} of the test nodes (%): mean ± standard deviation (runs); below it the difference to "
        f"{base} on the same splits, mean [95 % interval]"
    )
    table = by_dataset(results, caption, shown)
    lines = [[*line, f"{mean(gains[line[0]]):+.2f}" if gains[line[0]] else ""] for line in table.rows]
    return Table(caption, (*table.header, "mean difference"), lines)


def _costs(results: Results) -> Table:
    base = results.rows[0]
    ratios: dict[str, list[float]] = {row: [] for row in results.rows}

    def shown(row: str, dataset: str) -> str:
        ours, theirs = (values(results, each, dataset, "fit_seconds") for each in (row, base))
        common = [ours[run] / theirs[run] for run in ours if run in theirs]
        ratios[row] += [median(common)] if common else []
        return f"{median(ours.values()):.1f}" if ours else ""

    caption = f"Processor seconds of a fit, median; in the last column as a multiple of those of {base}"
    table = by_dataset(results, caption, shown)
    lines = [[*line, f"{mean(ratios[line[0]]):.2f}" if ratios[line[0]] else ""] for line in table.rows]
    return Table(caption, (*table.header, "mean ratio"), lines)


def _equilibrium(results: Results, row: str, dataset: str) -> str:
    largest, shares = (values(results, row, dataset, name) for name in ("K", "differing"))
    if not largest:
        return ""
    bounds = values(results, row, dataset, "lipschitz").values()
    proved = f"proved {sum(bound < 1 for bound in bounds)} of {len(largest)}"
    return f"{100 * mean(shares.values()):.2f} %\nK̂ {mean(largest.values()):.2f}, {proved}"


def _agreeing(results: Results) -> str:
    """Return in words how many of the models that are proved to have one equilibrium have one from all starts."""
    proved = [record for record in results.good if record.get("K") is not None and record["lipschitz"] < 1]
    same = sum(record["differing"] == 0 for record in proved)
    steepest = max((record["K"] for record in proved), default=0.0)
    return f"{same} of {len(proved)} proved models give every node the same label from all starts; K̂ ≤ {steepest:.2f}."


def curve(results: Results) -> Figure:
    """Draw one panel for each dataset: the score against the share of predictions that depend on the start."""
    cells = scores(results.records)
    datasets = [dataset for dataset in results.datasets if any(cell[1] == dataset for cell in cells)]
    drawing = Figure(figsize=(3.2 * min(len(datasets), 3), 3.0 * -(-len(datasets) // 3)), layout="constrained")
    panels = drawing.subplots(-(-len(datasets) // 3), min(len(datasets), 3), squeeze=False).flatten()
    for axes, dataset in zip(panels, datasets, strict=False):
        points: dict[tuple[float, float], list[str]] = {}  # rows of the same point share one name
        for row in results.rows:
            if shares := values(results, row, dataset, "differing"):
                point = round(100 * mean(shares.values()), 1), round(mean(cells[row, dataset].values()), 1)
                points.setdefault(point, []).append(row)
        for point, same in points.items():
            axes.plot(*point, "o", color="#1f5f99")
            axes.annotate(", ".join(same), point, textcoords="offset points", xytext=(5, 3), fontsize=8)
        axes.set_xlim(-0.1, 1.4 * max([share for share, _ in points] + [1.0]))
        axes.set(title=dataset, xlabel="depend on the start (%)", ylabel="accuracy (%)")
        axes.margins(0.15)
    for axes in panels[len(datasets) :]:
        axes.set_visible(False)
    return drawing
