"""Rows that differ in one setting from another row: gain and cost of the change."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from statistics import mean, median

from lignn.evaluation.page import Block, Picture, Table
from lignn.evaluation.summary import mean_and_deviation, paired
from lignn.studies import figures
from lignn.studies.records import Record, scores
from lignn.studies.results import NO_DATA, NOT_RUN, Results

Runs = dict[Hashable, Record]
"""Records of one row and dataset by seed."""


def view(results: Results) -> list[Block]:
    """Return a table of scores, gains and costs, a picture of the gains, and the rows that were not run."""
    runs: dict[tuple[str, str], Runs] = {}
    for record in results.good:
        runs.setdefault((record["row"], record["dataset"]), {})[record["seed"]] = record
    cells = scores(results.records)
    lines = []
    panels: dict[str, list[figures.Bar]] = {}
    for dataset in results.datasets:
        bars: list[figures.Bar] = []
        for row in (row for row in results.rows if (row, dataset) in runs):
            own = runs[row, dataset]
            base = next(iter(own.values()))["against"]
            others = runs.get((base, dataset), {})
            gain = paired(cells[row, dataset], cells.get((base, dataset), {}))
            told = "" if gain is None else f"{gain} ({gain.count})\nover {base}"
            score = mean_and_deviation(cells[row, dataset].values())
            lines.append((row, dataset, str(len(own)), score, told, *_cost(own), *_ratios(own, others)))
            bars += [] if gain is None else [figures.Bar(row, base, gain)]
        if bars:
            panels[dataset] = bars
    if not lines:
        return [NOT_RUN]
    blocks: list[Block] = [
        *(_verdict(dataset, bars) for dataset, bars in panels.items()),
        *_not_run(results, list(runs)),
    ]
    blocks.append(_table(lines))
    if panels:
        caption = "Paired differences in points of F1-micro, mean and 95 % interval"
        blocks.append(Picture(results.study, caption, figures.differences(panels)))
    return blocks


def _verdict(dataset: str, bars: Sequence[figures.Bar]) -> str:
    """Return the rows by whether the interval of their difference lies above 0, below 0 or contains it."""
    sides: dict[int | None, list[str]] = {1: [], -1: [], 0: [], None: []}
    for bar in bars:
        sides[bar.difference.sign].append(f"{bar.row} ({bar.difference.mean:+.2f})")
    titles = {1: "above 0", -1: "below 0", 0: "with 0 in it", None: "none, a single pair"}
    said = (f"{title}: {', '.join(sides[side]) or 'no row'}" for side, title in titles.items() if sides[side] or side)
    return f"Differences on {dataset}, by their interval: {'; '.join(said)}."


def _table(lines: Sequence[Sequence[str]]) -> Table:
    caption = (
        "Test F1-micro (%) at the best validation epoch: mean ± sample standard deviation; gain over the same splits "
        "and seeds: mean [95 % interval], paired t-test (pairs). Processor seconds: mean; × : median of the ratios to "
        "the row that it is compared with, same split and seed, as the first run of a process also loads and compiles"
    )
    header = ("", "dataset", "runs", "F1-micro", "gain", "s a run", "s an epoch", "× a run", "× an epoch")
    return Table(caption, header, lines)


def _seconds(runs: Runs) -> dict[Hashable, tuple[float, float]]:
    """Return the recorded processor time of each run and of its epochs.

    Wall time is not used because it depends on what else the machine did.
    """
    return {
        key: (record["processor_seconds"], record["processor_seconds"] / record["epochs"])
        for key, record in runs.items()
        if "processor_seconds" in record
    }


def _cost(runs: Runs) -> tuple[str, str]:
    seconds = list(_seconds(runs).values())
    if not seconds:
        return "", ""
    return f"{mean(run for run, _ in seconds):.1f}", f"{mean(epoch for _, epoch in seconds):.3f}"


def _ratios(runs: Runs, others: Runs) -> tuple[str, str]:
    ours, theirs = _seconds(runs), _seconds(others)
    pairs = [(ours[key], theirs[key]) for key in ours if key in theirs]
    if not pairs:
        return "", ""
    run, epoch = (median(own[part] / base[part] for own, base in pairs) for part in (0, 1))
    return f"{run:.2f}", f"{epoch:.2f}"


def _not_run(results: Results, there: Sequence[tuple[str, str]]) -> list[Block]:
    """Return a sentence on the planned rows without a run; nothing if there are none."""
    said = []
    for dataset in results.datasets:
        planned = [row for row, own in results.cells if own == dataset]
        missing = [row for row in planned if (row, dataset) not in there]
        if missing:
            names = f"all {len(missing)} rows" if len(missing) == len(planned) else ", ".join(missing)
            said.append(f"{dataset}: {names}" + (f" ({NO_DATA})" if dataset in results.absent else ""))
    return [f"Not run: {'; '.join(said)}."] if said else []
