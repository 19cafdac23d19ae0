"""Drawings of the paper's figures from plain numbers."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lignn.evaluation.page import COLOURS, MARKS
from lignn.evaluation.summary import Difference, deviation
from lignn.graph.pictures import draw_transitions

OURS = "LI-GCN"
_PLACES = {
    "LI-GCN": 6,
    "Label Reuse": 0,
    "Label Input": 2,
    "C&S": 4,
    "MLP + C&S": 4,
    "GCN": 5,
    "SGC": 5,
    "GAT": 3,
    "MLP": 3,
    "IGNN*": 7,
    "EIGNN": 1,
}
"""Number of the colour and mark of each method; no two methods of one figure share a number."""
DASHES: tuple[object, ...] = ("-", (0, (4, 2)), (0, (1, 1.5)))
FILLS = ("full", "none", "left")
"""Fills of marks; variants of one method differ in dashes and fills."""

Series = Mapping[float, Sequence[float]]
"""Values of several runs by their place on the x axis."""


def transitions(matrices: Mapping[str, tuple[Sequence[Sequence[float]], Sequence[str]]]) -> Figure:
    """Draw one matrix for each dataset; a matrix comes with the names of its classes."""
    figure = Figure(figsize=(2.8 * len(matrices) + 0.8, 3.4), layout="constrained")
    panels = figure.subplots(1, len(matrices), squeeze=False)[0]
    for axes, (dataset, (matrix, names)) in zip(panels, matrices.items(), strict=True):
        image = draw_transitions(axes, matrix, names, fontsize=7)
        axes.set_title(dataset)
    for axes in panels[1:]:
        axes.set_ylabel("")
    figure.colorbar(image, ax=list(panels), label="P(j | i, edge) (%)", shrink=0.8)
    return figure


def contraction(panels: Mapping[str, Mapping[str, Series]]) -> Figure:
    """Draw K̂ against the mask rate, with one panel for each solve and one line for each dataset or setting."""
    figure = Figure(figsize=(4.6 * len(panels), 4.2), layout="constrained")
    for axes, (solve, lines) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True):
        for number, (dataset, series) in enumerate(lines.items()):
            # Lines are shifted a little, so that no bar covers another.
            line(axes, series, dataset, number, 0.008 * (number - (len(lines) - 1) / 2))
        axes.axhline(1, color="grey", linewidth=0.8, linestyle="--")
        axes.set_xticks(sorted({rate for series in lines.values() for rate in series}))
        axes.set(title=f"{solve} solve", xlabel="mask rate β", ylabel="K̂ at the chosen epoch (mean ± std)")
        axes.set_ylim(bottom=0)
    _legend_below(figure, figure.axes[0])
    return figure


def lengths(panels: Mapping[str, Mapping[str, Mapping[int, Mapping[Hashable, float]]]]) -> Figure:
    """Draw the mean test score against the length of the chains; variants of a method share its colour.

    Args:
        panels: scores by title of the panel, row, length and seed.
    """
    figure = Figure(figsize=(5.8 * len(panels), 6.2), layout="constrained")
    places = sorted({place for lines in panels.values() for series in lines.values() for place in series})
    for axes, (title, lines) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True):
        variants: dict[str, int] = {}
        for row, series in lines.items():
            number = variants.setdefault(family(row), 0)
            variants[family(row)] += 1
            colour, mark = style(row)
            # A line is interrupted at lengths that were not run.
            means = [mean(series[place].values()) if place in series else math.nan for place in places]
            look: Any = {"color": colour, "marker": mark, "fillstyle": FILLS[number % len(FILLS)]}
            look |= {"linestyle": DASHES[number % len(DASHES)], "linewidth": 2.4 if row == OURS else 1.2}
            axes.plot(places, means, label=row, markersize=6, **look)
        axes.set(title=title, xlabel="length of the chains (nodes)", ylabel="mean test F1-micro (%)", ylim=(0, 102))
        # Each panel has its own legend, which names its own lines only.
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=2, frameon=False)
    return figure


def curves(lines: Mapping[str, Sequence[float]], best: Mapping[str, int], chance: float) -> Figure:
    """Draw the test score of every epoch, with a mark at the best validation epoch.

    Curves that end in the first fifth of the epochs are also drawn in a second panel, enlarged.
    """
    longest = max(map(len, lines.values()))
    early = {row: values for row, values in lines.items() if 5 * len(values) < longest}
    panels = [lines, early] if early else [lines]
    figure = Figure(figsize=(8 + 4 * bool(early), 5.4), layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False, width_ratios=[2.2, 1][: len(panels)])[0]
    for own, shown, title in zip(axes, panels, ("all epochs", "curves that end early, enlarged"), strict=False):
        for row in sorted(shown, key=lambda row: family(row) == OURS):  # ours last, on top
            _curve(own, row, shown[row], best[row])
        own.axhline(chance, color="grey", linewidth=0.8, linestyle="--", label="random guess")
        own.set(title=title, xlabel="epoch", ylabel="test F1-micro (%)")
    axes[0].set_ylim(bottom=0)
    _legend_below(figure, axes[0])
    return figure


def _curve(axes: Axes, row: str, values: Sequence[float], best: int) -> None:
    colour, mark = style(row)
    ours = family(row) == OURS
    epochs = range(1, len(values) + 1)
    smooth = [mean(values[max(0, i - 5) : i + 5]) for i in range(len(values))]
    axes.plot(epochs, values, color=colour, linewidth=0.6, alpha=0.3)
    axes.plot(epochs, smooth, color=colour, linewidth=2.4 if ours else 1.3)
    size = 11 if mark == "*" else 8
    # The mark is at the score itself, not at the running mean.
    chosen: Any = {"marker": mark, "markersize": size, "markeredgecolor": "white"}
    axes.plot(best + 1, values[best], color=colour, linewidth=2.4 if ours else 1.3, label=row, zorder=5, **chosen)


def accuracy(
    rows: Sequence[str], cells: Mapping[str, Mapping[str, tuple[Sequence[float], tuple[float, float] | None]]]
) -> Figure:
    """Draw one panel for each dataset: mean and deviation of every row, and below it those of the paper."""
    columns = 2 if len(cells) == 4 else min(3, len(cells))
    height = math.ceil(len(cells) / columns)
    figure = Figure(figsize=(3.4 * columns + 1.2, (0.28 * len(rows) + 1) * height + 0.4), layout="constrained")
    panels = figure.subplots(height, columns, squeeze=False, sharey=True)
    for axes, (dataset, panel) in zip(panels.flat, cells.items(), strict=False):
        for row, (values, published) in panel.items():
            place = rows.index(row)
            if values:
                _point(axes, mean(values), place - 0.14, deviation(values), "here")
            if published is not None:
                _point(axes, published[0], place + 0.14, published[1], "paper", "s", COLOURS[1])
        axes.set(title=dataset, xlabel="test F1-micro (%)\nmean ± std")
        axes.grid(axis="x", linewidth=0.4)
    panels[0, 0].set_yticks(range(len(rows)), rows)
    panels[0, 0].invert_yaxis()
    for spare in panels.flat[len(cells) :]:
        spare.set_visible(False)
    _legend_below(figure, *figure.axes[: len(cells)])
    return figure


@dataclass(frozen=True)
class Bar:
    """Paired difference of a row to its base, and the paper's difference if it reports one."""

    row: str
    base: str
    difference: Difference
    paper: float | None = None


def differences(panels: Mapping[str, Sequence[Bar]]) -> Figure:
    """Draw mean and 95 % interval of paired differences, one panel for each dataset."""
    bases = {bar.base for bars in panels.values() for bar in bars}
    common = f"difference to {next(iter(bases))}" if len(bases) == 1 else "paired difference"
    break_ = "\n" if max(len(bar.row + bar.base) for bars in panels.values() for bar in bars) > 30 else " "

    def label(bar: Bar) -> str:
        return bar.row if len(bases) == 1 else f"{bar.row}{break_}− {bar.base}"

    heights = [0.2 + sum(0.28 + 0.14 * label(bar).count("\n") for bar in bars) for bars in panels.values()]
    figure = Figure(figsize=(7.5, sum(heights) + 0.9 * len(panels) + 0.5), layout="constrained")
    axes = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)[:, 0]
    for own, (dataset, bars) in zip(axes, panels.items(), strict=True):
        own.axvline(0, color="grey", linewidth=0.8, linestyle="--")
        for place, bar in enumerate(bars):
            _bar(own, place, bar)
        own.set_yticks(range(len(bars)), [label(bar) for bar in bars], fontsize=9)
        own.set_ylim(len(bars) - 0.5, -0.5)
        own.set(title=dataset, xlabel=f"{common} in test F1-micro (points)")
        own.grid(axis="x", linewidth=0.4)
    _legend_below(figure, *axes)
    return figure


def _bar(axes: Axes, place: float, bar: Bar) -> None:
    centre, low, high = bar.difference.mean, bar.difference.low, bar.difference.high
    if bar.paper is not None:
        axes.plot(bar.paper, place + 0.15, "s", color=COLOURS[1], label="paper")
        place -= 0.15
    # The interval of two pairs is so wide that all others would be too small to read.
    if bar.difference.count < 3 or low is None or high is None:
        axes.plot(centre, place, "o", color=COLOURS[0], fillstyle="none", label="here, one or two pairs")
    else:
        _point(axes, centre, place, [[centre - low], [high - centre]], "here, 95 % interval")


def _point(axes: Axes, x: float, y: float, spread: Any, label: str, mark: str = "o", colour: str = COLOURS[0]) -> None:
    axes.errorbar(x, y, xerr=spread, fmt=mark, color=colour, capsize=2, label=label)


def family(row: str) -> str:
    """Return the name of a row without the settings in parentheses."""
    return row.partition(" (")[0]


def style(row: str) -> tuple[str, str]:
    """Return colour and mark of a row's method."""
    place = _PLACES.get(family(row), 0)
    return COLOURS[place], MARKS[place]


def line(axes: Axes, series: Series, label: str, number: int, shift: float = 0.0) -> None:
    """Draw means with bars of one standard deviation, moved to the right by `shift`; `number` chooses the style."""
    places = sorted(series)
    means = [mean(series[place]) for place in places]
    deviations = [deviation(series[place]) for place in places]
    style: Any = {"color": COLOURS[number % len(COLOURS)], "marker": MARKS[number % len(MARKS)], "label": label}
    beside = [place + shift for place in places]
    axes.errorbar(beside, means, deviations, markersize=5, linewidth=1.3, capsize=2, elinewidth=0.7, **style)


def _legend_below(figure: Figure, *panels: Axes) -> None:
    """Draw one legend for all panels below them."""
    entries = {
        label: handle for axes in panels for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    longest = max(map(len, entries))
    columns = min(len(entries), 5, max(1, int(14 * figure.get_figwidth() / (longest + 7))))
    figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=columns, frameon=False)
