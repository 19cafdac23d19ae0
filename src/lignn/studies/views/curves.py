"""The paper's Figure 3: the test score of every epoch, and which methods collapse in training."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import mean

from lignn.evaluation.page import Block, Picture, Table
from lignn.runs.records import Record
from lignn.studies import figures, published
from lignn.studies.results import NOT_RUN, Results

WINDOW = 50
"""Number of epochs over which a score is averaged."""
AT_CHANCE = 2.0
"""A score that is at most so many points above a random guess is no better than it."""
LOST = 1 / 3
"""A run that loses more than this share of its gain over a random guess has collapsed."""

DEFINITION = (
    f"Collapse: some epoch's score is followed, at once or later, by {WINDOW} epochs whose mean has lost more than a "
    "third of what that score had gained over a random guess. No better than a random guess: at most "
    f"{AT_CHANCE:.0f} points above it at the best validation epoch. Training stops when the validation score has not "
    "risen for the patience of the study, so that little may follow a fall."
)


@dataclass(frozen=True)
class Course:
    """Summary of the test scores of one run, in percent; epochs count from 1.

    Attributes:
        curve: score of every epoch.
        chosen, chosen_epoch: score at the best validation epoch; for C&S, after both phases.
        lost: share of the gain over a random guess that was lost in the worst fall.
        top, bottom: the worst fall, from a score to the mean of a later window; None if the score never falls.
    """

    curve: Sequence[float]
    chosen: float
    chosen_epoch: int
    lost: float
    top: float | None
    bottom: float | None

    @classmethod
    def of(cls, record: Record, chance: float) -> Course:
        """Summarise the curve of a record."""
        curve = [100 * value for value in record["curve"]]
        worst = max(_falls(curve, chance), default=(0.0, None, None), key=lambda fall: fall[0])
        return cls(curve, 100 * record["scores"]["test"], record["best_epoch"] + 1, *worst)

    @property
    def highest(self) -> float:
        """Highest score of all epochs."""
        return max(self.curve)

    @property
    def highest_epoch(self) -> int:
        """Epoch of the highest score."""
        return self.curve.index(self.highest) + 1

    @property
    def lowest(self) -> float:
        """Lowest score from the highest one on."""
        return min(self.curve[self.highest_epoch - 1 :])

    @property
    def end(self) -> float:
        """Mean of the last window."""
        return mean(self.curve[-WINDOW:])

    @property
    def collapses(self) -> bool:
        """Whether the run lost more than `LOST` of its gain."""
        return self.lost > LOST

    def at_chance(self, chance: float) -> bool:
        """Return whether the run is no better than a random guess."""
        return self.chosen <= chance + AT_CHANCE


COLUMNS: dict[str, Callable[[Course], str]] = {
    "at the best validation epoch (epoch)": lambda run: f"{run.chosen:.2f} ({run.chosen_epoch})",
    "highest (epoch)": lambda run: f"{run.highest:.2f} ({run.highest_epoch})",
    "lowest after it": lambda run: f"{run.lowest:.2f}",
    f"mean of the last {WINDOW} epochs": lambda run: f"{run.end:.2f}",
    f"worst fall, to the mean of {WINDOW} epochs": lambda run: "none" if run.top is None else _fall(run),
    "of the gain it lost": lambda run: f"{100 * run.lost:.0f} %" + (", collapses" if run.collapses else ""),
    "epochs": lambda run: str(len(run.curve)),
}
"""Columns of the table of all runs."""


def _fall(run: Course) -> str:
    return f"{run.top:.2f} → {run.bottom:.2f}"


def _falls(curve: Sequence[float], chance: float) -> Iterator[tuple[float, float | None, float | None]]:
    """Yield the share of the gain that is lost from the highest score so far to each later window, and both scores."""
    for start, top in enumerate(accumulate(curve, max), 1):
        window = curve[start : start + WINDOW]
        if len(window) == WINDOW and top > chance + AT_CHANCE and mean(window) < top:
            yield (top - mean(window)) / (top - chance), top, mean(window)


def _by_family(rows: Iterable[str]) -> dict[str, list[str]]:
    """Return the variants of each method."""
    families: dict[str, list[str]] = {}
    for row in rows:
        families.setdefault(figures.family(row), []).append(row)
    return families


def view(results: Results) -> list[Block]:
    """Draw the variant of each method with the best validation score, and list all variants in a table."""
    first = {record["row"]: record for record in sorted(results.good, key=lambda record: -record["seed"])}
    runs = {row: first[row] for row in results.rows if row in first}
    if not runs:
        return [NOT_RUN]
    chance = published.chance(results.datasets[0])
    courses = {row: Course.of(record, chance) for row, record in runs.items()}
    drawn = [max(rows, key=lambda row: runs[row]["scores"]["val"]) for rows in _by_family(runs).values()]
    lines = {row: courses[row].curve for row in drawn}
    best = {row: runs[row]["best_epoch"] for row in drawn}
    caption = (
        "Test F1-micro by epoch, of each method its best variant by validation score: running mean over 10 epochs, "
        "every epoch faint; marks: best validation epoch"
    )
    picture = Picture(results.study, caption, figures.curves(lines, best, chance))
    rows = [(row, *(write(course) for write in COLUMNS.values())) for row, course in courses.items()]
    told = "Test F1-micro (%) of one run; C&S: after both phases, its curve is that of its base"
    return [*verdicts(courses, chance), DEFINITION, picture, Table(told, ("", *COLUMNS), rows)]


def verdicts(courses: dict[str, Course], chance: float) -> list[str]:
    """Return which method is best at the end, and one sentence for each method."""
    last = sorted(courses, key=lambda row: -courses[row].end)
    ends = f"Mean of the last {WINDOW} epochs: {last[0]} is at the top with {courses[last[0]].end:.2f} %"
    rival = next((row for row in last if figures.family(row) != figures.family(last[0])), None)
    said = [ends + (f", then {rival} with {courses[rival].end:.2f} %." if rival else ".")]
    families = {own: {row: courses[row] for row in rows} for own, rows in _by_family(courses).items()}
    return said + [_verdict(own, variants, chance) for own, variants in families.items()]


def _verdict(family: str, courses: dict[str, Course], chance: float) -> str:
    chosen = max(course.chosen for course in courses.values())
    if all(course.at_chance(chance) for course in courses.values()):
        return f"{family}: no better than a random guess ({chance:.2f} %), at most {chosen:.2f} %{_of(courses)}."
    fallen = [row for row, course in courses.items() if course.collapses]
    if not fallen:
        ends = ", ".join(f"{course.highest:.2f} → {course.end:.2f} %" for course in courses.values())
        return f"{family}: does not collapse{_of(courses)}; highest → last {WINDOW} epochs: {ends}."
    falls = "; ".join(f"{row}: {_fall(courses[row])} %" for row in fallen)
    return f"{family}: {len(fallen)} of {len(courses)} variants collapse ({falls})."


def _of(courses: dict[str, Course]) -> str:
    return f", all {len(courses)} variants" if len(courses) > 1 else ""
