"""One section of the report for each way in which a study is shown. They read records, and nothing else of a run."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from statistics import mean

from lignn.experiments import figures, published, search
from lignn.experiments.page import Picture, Section, Table
from lignn.experiments.records import FAILED, OK, UNAVAILABLE, Record
from lignn.experiments.study import Study
from lignn.experiments.summary import Difference, mean_and_deviation, paired, scores

NOT_RUN = "not run"
NO_DATA = "not run: data not available here"


@dataclass(frozen=True)
class Found:
    """The records of one study, and the order in which to show them.

    Attributes:
        study: its name.
        records: all of them.
        planned: cells (row and dataset) that the study has.
        rows: in the study's order, planned ones without records included.
        datasets: likewise.
    """

    study: str
    records: Sequence[Record]
    planned: Sequence[tuple[str, str]]
    rows: Sequence[str]
    datasets: Sequence[str]

    @classmethod
    def of(cls, name: str, records: Sequence[Record], study: Study | None) -> Found:
        """With rows and datasets that only the records know behind the study's own, if it is known."""
        planned = [] if study is None else [run.cell for run in study.plan(1)]
        rows = [*(row for row, _ in planned), *(record["row"] for record in records if "row" in record)]
        datasets = [*(study.datasets if study else ()), *(record["dataset"] for record in records)]
        return cls(name, records, planned, list(dict.fromkeys(rows)), list(dict.fromkeys(datasets)))

    @property
    def good(self) -> list[Record]:
        """Records of runs that succeeded."""
        return [record for record in self.records if record["status"] == OK]

    def absence(self, row: str, dataset: str) -> str:
        """Why a cell is empty; nothing for a cell that the study does not have."""
        if (row, dataset) not in self.planned:
            return ""
        absent = {record["dataset"] for record in self.records if record["status"] == UNAVAILABLE}
        return NO_DATA if dataset in absent else NOT_RUN


def accuracy(found: Found) -> list[str | Table | Picture]:
    """Scores beside the published ones, paired gains, and what they cost."""
    cells = scores(found.records)
    panels = {}
    for dataset in found.datasets:
        panel = {row: list(cells.get((row, dataset), {}).values()) for row in found.rows}
        if any(panel.values()):
            known = {row: published.accuracy(found.study, row, dataset) for row in found.rows}
            panels[dataset] = {row: (panel[row], known[row]) for row in found.rows if panel[row] or known[row]}
    blocks: list[str | Table | Picture] = [_score_table(found, cells), _gain_table(found, cells), _cost_table(found)]
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


def transitions(found: Found) -> list[str | Table | Picture]:
    """The paper's Figure 1."""
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


def contraction(found: Found) -> list[str | Table | Picture]:
    """The paper's Figure 2: K̂ against β, with rank correlations."""
    from scipy.stats import spearmanr

    panels: dict[str, dict[str, dict[float, list[float]]]] = {}
    for solve in ("forward", "backward"):
        for record in found.good:
            value = record["solves"][solve]["contraction_at_best"]
            if value is not None:
                series = panels.setdefault(solve, {}).setdefault(record["dataset"], {})
                series.setdefault(record["config"]["method"]["mask_rate"], []).append(value)
    rows = []
    for solve, lines in panels.items():
        panels[solve] = lines = {dataset: lines[dataset] for dataset in found.datasets if dataset in lines}
        for dataset, series in lines.items():
            pairs = [(rate, value) for rate, values in series.items() for value in values]
            rank = f"{spearmanr(pairs).statistic:+.2f}" if len(series) > 1 else ""
            ends = (f"β = {rate}: {mean_and_deviation(series[rate])}" for rate in (min(series), max(series)))
            rows.append((dataset, solve, rank, *ends, str(len(pairs))))
    if not rows:
        return [NOT_RUN]
    header = ("", "solve", "rank correlation of K̂ with β", "K̂ at the smallest β", "K̂ at the largest β", "runs")
    caption = "Stochastic Lipschitz constant K̂ of LI-GCN at the best epoch against the mask rate β"
    return [
        Picture(found.study, caption, figures.contraction(panels)),
        Table(
            "K̂ at the best epoch: mean ± standard deviation; Spearman's rank correlation over all runs", header, rows
        ),
    ]


def curves(found: Found) -> list[str | Table | Picture]:
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


def lengths(found: Found) -> list[str | Table | Picture]:
    """The paper's Figure 4: scores against length, averages over lengths, and LI-GCN against each other method."""
    cells = scores(found.records)
    datasets = [dataset for dataset in found.datasets if any(cell[1] == dataset for cell in cells)]
    lines: dict[str, figures.Series] = {}
    for row in found.rows:
        series: figures.Series = {_length(d): list(cells[row, d].values()) for d in datasets if (row, d) in cells}
        if series:
            lines[row] = series
    if not lines:
        return [NOT_RUN]
    header = ("", *(str(_length(dataset)) for dataset in datasets), "average", "LI-GCN − this")
    averages = {row: _average_by_seed(cells, row, datasets) for row in lines}
    rows = []
    for row in lines:
        own = (mean_and_deviation(cells[row, d].values()) if (row, d) in cells else NOT_RUN for d in datasets)
        average = mean_and_deviation(averages[row].values()) if averages[row] else ""
        gain: Difference | None = None if row == "LI-GCN" else paired(averages.get("LI-GCN", {}), averages[row])
        rows.append((row, *own, average, "" if gain is None else f"{gain} ({gain.count})"))
    caption = (
        "Test F1-micro (%) by length: mean ± standard deviation; average over these lengths by seed; "
        "paired difference [95 % interval], t-test (pairs)"
    )
    picture = Picture(found.study, "Test F1-micro against the length of the chains", figures.lengths(lines))
    return [picture, Table(caption, header, rows)]


def _length(dataset: str) -> int:
    return int(dataset.rpartition("-")[2])


def _average_by_seed(
    cells: dict[tuple[str, str], dict[Hashable, float]], row: str, datasets: Sequence[str]
) -> dict[Hashable, float]:
    """The mean over all lengths of each seed that has them all."""
    whole = [cells.get((row, dataset), {}) for dataset in datasets]
    return {key: mean(values[key] for values in whole) for key in whole[0] if all(key in values for values in whole)}


def failures(found: Found) -> list[str | Table | Picture]:
    """Runs that failed, with their reasons."""
    failed = [record for record in found.records if record["status"] == FAILED]
    rows = [(record["row"], record["dataset"], str(record["seed"]), record["reason"]) for record in failed]
    return [Table("Runs that failed", ("", "dataset", "run", "reason"), rows)] if rows else []


VIEWS: dict[str, Callable[[Found], list[str | Table | Picture]]] = {
    "accuracy": accuracy,
    "transitions": transitions,
    "contraction": contraction,
    "curves": curves,
    "lengths": lengths,
    "search": lambda found: search.view(found.study, found.good, found.rows, found.datasets),
}


def section(title: str, report: str, found: Found) -> Section:
    """The whole section of a study."""
    claim = published.claim(found.study)
    blocks: list[str | Table | Picture] = [] if claim is None else [f"The paper: {claim}"]
    return Section(title, [*blocks, *VIEWS[report](found), *failures(found)])
