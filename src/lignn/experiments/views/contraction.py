"""The paper's Figure 2: the stochastic Lipschitz constant K̂ against the mask rate β."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import mean

from lignn.experiments import figures
from lignn.experiments.found import NOT_RUN, Found
from lignn.experiments.page import Block, Picture, Table
from lignn.experiments.records import Record
from lignn.experiments.summary import Difference, mean_and_deviation, paired

GRID = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""Mask rates of the paper."""
SOLVES = ("forward", "backward")


@dataclass(frozen=True)
class Measured:
    """K̂ of one graph and one solve at the best epoch.

    Attributes:
        values: by the seed of a run, there by β; None where no ratio of steps could be measured.
    """

    values: dict[int, dict[float, float | None]] = field(default_factory=dict)

    @classmethod
    def of(cls, records: Iterable[Record], solve: str) -> Measured:
        """From the records of one graph."""
        values: dict[int, dict[float, float | None]] = {}
        for record in records:
            measured = record["solves"].get(solve, {}).get("contraction_at_best")
            run = values.setdefault(record["seed"], {})
            run[record["config"]["method"]["mask_rate"]] = measured or None  # a solver without a ratio says 0
        return cls(values)

    @property
    def missing(self) -> int:
        """Runs without K̂."""
        return sum(value is None for run in self.values.values() for value in run.values())

    @property
    def series(self) -> dict[float, list[float]]:
        """All values of every β."""
        rates = sorted({rate for run in self.values.values() for rate in run})
        there = {rate: [run[rate] for run in self.values.values() if run.get(rate) is not None] for rate in rates}
        return {rate: [value for value in values if value is not None] for rate, values in there.items() if values}

    @property
    def whole(self) -> list[dict[float, float]]:
        """The runs with the complete grid, without the values that are missing."""
        whole = [run for run in self.values.values() if set(GRID) <= set(run)]
        return [{rate: value for rate, value in sorted(run.items()) if value is not None} for run in whole]

    @property
    def ranks(self) -> list[float]:
        """Spearman's correlation of K̂ with β of each complete run in which K̂ varies."""
        from scipy.stats import spearmanr

        varied = [run for run in self.whole if len(set(run.values())) > 1]
        return [float(spearmanr(list(run), list(run.values())).statistic) for run in varied]

    @property
    def fall(self) -> Difference | None:
        """K̂ at the largest β minus that at the smallest, in complete runs that have both."""
        ends: list[dict[int, float]] = [
            {number: run[rate] for number, run in enumerate(self.whole) if rate in run} for rate in (GRID[-1], GRID[0])
        ]
        return paired(ends[0], ends[1])


def view(found: Found) -> list[Block]:
    """K̂ drawn against β, rank correlations, and what they say."""
    measured = {
        (dataset, solve): Measured.of([record for record in found.good if record["dataset"] == dataset], solve)
        for solve in SOLVES
        for dataset in found.datasets
    }
    measured = {key: own for key, own in measured.items() if own.values}
    if not measured:
        return [NOT_RUN]
    panels = {
        solve: {dataset: own.series for (dataset, there), own in measured.items() if there == solve and own.series}
        for solve in SOLVES
    }
    header = (
        "",
        "solve",
        "complete runs",
        "rank correlation of K̂ with β",
        f"K̂({GRID[0]})",
        f"K̂({GRID[-1]})",
        f"K̂({GRID[-1]}) − K̂({GRID[0]})",
        "runs without K̂",
    )
    rows = [(dataset, solve, *_line(own)) for (dataset, solve), own in measured.items()]
    caption = (
        "K̂ at the best epoch. Complete runs have all mask rates 0.1 … 0.9; rank correlation: Spearman's of each "
        "complete run, their mean (least … most); difference: paired, mean [95 % interval], t-test (runs). "
        "Runs in which no two steps could be compared have no K̂ and are left out"
    )
    drawn = "Stochastic Lipschitz constant K̂ of LI-GCN at the best epoch against the mask rate β"
    picture = Picture(found.study, drawn, figures.contraction({s: lines for s, lines in panels.items() if lines}))
    return [*(_verdict(found, measured, solve) for solve in SOLVES), picture, Table(caption, header, rows)]


def _line(own: Measured) -> tuple[str, ...]:
    ends = (mean_and_deviation(own.series[rate]) if rate in own.series else "" for rate in (GRID[0], GRID[-1]))
    count = sum(len(run) for run in own.values.values())
    missing = f"{own.missing} of {count}"
    if not own.whole:
        rates = {rate for run in own.values.values() for rate in run}
        return ("0", f"incomplete ({len(rates)} of {len(GRID)} mask rates)", *ends, "incomplete", missing)
    ranks = own.ranks
    spread = f" ({min(ranks):+.2f} … {max(ranks):+.2f})" if len(ranks) > 1 else ""
    rank = f"{mean(ranks):+.2f}{spread}" if ranks else "not measured"
    fall = "not measured" if own.fall is None else f"{own.fall} ({own.fall.count})"
    return (str(len(own.whole)), rank, *ends, fall, missing)


def _verdict(found: Found, measured: dict[tuple[str, str], Measured], solve: str) -> str:
    own = {dataset: values for (dataset, there), values in measured.items() if there == solve and values.ranks}
    partial = [dataset for dataset in found.datasets if dataset not in own]
    wrong = [dataset for dataset, values in own.items() if mean(values.ranks) >= 0]
    falls = {dataset: values.fall.mean for dataset, values in own.items() if values.fall is not None}
    higher = [dataset for dataset, fall in falls.items() if fall >= 0]
    said = [
        f"{solve.capitalize()} solve: the mean rank correlation of K̂ with β is negative on {len(own) - len(wrong)} of "
        f"{len(own)} graphs with complete runs{_but(wrong)}, and K̂({GRID[-1]}) < K̂({GRID[0]}) on "
        f"{len(falls) - len(higher)} of {len(falls)} where both were measured{_but(higher)}."
    ]
    return " ".join(said + ([f"Incomplete: {', '.join(partial)}."] if partial else []))


def _but(datasets: list[str]) -> str:
    return f" (not on {', '.join(datasets)})" if datasets else ""
