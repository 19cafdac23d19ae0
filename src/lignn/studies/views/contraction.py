"""The paper's Figure 2: the stochastic Lipschitz constant K̂ against the mask rate β."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean

from lignn.evaluation.page import Block, Picture, Table
from lignn.evaluation.summary import Difference, mean_and_deviation, paired
from lignn.runs.records import Record
from lignn.studies import figures
from lignn.studies.results import NOT_RUN, Results

SOLVES = ("forward", "backward")


@dataclass(frozen=True)
class Measured:
    """K̂ of one line and one solve at the chosen epoch.

    Attributes:
        grid: mask rates of a complete run.
        values: K̂ by seed, and for each seed by β; None if no ratio of steps could be measured.
        epochs: chosen epochs of all runs, by β.
    """

    grid: tuple[float, ...]
    values: dict[int, dict[float, float | None]] = field(default_factory=dict)
    epochs: dict[float, list[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, records: Iterable[Record], solve: str, grid: tuple[float, ...]) -> Measured:
        """Return the values of the records of one line."""
        own = cls(grid)
        for record in records:
            rate = record["config"]["method"]["mask_rate"]
            measured = record["solves"].get(solve, {}).get("contraction_at_best")
            own.values.setdefault(record["seed"], {})[rate] = measured or None  # 0: the solver had no ratio
            own.epochs.setdefault(rate, []).append(record["best_epoch"])
        return own

    @property
    def series(self) -> dict[float, list[float]]:
        """All values of each β."""
        rates = sorted({rate for run in self.values.values() for rate in run})
        there = {rate: [run[rate] for run in self.values.values() if run.get(rate) is not None] for rate in rates}
        return {rate: [value for value in values if value is not None] for rate, values in there.items() if values}

    @property
    def whole(self) -> list[dict[float, float]]:
        """Values by β of each run with the complete grid, without missing values."""
        whole = [run for run in self.values.values() if set(self.grid) <= set(run)]
        return [{rate: value for rate, value in sorted(run.items()) if value is not None} for run in whole]

    @property
    def ranks(self) -> list[float]:
        """Spearman's correlation of K̂ with β, for each complete run in which K̂ varies."""
        from scipy.stats import spearmanr

        varied = [run for run in self.whole if len(set(run.values())) > 1]
        return [float(spearmanr(list(run), list(run.values())).statistic) for run in varied]

    @property
    def fall(self) -> Difference | None:
        """Paired difference of K̂ at the largest and at the smallest β, over the complete runs that have both."""
        least, most = (
            {number: run[rate] for number, run in enumerate(self.whole) if rate in run}
            for rate in (self.grid[0], self.grid[-1])
        )
        return paired(most, least)


def view(results: Results) -> list[Block]:
    """Return a picture of K̂ against β, a table of rank correlations, and what they show."""
    lines = _lines(results)
    if not any(lines.values()):
        return [NOT_RUN]
    configs = [run.plain() for run in results.planned.values()] or [record["config"] for record in results.good]
    grid = tuple(sorted({config["method"]["mask_rate"] for config in configs}))
    there = {name: records for name, records in lines.items() if records}
    measured = {solve: {name: Measured.of(own, solve, grid) for name, own in there.items()} for solve in SOLVES}
    panels = {solve: {name: one.series for name, one in own.items() if one.series} for solve, own in measured.items()}
    least, most = grid[0], grid[-1]
    ends = (f"K̂({least})", f"K̂({most})", f"K̂({most}) − K̂({least})")
    epochs = f"chosen epoch, β {least} → {most}"
    header = ("", "solve", "complete runs", "rank correlation of K̂ with β", *ends, "runs without K̂", epochs)
    rows = [(name, solve, *_line(one)) for solve, own in measured.items() for name, one in own.items()]
    caption = (
        f"K̂ at the chosen epoch. Complete runs have all mask rates {least} … {most}; rank correlation: Spearman's of "
        "each complete run, their mean (least … most); difference: paired, mean [95 % interval], t-test (runs). "
        "Runs in which no two steps could be compared have no K̂ and are left out; chosen epoch: mean of the runs"
    )
    drawn = "Stochastic Lipschitz constant K̂ of LI-GCN at the chosen epoch against the mask rate β"
    picture = Picture(results.study, drawn, figures.contraction({s: own for s, own in panels.items() if own}))
    said = (_verdict(solve, lines, own, grid) for solve, own in measured.items())
    return [*said, picture, Table(caption, header, rows)]


def _lines(results: Results) -> dict[str, list[Record]]:
    """Return the records of each line, also of planned lines without records.

    A line is a dataset, or a dataset and a setting if there are several settings. The name of a row starts with its
    setting, followed by its mask rate.
    """
    planned = [run.cell for run in results.planned.values()] or [(row["row"], row["dataset"]) for row in results.good]
    settings = {row: row.partition("β")[0].rstrip(" (,") for row, _ in planned}
    several = len(set(settings.values())) > 1
    names = {(row, dataset): f"{dataset}, {settings[row]}" if several else dataset for row, dataset in planned}
    lines: dict[str, list[Record]] = {name: [] for name in names.values()}
    for record in results.good:
        lines[names[record["row"], record["dataset"]]].append(record)
    return lines


def _line(own: Measured) -> tuple[str, ...]:
    ends = (own.grid[0], own.grid[-1])
    values = [mean_and_deviation(own.series[rate]) if rate in own.series else "" for rate in ends]
    epochs = " → ".join(f"{mean(own.epochs[rate]):.0f}" if rate in own.epochs else "?" for rate in ends)
    measured = [value for run in own.values.values() for value in run.values()]
    missing = f"{measured.count(None)} of {len(measured)}"
    if not own.whole:
        incomplete = f"incomplete ({len(own.epochs)} of {len(own.grid)} mask rates)"
        return ("0", incomplete, *values, "incomplete", missing, epochs)
    ranks = own.ranks
    spread = f" ({min(ranks):+.2f} … {max(ranks):+.2f})" if len(ranks) > 1 else ""
    rank = f"{mean(ranks):+.2f}{spread}" if ranks else "not measured"
    fall = "not measured" if own.fall is None else f"{own.fall} ({own.fall.count})"
    return (str(len(own.whole)), rank, *values, fall, missing, epochs)


def _verdict(solve: str, lines: Iterable[str], measured: Mapping[str, Measured], grid: Sequence[float]) -> str:
    own = {name: values for name, values in measured.items() if values.ranks}
    partial = [name for name in lines if name not in own]
    wrong = [name for name, values in own.items() if mean(values.ranks) >= 0]
    falls = {name: values.fall.mean for name, values in own.items() if values.fall is not None}
    higher = [name for name, fall in falls.items() if fall >= 0]
    return (
        f"{solve.capitalize()} solve: the mean rank correlation of K̂ with β is negative on {len(own) - len(wrong)} of "
        f"{len(own)} lines with complete runs{_but(wrong)}, and K̂({grid[-1]}) < K̂({grid[0]}) on "
        f"{len(falls) - len(higher)} of {len(falls)} where both were measured{_but(higher)}."
    ) + (f" Incomplete: {'; '.join(partial)}." if partial else "")


def _but(names: Sequence[str]) -> str:
    return f" (not on {'; '.join(names)})" if names else ""
