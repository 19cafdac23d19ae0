"""The paper's Figure 2: the stochastic Lipschitz constant K̂ against the mask rate β."""

from __future__ import annotations

from lignn.experiments import figures
from lignn.experiments.found import NOT_RUN, Found
from lignn.experiments.page import Block, Picture, Table
from lignn.experiments.summary import mean_and_deviation


def view(found: Found) -> list[Block]:
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
