"""Rows that differ in one setting from another row: gain and cost of the change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import mean, median

from lignn.equilibrium import Status
from lignn.evaluation.page import Block, Picture, Table
from lignn.evaluation.summary import mean_and_deviation, paired
from lignn.runs.records import Record, scores
from lignn.studies import figures
from lignn.studies.results import NO_DATA, NOT_RUN, Results

HEADER = ("", "dataset", "runs", "score", "gain", "s a run", "s an epoch", "× a run", "× an epoch")
CAPTION = (
    "Test {} (%) at the best validation epoch: mean ± sample standard deviation; gain over the same splits "
    "and seeds: mean [95 % interval], paired t-test (pairs). Processor seconds: mean; × : median of the ratios to "
    "the row that it is compared with, same split and seed, as the first run of a process also loads and compiles"
)


def view(results: Results) -> list[Block]:
    """Return a table of scores, gains and costs, a picture of the gains, and the rows that were not run."""
    runs, cells = results.good_by_cell, scores(results.records)
    lines = []
    panels: dict[str, list[figures.Bar]] = {}
    for dataset in results.datasets:
        for row in (row for row in results.rows if (row, dataset) in runs):
            own = runs[row, dataset]
            base = own[0]["against"]
            gain = paired(cells[row, dataset], cells.get((base, dataset), {}))
            told = "" if gain is None else f"{gain} ({gain.count})\nover {base}"
            score = mean_and_deviation(cells[row, dataset].values())
            costs = _costs(own, runs.get((base, dataset), []))
            lines.append((row, dataset, str(len(cells[row, dataset])), score, told, *costs))
            if gain is not None:
                panels.setdefault(dataset, []).append(figures.Bar(row, base, gain))
    if not lines:
        return [NOT_RUN]
    verdicts = [_verdict(dataset, bars) for dataset, bars in panels.items()]
    blocks: list[Block] = [
        *verdicts,
        *_not_run(results, list(runs)),
        Table(CAPTION.format(results.metric), HEADER, lines),
    ]
    if panels:
        caption = f"Paired differences in points of {results.metric}, mean and 95 % interval"
        blocks.append(Picture(results.study, caption, figures.differences(panels)))
    return [*blocks, *_solves(results)]


def _solves(results: Results) -> list[Block]:
    """Return a table of the solves that predict; nothing for methods without an equilibrium."""
    cells, lines = results.good_by_cell, []
    for row, dataset in ((row, dataset) for dataset in results.datasets for row in results.rows):
        found = [solve for run in cells.get((row, dataset), []) if (solve := run.get("solves", {}).get("evaluation"))]
        measured = [solve for solve in found if solve["contraction_at_best"]]  # 0: the solver had no ratio
        if measured:
            steps, contraction = (mean(solve[f"{of}_at_best"] for solve in measured) for of in ("steps", "contraction"))
            ends = sum((Counter(solve["status"]) for solve in found), Counter())
            converged = 100 * ends[Status.CONVERGED] / ends.total()
            lines.append((row, dataset, f"{steps:.1f}", f"{contraction:.2f}", f"{converged:.0f}"))
    caption = "Solves of predictions: steps and K̂ at the best epoch, mean; share of all epochs whose solve converged"
    return [Table(caption, ("", "dataset", "steps", "K̂", "converged (%)"), lines)] if lines else []


def _verdict(dataset: str, bars: Sequence[figures.Bar]) -> str:
    """Return the rows by whether the interval of their difference lies above 0, below 0 or contains it."""
    sides: dict[int | None, list[str]] = {1: [], -1: [], 0: [], None: []}
    for bar in bars:
        sides[bar.difference.sign].append(f"{bar.row} ({bar.difference.mean:+.2f})")
    titles = {1: "better", -1: "worse", 0: "within chance", None: "a single pair, undecided"}
    if not (sides[1] or sides[-1]):
        titles[0] = "all within chance"
    said = (f"{title}: {', '.join(sides[side])}" for side, title in titles.items() if sides[side])
    return f"On {dataset}, by the 95 % interval of the difference in points, {'; '.join(said)}."


def _costs(runs: Sequence[Record], others: Sequence[Record]) -> list[str]:
    """Return the mean seconds of a run and of an epoch, and the median of their ratios to the other runs."""
    means, ratios = [], []
    for each_epoch, digits in ((False, 1), (True, 3)):
        ours, theirs = _seconds(runs, each_epoch), _seconds(others, each_epoch)
        pairs = [ours[seed] / theirs[seed] for seed in ours if seed in theirs]
        means.append(f"{mean(ours.values()):.{digits}f}" if ours else "")
        ratios.append(f"{median(pairs):.2f}" if pairs else "")
    return means + ratios


def _seconds(runs: Sequence[Record], each_epoch: bool) -> dict[int, float]:
    """Return the recorded processor time by seed, of the run or of an epoch.

    Wall time is not used because it depends on what else the machine did.
    """
    timed = [run for run in runs if "processor_seconds" in run]
    return {run["seed"]: run["processor_seconds"] / (run["epochs"] if each_epoch else 1) for run in timed}


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
