"""The report of a comparison, one HTML file that needs no other."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path
from statistics import mean

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lignn.atomic import check_file
from lignn.declarations import METHODS
from lignn.errors import InputError
from lignn.evaluation import class_scores, page
from lignn.evaluation.compare import Comparison
from lignn.evaluation.summary import format_duration
from lignn.notebook import BLACK, BLUE, GREEN, GREY, OLIVE, ORANGE, PURPLE, SKY_BLUE, VERMILION

_COLOURS = (GREY, ORANGE, GREEN, PURPLE, VERMILION, BLUE, OLIVE, SKY_BLUE, BLACK)
"""Colours of the rows, in their order; they repeat."""
_CAPTION = "Test score of every run, and validation score of every epoch of the first run"


def check(file: Path) -> None:
    """Raise an error if the report cannot be written to `file`."""
    if file.suffix != ".html":
        raise InputError(f"{file}: the report is an .html file; choose a name that ends in .html")
    check_file(file)


def write(comparison: Comparison, file: Path) -> None:
    """Write the report to `file`."""
    picture = page.Picture("scores", _CAPTION, draw(comparison))
    page.write_html(file, f"Do labels help on {comparison.graph['name']}?", sections(comparison, picture))


def sections(comparison: Comparison, picture: page.Picture) -> list[page.Section]:
    """Return the sections of the report."""
    base = comparison.rows[0].title
    header = ("method", "test", f"against {base}", "time")
    # Interval and p-value have their own lines, so that the table fits on a phone.
    gains = [str(row.difference or "–").replace(" [", "\n[").replace(", p", "\np") for row in comparison.rows]
    both = zip(comparison.rows, gains, strict=True)
    rows = [(row.title, row.score, gain, format_duration(row.seconds)) for row, gain in both]
    table = page.Table(f"Test {comparison.shown.in_tables}, time of a run", header, rows)
    notes = [f"Note: {comparison.note}."] if comparison.note else []
    answer: list[page.Block] = [
        comparison.verdict,
        comparison.winner,
        table,
        _reading(comparison),
        *notes,
        *comparison.reservations,
        picture,
    ]
    return [
        page.Section("Answer", answer),
        *_classes(comparison),
        page.Section("What was compared", _compared(comparison)),
    ]


def _classes(comparison: Comparison) -> list[page.Section]:
    """Return the sections on classes: a table of all methods, and the pictures of the first run of the best method."""
    reports = comparison.reports
    if not reports:
        return []
    caption = "Precision / recall of every class (%), mean over runs; support: nodes of the class"
    both = page.Section("Classes", [page.Table(caption, *class_scores.table_of_methods(reports))])
    of = {row.title: comparison.shown.sign * mean(row.scores) for row in comparison.rows}
    best = max(of, key=lambda title: of[title])
    return [both, class_scores.section(f"{best}, first run", reports[best][0])]


def _reading(comparison: Comparison) -> str:
    """Return the paragraph that explains the numbers."""
    count = len(comparison.rows[0].scores)
    spread = (
        f"Mean ± standard deviation over {count} runs, each with its split and seed; differences are paired, with "
        "95 % intervals and p-values of the t-test. Splits of one graph overlap, so both are a little too sure."
    )
    if count == 1:
        spread = "One run, on one split."
    guess = comparison.guess
    unit = "" if comparison.shown.lower_is_better else " %"
    chance = "" if guess is None else f" Always answering the most frequent label scores {guess:.2f}{unit}."
    return f"{spread}{chance} The epoch is chosen by validation labels; test labels are used for the score only."


def _compared(comparison: Comparison) -> list[str | page.Table | page.Picture]:
    graph, methods = comparison.graph, {one.name: METHODS[one.method] for one in comparison.candidates}
    given = ", ".join(f"{name} = {value}" for name, value in comparison.parameters.items())
    return [
        f"{graph['name']}: {graph['nodes']:,} nodes, {graph['edges']:,} directed edges, {graph['features']:,} "
        f"features, {graph['labelled']:,} labelled nodes in {graph['classes']} classes.",
        *(f"{row.title}: {methods[row.method].summary}." for row in comparison.rows),
        f"Settings that were given: {given or 'none'}; all others are the preset's.",
    ]


def draw(comparison: Comparison) -> Figure:
    """Draw the test scores of all runs, and below them the validation scores of the first run by epoch."""
    # Narrow and tall, so that it fits on a phone.
    figure = Figure(figsize=(5.4, 6.4), layout="constrained")
    upper, lower = figure.subplots(2, 1, height_ratios=(len(comparison.rows), 7))
    _draw_scores(upper, comparison)
    _draw_curves(lower, comparison)
    for axes in (upper, lower):
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def _draw_scores(axes: Axes, comparison: Comparison) -> None:
    rows = comparison.rows
    for place, (row, colour) in enumerate(zip(rows, cycle(_COLOURS), strict=False)):
        centre = mean(row.scores)
        axes.barh(place, centre, color=colour, alpha=0.5, height=0.6)
        axes.scatter(row.scores, [place] * len(row.scores), s=18, color=colour, edgecolor="black", lw=0.6, zorder=3)
        axes.annotate(f"{centre:.1f}", (max(row.scores), place), (6, 0), textcoords="offset points", va="center")
    axes.set_yticks(range(len(rows)), [row.title for row in rows])
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.set(xlim=(0, None), xlabel=f"test {comparison.shown.in_tables}, a dot a run")
    if comparison.guess is not None:
        axes.axvline(comparison.guess, color="black", linestyle=":", linewidth=1)
        axes.set_title(f"dotted: always the most frequent label ({comparison.guess:.1f})", fontsize="medium")


def _draw_curves(axes: Axes, comparison: Comparison) -> None:
    first = min(result.number for result in comparison.results)
    curves = {result.method: result.curve for result in comparison.results if result.number == first}
    for row, colour in zip(comparison.rows, cycle(_COLOURS), strict=False):
        if curve := curves[row.method]:
            epochs = range(1, len(curve) + 1)
            axes.plot(
                epochs,
                [comparison.shown.factor * value for value in curve],
                color=colour,
                label=row.title,
                linewidth=1.4,
            )
    axes.locator_params(axis="x", integer=True)
    axes.set(xlabel="epoch of the first run", ylabel=f"validation {comparison.shown.in_tables}", ylim=(0, None))
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)
