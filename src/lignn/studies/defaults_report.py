"""Reports of the studies of the defaults."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from pathlib import Path
from statistics import mean, median

from matplotlib.figure import Figure

from lignn.evaluation import page
from lignn.evaluation.page import Block, Picture, Section, Table
from lignn.evaluation.summary import mean_and_deviation, paired
from lignn.runs.records import FAILED, OK, Record

BASE = "new"
_TEXT = {
    "defaults": "Each fit is given the labels of a few nodes and predicts all other labelled nodes; the rows of a "
    "dataset are given the same labels. 'new' is `NodeClassifier()`, 'gcn' and 'label_input' are those methods with "
    "the same preset and protocol. These three learn from their own sure predictions too (`teaching`), the rows "
    "'untaught' do not. 'old' is the practical preset before lignn 0.2. Accuracy in percent, mean ± standard deviation "
    "over splits of seed 42; differences with paired 95 % intervals.",
    "more": "As the study of the defaults, on other graphs and with more labels: so many a class, or a share of all.",
    "choice": "The default, found by runs by hand, and settings around it, on splits of seed 7, which are for choosing "
    "alone. A cell has the accuracy in percent of all nodes that were not labelled, and below it the mean difference "
    "to the first row on the same splits.",
    "contraction": "LI-GCN with the practical preset and different bounds κ of the map's Lipschitz constant. 'Depend "
    "on the start' is the share of all nodes whose prediction is not the same from five random starts.",
    "proved": "LI-GNN on several networks, trained with `contraction='proved'` for 60 epochs, and solved again from "
    "five random starts.",
}
_TITLES = {
    "defaults": "What the defaults bring",
    "more": "What the defaults bring with more labels",
    "choice": "Settings around the defaults",
    "contraction": "What a bound of the contraction costs",
    "proved": "One equilibrium, where it is proved",
}


def write(folder: Path, study: str, found: Sequence[Record]) -> list[Path]:
    """Write the report of a study into `folder`, and return its files."""
    good = [_named(record) for record in found if record["status"] == OK]
    blocks: list[Block] = [_TEXT[study]]
    failed = [record for record in found if record["status"] == FAILED]
    blocks += [f"{each['dataset']}, {each['row']}, run {each['seed']} failed: {each['reason']}" for each in failed]
    if good and study == "choice":
        blocks.append(_settings(good))
    elif good:
        blocks.append(_agreeing(good) if study == "proved" else _scores(good))
        blocks.append(_costs(good) if study in ("defaults", "more") else _starts(good))
    if good and study == "contraction":
        caption = "Accuracy against the share of predictions that depend on the start, for bounds κ from 0.95 to none"
        blocks.append(Picture(study, caption, curve(good)))
    return page.write(folder, _TITLES[study], [Section("Results", blocks)])


def _named(record: Record) -> Record:
    """Return a record whose dataset has its labels in its name: tables have one line for both."""
    return {**record, "dataset": f"{record['dataset']} ({record['config']['labels']})"}


def _names(good: Sequence[Record], what: str) -> list[str]:
    return list(dict.fromkeys(record[what] for record in good))


def _cell(good: Sequence[Record], row: str, dataset: str, value: str) -> dict[Hashable, float]:
    """Return a value of every run."""
    mine = [record for record in good if (record["row"], record["dataset"]) == (row, dataset)]
    return {record["seed"]: record[value] for record in mine if record[value] is not None}


def _scores(good: Sequence[Record]) -> Table:
    """Return accuracies, and the differences of the first row to the others."""
    rows = _names(good, "row")
    base = BASE if BASE in rows else rows[0]
    others = [row for row in rows if row != base]
    lines = []
    means: dict[str, list[float]] = {row: [] for row in others}
    for dataset in _names(good, "dataset"):
        cells = {row: {k: 100 * v for k, v in _cell(good, row, dataset, "score").items()} for row in rows}
        differences = {row: paired(cells[base], cells[row]) for row in others}
        for row, difference in differences.items():
            means[row] += [] if difference is None else [difference.mean]
        lines.append(
            (
                dataset,
                str(len(cells[base])),
                *(mean_and_deviation(cells[row].values()) if cells[row] else "" for row in rows),
                *("" if difference is None else difference.with_interval for difference in differences.values()),
            )
        )
    average = ["mean of the datasets", "", *[""] * len(rows), *(f"{mean(d):+.2f}" if d else "" for d in means.values())]
    header = ("dataset (labels a class)", "runs", *rows, *(f"{base} - {row}" for row in others))
    return Table("Accuracy in percent of all nodes that were not labelled", header, [*lines, average])


def _settings(good: Sequence[Record]) -> Table:
    """Return a line for each setting: its accuracies, and time and calibration error in the mean of the datasets."""
    rows, datasets = _names(good, "row"), _names(good, "dataset")
    base, lines = rows[0], []
    for row in rows:
        line, gains, times, errors = [row], [], [], []
        for dataset in datasets:
            ours, theirs = (_cell(good, each, dataset, "score") for each in (row, base))
            common = ours.keys() & theirs.keys()
            if not common:
                line.append("")
                continue
            gains.append(100 * mean(ours[run] - theirs[run] for run in common))
            line.append(f"{100 * mean(ours.values()):.1f}" + ("" if row == base else f"\n{gains[-1]:+.1f}"))
            first, second = (_cell(good, each, dataset, "processor_seconds") for each in (row, base))
            times.append(median(first[run] / second[run] for run in common))
            errors.append(mean(_cell(good, row, dataset, "calibration_error").values()))
        lines.append([*line, "" if row == base else f"{mean(gains):+.2f}", f"{mean(times):.2f}", f"{mean(errors):.3f}"])
    ends = ("mean difference", "CPU time / that of the first row", "calibration error")
    return Table("Accuracy of settings around the default", ("setting", *datasets, *ends), lines)


def _costs(good: Sequence[Record]) -> Table:
    rows = _names(good, "row")
    lines = []
    for dataset in _names(good, "dataset"):
        seconds = {row: _cell(good, row, dataset, "processor_seconds") for row in rows}
        errors = {row: _cell(good, row, dataset, "calibration_error") for row in rows}
        lines.append(
            (
                dataset,
                *(f"{median(each.values()):.1f}" if each else "" for each in seconds.values()),
                *(f"{mean(each.values()):.3f}" if each else "" for each in errors.values()),
                *(_posed(good, row, dataset) for row in rows if row in (BASE, "old")),
            )
        )
    kept = [row for row in rows if row in (BASE, "old")]
    header = (
        "dataset (labels a class)",
        *(f"CPU s, {row}" for row in rows),
        *(f"ECE, {row}" for row in rows),
        *(f"equilibrium, {row}" for row in kept),
    )
    return Table("Median processor seconds of a fit, mean calibration error, and the equilibrium", header, lines)


def _posed(good: Sequence[Record], row: str, dataset: str) -> str:
    """Return the largest K̂ and share of predictions that depend on the start, and what was proved."""
    measured = _cell(good, row, dataset, "K")
    differing = _cell(good, row, dataset, "differing")
    if not measured:
        return ""
    mine = [record for record in good if (record["row"], record["dataset"]) == (row, dataset)]
    proved = sum(record["lipschitz"] is not None and record["lipschitz"] < 1 for record in mine)
    return f"K̂ ≤ {max(measured.values()):.2f}, {100 * max(differing.values()):.1f} %\nproved {proved} of {len(mine)}"


def _agreeing(good: Sequence[Record]) -> str:
    """Return in words how many models have one equilibrium from all starts."""
    same = sum(record["differing"] == 0 and record["lipschitz"] < 1 for record in good)
    steepest = max(record["K"] for record in good)
    return (
        f"{same} of {len(good)} models give every node the same label from all starts; the largest K̂ is {steepest:.2f}."
    )


def _starts(good: Sequence[Record]) -> Table:
    rows = _names(good, "row")
    lines = []
    for dataset in _names(good, "dataset"):
        shares = {row: _cell(good, row, dataset, "differing") for row in rows}
        largest = {row: _cell(good, row, dataset, "K") for row in rows}
        cells = (
            f"{100 * mean(shares[row].values()):.2f} %\nK̂ {mean(largest[row].values()):.2f}" if shares[row] else ""
            for row in rows
        )
        lines.append((dataset, *cells))
    caption = "Predictions that depend on the start, and K̂ over 100 steps; means"
    return Table(caption, ("dataset (labels a class)", *rows), lines)


def curve(good: Sequence[Record]) -> Figure:
    """Draw one panel for each dataset: accuracy against the share of predictions that depend on the start."""
    names, rows = _names(good, "dataset"), _names(good, "row")
    drawing = Figure(figsize=(9.6, 6.0), layout="constrained")
    panels = drawing.subplots(2, 3, squeeze=False).flatten()
    for axes, name in zip(panels, names[:6], strict=False):
        points: dict[tuple[float, float], list[str]] = {}  # rows of the same point share one name
        for row in rows:
            if shares := _cell(good, row, name, "differing"):
                scores = _cell(good, row, name, "score")
                point = round(100 * mean(shares.values()), 1), round(100 * mean(scores.values()), 1)
                points.setdefault(point, []).append(row)
        for point, same in points.items():
            axes.plot(*point, "o", color="#1f5f99")
            axes.annotate(", ".join(same), point, textcoords="offset points", xytext=(5, 3), fontsize=8)
        widest = max([share for share, _ in points] + [1.0])
        axes.set_xlim(-0.1 * widest, 1.4 * widest)
        axes.set(title=name, xlabel="depend on the start (%)", ylabel="accuracy (%)")
        axes.margins(0.15)
    for axes in panels[len(names) :]:
        axes.set_visible(False)
    return drawing
