"""The stochastic Lipschitz constant K̂ against the mask rate β: the paper's Figure 2, and the same in other settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean

from lignn.evaluation.page import Block, Picture, Table
from lignn.evaluation.summary import Difference, mean_and_deviation, paired
from lignn.studies import figures
from lignn.studies.found import NOT_RUN, Found
from lignn.studies.records import Record

SOLVES = ("forward", "backward")


@dataclass(frozen=True)
class Measured:
    """K̂ of one line and one solve at the chosen epoch.

    Attributes:
        grid: the mask rates that a complete run has.
        values: by the seed of a run, there by β; None where no ratio of steps could be measured.
        epochs: the chosen epochs of all runs, by β.
    """

    grid: tuple[float, ...]
    values: dict[int, dict[float, float | None]] = field(default_factory=dict)
    epochs: dict[float, list[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, records: Iterable[Record], solve: str, grid: tuple[float, ...]) -> Measured:
        """From the records of one line."""
        own = cls(grid)
        for record in records:
            rate = record["config"]["method"]["mask_rate"]
            measured = record["solves"].get(solve, {}).get("contraction_at_best")
            own.values.setdefault(record["seed"], {})[rate] = measured or None  # a solver without a ratio says 0
            own.epochs.setdefault(rate, []).append(record["best_epoch"])
        return own

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
        whole = [run for run in self.values.values() if set(self.grid) <= set(run)]
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
        least, most = (
            {number: run[rate] for number, run in enumerate(self.whole) if rate in run}
            for rate in (self.grid[0], self.grid[-1])
        )
        return paired(most, least)


def view(found: Found) -> list[Block]:
    """K̂ drawn against β, rank correlations, and what they say."""
    lines = _lines(found)
    if not any(lines.values()):
        return [NOT_RUN]
    configs = [run.config.plain() for run in found.planned.values()] or [record["config"] for record in found.good]
    grid = tuple(sorted({config["method"]["mask_rate"] for config in configs}))
    measured = {
        (name, solve): Measured.of(records, solve, grid)
        for solve in SOLVES
        for name, records in lines.items()
        if records
    }
    panels = {
        solve: {name: own.series for (name, there), own in measured.items() if there == solve and own.series}
        for solve in SOLVES
    }
    least, most = grid[0], grid[-1]
    header = (
        "",
        "solve",
        "complete runs",
        "rank correlation of K̂ with β",
        f"K̂({least})",
        f"K̂({most})",
        f"K̂({most}) − K̂({least})",
        "runs without K̂",
        f"chosen epoch, β {least} → {most}",
    )
    rows = [(name, solve, *_line(own)) for (name, solve), own in measured.items()]
    caption = (
        f"K̂ at the chosen epoch. Complete runs have all mask rates {least} … {most}; rank correlation: Spearman's of "
        "each complete run, their mean (least … most); difference: paired, mean [95 % interval], t-test (runs). "
        "Runs in which no two steps could be compared have no K̂ and are left out; chosen epoch: mean of the runs"
    )
    drawn = "Stochastic Lipschitz constant K̂ of LI-GCN at the chosen epoch against the mask rate β"
    picture = Picture(found.study, drawn, figures.contraction({s: own for s, own in panels.items() if own}))
    said = (_verdict(list(lines), measured, solve, grid) for solve in SOLVES)
    return [*said, picture, Table(caption, header, rows)]


def _lines(found: Found) -> dict[str, list[Record]]:
    """The records of each line, planned ones without records included: a dataset, with its setting if there are more.

    A row is named by its setting, then by its mask rate.
    """
    planned = [run.cell for run in found.planned.values()] or [(row["row"], row["dataset"]) for row in found.good]
    settings = {row: row.partition("β")[0].rstrip(" (,") for row, _ in planned}
    several = len(set(settings.values())) > 1
    names = {(row, dataset): f"{dataset}, {settings[row]}" if several else dataset for row, dataset in planned}
    lines: dict[str, list[Record]] = {name: [] for name in names.values()}
    for record in found.good:
        lines[names[record["row"], record["dataset"]]].append(record)
    return lines


def _line(own: Measured) -> tuple[str, ...]:
    ends = (own.grid[0], own.grid[-1])
    values = [mean_and_deviation(own.series[rate]) if rate in own.series else "" for rate in ends]
    epochs = " → ".join(f"{mean(own.epochs[rate]):.0f}" if rate in own.epochs else "?" for rate in ends)
    missing = f"{own.missing} of {sum(len(run) for run in own.values.values())}"
    if not own.whole:
        incomplete = f"incomplete ({len(own.epochs)} of {len(own.grid)} mask rates)"
        return ("0", incomplete, *values, "incomplete", missing, epochs)
    ranks = own.ranks
    spread = f" ({min(ranks):+.2f} … {max(ranks):+.2f})" if len(ranks) > 1 else ""
    rank = f"{mean(ranks):+.2f}{spread}" if ranks else "not measured"
    fall = "not measured" if own.fall is None else f"{own.fall} ({own.fall.count})"
    return (str(len(own.whole)), rank, *values, fall, missing, epochs)


def _verdict(
    names: Sequence[str], measured: Mapping[tuple[str, str], Measured], solve: str, grid: tuple[float, ...]
) -> str:
    own = {name: values for (name, there), values in measured.items() if there == solve and values.ranks}
    partial = [name for name in names if name not in own]
    wrong = [name for name, values in own.items() if mean(values.ranks) >= 0]
    falls = {name: values.fall.mean for name, values in own.items() if values.fall is not None}
    higher = [name for name, fall in falls.items() if fall >= 0]
    said = [
        f"{solve.capitalize()} solve: the mean rank correlation of K̂ with β is negative on {len(own) - len(wrong)} of "
        f"{len(own)} lines with complete runs{_but(wrong)}, and K̂({grid[-1]}) < K̂({grid[0]}) on "
        f"{len(falls) - len(higher)} of {len(falls)} where both were measured{_but(higher)}."
    ]
    return " ".join(said + ([f"Incomplete: {'; '.join(partial)}."] if partial else []))


def _but(names: Sequence[str]) -> str:
    return f" (not on {'; '.join(names)})" if names else ""
