"""The page about a graph: what looks wrong, its columns, and pictures of classes, label transitions and degrees."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lignn.classifier.suspects import Suspects
from lignn.evaluation import page
from lignn.evaluation.inspected_columns import HEADER
from lignn.evaluation.inspected_columns import tables as column_tables
from lignn.evaluation.inspection import Inspection
from lignn.graph import pictures
from lignn.notebook import BLUE

SHOWN = 50
"""Columns of a table, and classes, that are shown; `--json` has all."""
_WIDTH = 5.4
"""Width of the pictures, which fit on a phone."""
_LONG = 24
"""Characters of a name beside an axis."""


def write(file: Path, found: Inspection, suspects: Suspects | None = None) -> None:
    """Write the page to an HTML file.

    Args:
        file: the file.
        found: what the graph holds.
        suspects: given labels that predictions contradict, if they were looked for.
    """
    page.write_html(file, f"What is in {found.name}?", sections(found, suspects))


def sections(found: Inspection, suspects: Suspects | None = None) -> list[page.Section]:
    """Return the sections of the page."""
    warnings = [f"Warning: {text}." for text in found.warnings] or ["Nothing looks wrong."]
    notes = [f"Note: {text}." for text in found.notes]
    tables: list[page.Block] = [page.Table(one.title, HEADER, one.rows) for one in column_tables(found.columns, SHOWN)]
    parts = [
        page.Section("Summary", [*warnings, *notes, page.Table("The graph", ("", "number"), found.facts())]),
        page.Section("Columns", tables),
    ]
    if found.known:
        parts.append(page.Section("Labels", _labels(found)))
    parts.append(page.Section("Edges", [page.Picture("degrees", _DEGREES, draw_degrees(found))]))
    return parts if suspects is None else [*parts, _suspects(suspects)]


_DEGREES = "Degree distribution: number of nodes by number of incoming edges, both on a logarithmic scale from 1 on"


def _labels(found: Inspection) -> list[page.Block]:
    more = f", the largest {SHOWN} of {len(found.classes):,}" if len(found.classes) > SHOWN else ""
    caption = f"Known labels by class{more}"
    blocks: list[page.Block] = [
        page.Table(caption, CLASSES, class_rows(found)),
        page.Picture("classes", caption, draw_classes(largest(found))),
    ]
    if found.transitions is not None:
        words = "Label transitions: share of the edges out of a node of label i that end in one of label j, in percent"
        blocks.append(page.Picture("transitions", words, draw_transitions(found)))
    return blocks


CLASSES = ("class", "known labels", "share")


def class_rows(found: Inspection) -> list[tuple[str, str, str]]:
    """Return the rows of a table of classes, below `CLASSES`."""
    return [(name, f"{count:,}", f"{count / found.known:.1%}") for name, count in largest(found).items()]


def largest(found: Inspection) -> dict[str, int]:
    """Return the known labels by class; of many classes, those with most labels, in order."""
    if len(found.classes) <= SHOWN:
        return dict(found.classes)
    return dict(sorted(found.classes.items(), key=lambda item: -item[1])[:SHOWN])


def _suspects(suspects: Suspects) -> page.Section:
    header = ("node", "given", "predicted", "confidence", "doubt")
    rows = [(s.id, s.given, s.predicted, f"{s.confidence:.2f}", f"{s.doubt:.2f}") for s in suspects.found]
    table = page.Table("Given labels that are contradicted most", header, rows)
    return page.Section("Suspects", [f"{suspects.headline}.", *([table] if rows else [])])


def draw_classes(classes: dict[str, int]) -> Figure:
    """Draw the number of known labels of each class as bars."""
    figure, axes = _axes(1.2 + 0.3 * len(classes))
    bars = axes.barh(range(len(classes)), list(classes.values()), color=BLUE)
    axes.bar_label(bars, padding=3)
    axes.set_yticks(range(len(classes)), [_tick(name) for name in classes])
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.set(xlabel="known labels")
    return figure


def draw_transitions(found: Inspection) -> Figure:
    """Draw the label transitions, see `lignn.graph.pictures.draw_transitions`."""
    figure = Figure(figsize=(_WIDTH, _WIDTH - 0.6), layout="constrained")
    axes: Axes = figure.subplots()
    assert found.transitions is not None
    image = pictures.draw_transitions(axes, found.transitions, [_tick(name) for name in found.classes], fontsize=8)
    figure.colorbar(image, ax=axes, label="share of the edges out of label i (%)")
    return figure


def draw_degrees(found: Inspection) -> Figure:
    """Draw the number of nodes by degree, a dot a degree."""
    figure, axes = _axes(3.6)
    axes.scatter(list(found.degree_counts), list(found.degree_counts.values()), s=18, color=BLUE)
    axes.set_xscale("symlog", linthresh=1)  # shows 0 too
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:g}")
    axes.set(xlabel="incoming edges", ylabel="nodes", xlim=(-0.2, None))
    return figure


def _tick(name: str) -> str:
    """Return a name as the label of an axis: short, and not read as a formula."""
    short = name if len(name) <= _LONG else f"{name[: _LONG - 1]}…"
    return short.replace("$", r"\$")


def _axes(height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(_WIDTH, height), layout="constrained")
    axes: Axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes
