"""Scores by class on a report page: a table, the confusion matrix, reliability, and precision against recall."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lignn.classifier import Report
from lignn.classifier.report import ClassScore
from lignn.evaluation import page
from lignn.evaluation.page import COLOURS
from lignn.notebook import BLUE, GREY

_CLASSES = 20
"""Number of classes of tables and of the confusion matrix; of more, the rarest are shown."""
_SIZE = 5.4
"""Width of the pictures, which fit on a phone."""
_HEADER = ("class", "precision", "recall", "support")


def write(file: Path, title: str, facts: Sequence[str], reports: Mapping[str, Report]) -> None:
    """Write the page of one classifier.

    Args:
        file: the HTML file.
        title: title of the page.
        facts: paragraphs above the scores.
        reports: reports by what they are about, e.g. "test nodes".
    """
    sections = [page.Section("Summary", [*facts, *(f"{name}: {one.headline}." for name, one in reports.items())])]
    page.write_html(file, title, [*sections, *(section(name, one) for name, one in reports.items())])


def section(title: str, report: Report) -> page.Section:
    """Return the section of one report."""
    slug = "".join(sign if sign.isalnum() else "-" for sign in title)
    rows = [(one.name, f"{one.precision:.3f}", f"{one.recall:.3f}", str(one.support)) for one in _rarest(report)]
    blocks: list[page.Block] = [
        *([report.basis] if report.basis else []),
        *([f"Note: {report.note}."] if report.note else []),
        page.Table(
            f"{title}: every class" if len(rows) == len(report.classes) else f"{title}: the rarest classes",
            _HEADER,
            rows,
        ),
    ]
    drawings = {
        "confusion": ("Confusion matrix: number of nodes by true and predicted class", draw_confusion(report)),
        "reliability": (
            "Reliability: share of right predictions by confidence; on the dotted line, both are the same",
            draw_reliability(report),
        ),
        "curves": ("Precision against recall as the threshold of a class's probability varies", draw_curves(report)),
    }
    for name, (caption, figure) in drawings.items():
        if figure is not None:
            blocks.append(page.Picture(f"{slug}-{name}", f"{title}. {caption}", figure))
    return page.Section(title, blocks)


def table_of_methods(
    reports: Mapping[str, Sequence[Report]],
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return header and rows of precision and recall in percent by class and method, means over runs."""
    first = next(iter(reports.values()))[0]
    rows = []
    for place in [first.classes.index(one) for one in _rarest(first)]:
        cells = []
        for runs in reports.values():
            scores = [report.classes[place] for report in runs]
            cells.append(f"{100 * mean(s.precision for s in scores):.1f} / {100 * mean(s.recall for s in scores):.1f}")
        support = mean(report.classes[place].support for report in next(iter(reports.values())))
        rows.append((first.classes[place].name, f"{support:g}", *cells))
    return ("class", "support", *reports), rows


def draw_confusion(report: Report) -> Figure | None:
    """Draw the confusion matrix; colours are shares of a true class. None for multi-label tasks."""
    if report.confusion is None:
        return None
    chosen = [report.classes.index(one) for one in _rarest(report)]
    counts = report.confusion[np.ix_(chosen, chosen)]
    names = [report.classes[c].name for c in chosen]
    side = min(_SIZE, 2.2 + 0.5 * len(names))
    figure = Figure(figsize=(max(side, 3.4), side), layout="constrained")
    axes: Axes = figure.subplots()
    total = np.array([max(report.classes[c].support, 1) for c in chosen])
    axes.imshow(counts / total[:, None], cmap="Blues", vmin=0, vmax=1)
    axes.set_xticks(range(len(names)), names, rotation=45 if len(names) > 3 else 0, ha="center")
    axes.set_yticks(range(len(names)), names)
    axes.set(xlabel="predicted", ylabel="true")
    if len(names) <= 12:
        for (row, column), count in np.ndenumerate(counts):
            colour = "white" if count > 0.5 * total[row] else "black"
            axes.text(column, row, f"{count}", ha="center", va="center", color=colour, fontsize="small")
    return figure


def draw_reliability(report: Report) -> Figure:
    """Draw the share of right predictions against confidence."""
    figure, axes = _axes("mean confidence in the predicted class", "share of right predictions")
    axes.plot([0, 1], [0, 1], color=GREY, linestyle=":", linewidth=1)
    axes.plot(*report.reliability, color=BLUE, marker="o")
    return figure


def draw_curves(report: Report) -> Figure | None:
    """Draw precision against recall of the rarest classes; None if no class has such a curve."""
    if not report.curves:
        return None
    figure, axes = _axes("recall", "precision")
    for (name, curve), colour in zip(report.curves.items(), COLOURS, strict=False):
        axes.step(*curve, where="post", color=colour, label=name, linewidth=1.4)
    axes.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=min(4, len(report.curves)))
    return figure


def _axes(x: str, y: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(_SIZE, 3.6), layout="constrained")
    axes: Axes = figure.subplots()
    axes.set(xlabel=x, ylabel=y, xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _rarest(report: Report) -> list[ClassScore]:
    """Return the scores of all classes in order; of many, only of the rarest that there are."""
    shown = report.classes
    if len(shown) > _CLASSES:
        rare = sorted((one for one in shown if one.support), key=lambda one: one.support)[:_CLASSES]
        shown = tuple(one for one in shown if one in rare)
    return list(shown)
