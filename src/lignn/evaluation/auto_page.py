"""The report of `auto`: the leaderboard and what it says of the graph, one HTML file that needs no other."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from lignn.classifier import Report
from lignn.classifier.race.leaderboard import Leaderboard, Row
from lignn.evaluation import class_scores, page
from lignn.notebook import BLUE, GREEN, GREY, ORANGE

_CAPTION = "Cross-validated score of every model with its standard error; the colour tells what it uses"
_COLOURS = {"features": GREY, "labels": ORANGE, "edges": GREEN, "all": BLUE}


def write(board: Leaderboard, graph: str, file: Path, report: Report | None) -> None:
    """Write the report of a search on the graph of this name to `file`; `report` has the model's scores by class."""
    header, rows = board.table()
    caption = f"Models tried, the best first ({board.scored} labels scored those on all folds)"
    chance = f"Always answering the most frequent label scores {board.guess:.2f}."
    reading = "Scores are of labels that a fit was not given. The best of many is a little too optimistic."
    picture = page.Picture("leaderboard", _CAPTION, draw(board))
    blocks: list[page.Block] = [
        *board.lines(),
        *board.findings,
        page.Table(caption, header, rows),
        f"{board.legend} {chance} {reading}",
        *board.remarks,
        picture,
    ]
    sections = [page.Section("What was found", blocks)]
    if report is not None:
        sections.append(class_scores.section("The model, class by class", report))
    page.write_html(file, f"Which model for {graph}?", sections)


def draw(board: Leaderboard) -> Figure:
    """Draw the scores with their errors."""
    rows = [row for row in board.rows if row.score is not None]
    figure = Figure(figsize=(5.4, 1.6 + 0.27 * len(rows)), layout="constrained")
    axes = figure.subplots()
    for place, row in enumerate(rows):
        assert row.score is not None
        axes.errorbar(row.score, place, xerr=row.error, fmt="o", color=_colour(row), capsize=2)
    axes.set_yticks(range(len(rows)), [row.title for row in rows], fontsize="small")
    axes.invert_yaxis()
    axes.axvline(board.guess, color="black", linestyle=":", linewidth=1, label="most frequent label")
    axes.set(xlabel=board.shown.in_tables)
    axes.spines[["top", "right"]].set_visible(False)
    for name, colour in _COLOURS.items():
        words = {"edges": "features, edges", "all": "features, edges, labels"}.get(name, name)
        axes.plot([], [], "o", color=colour, label=words)
    figure.legend(loc="outside upper center", ncols=2, fontsize="small", frameon=False)
    return figure


def _colour(row: Row) -> str:
    return _COLOURS["all" if len(row.uses) == 3 else row.uses[-1]]
