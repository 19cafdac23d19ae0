"""The paper's Figure 3: the test score of every epoch, and which methods collapse in training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import mean

from lignn.evaluation.page import Block, Picture, Table
from lignn.studies import figures, published
from lignn.studies.records import Record
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
        chosen, chosen_epoch: score at the best validation epoch; for C&S, after both phases.
        highest, highest_epoch: highest score of all epochs.
        lowest: lowest score from the highest one on.
        end: mean of the last window.
        epochs: number of epochs.
        top, bottom: the worst fall, from a score to the mean of a later window; None if the score never falls.
        lost: share of the gain over a random guess that was lost in the worst fall.
    """

    chosen: float
    chosen_epoch: int
    highest: float
    highest_epoch: int
    lowest: float
    end: float
    epochs: int
    top: float | None
    bottom: float | None
    lost: float

    @classmethod
    def of(cls, record: Record, chance: float) -> Course:
        """Summarise the curve of a record."""
        curve = [100 * value for value in record["curve"]]
        highest, chosen = max(curve), 100 * record["scores"]["test"]
        lost, top, bottom = max(_falls(curve, chance), default=(0.0, None, None), key=lambda fall: fall[0])
        at = curve.index(highest)
        return cls(
            chosen=chosen,
            chosen_epoch=record["best_epoch"] + 1,
            highest=highest,
            highest_epoch=at + 1,
            lowest=min(curve[at:]),
            end=mean(curve[-WINDOW:]),
            epochs=len(curve),
            top=top,
            bottom=bottom,
            lost=lost,
        )

    def at_chance(self, chance: float) -> bool:
        """Return whether the run is no better than a random guess."""
        return self.chosen <= chance + AT_CHANCE

    @property
    def collapses(self) -> bool:
        """Whether the run lost more than `LOST` of its gain."""
        return self.lost > LOST


def _falls(curve: Sequence[float], chance: float) -> Iterator[tuple[float, float | None, float | None]]:
    """Yield the share of the gain that is lost from the highest score so far to each later window, and both scores."""
    for start, top in enumerate(accumulate(curve, max), 1):
        window = curve[start : start + WINDOW]
        if len(window) == WINDOW and top > chance + AT_CHANCE and mean(window) < top:
            yield (top - mean(window)) / (top - chance), top, mean(window)


def view(results: Results) -> list[Block]:
    """Draw the variant of each method with the best validation score, and list all variants in a table."""
    first = {record["row"]: record for record in sorted(results.good, key=lambda record: -record["seed"])}
    runs = {row: first[row] for row in results.rows if row in first}
    if not runs:
        return [NOT_RUN]
    drawn: dict[str, Record] = {}
    for row, record in runs.items():
        rival = drawn.get(figures.family(row))
        if rival is None or record["scores"]["val"] > rival["scores"]["val"]:
            drawn[figures.family(row)] = record
    lines = {record["row"]: [100 * value for value in record["curve"]] for record in drawn.values()}
    best = {record["row"]: record["best_epoch"] for record in drawn.values()}
    chance = published.chance(results.datasets[0])
    courses = {row: Course.of(record, chance) for row, record in runs.items()}
    caption = (
        "Test F1-micro by epoch, of each method its best variant by validation score: running mean over 10 epochs, "
        "every epoch faint; marks: best validation epoch"
    )
    picture = Picture(results.study, caption, figures.curves(lines, best, chance))
    return [*verdicts(courses, chance), DEFINITION, picture, _table(courses)]


def verdicts(courses: dict[str, Course], chance: float) -> list[str]:
    """Return which method is best at the end, and one sentence for each method."""
    last = sorted(courses, key=lambda row: -courses[row].end)
    ends = f"Mean of the last {WINDOW} epochs: {last[0]} is at the top with {courses[last[0]].end:.2f} %"
    rival = next((row for row in last if figures.family(row) != figures.family(last[0])), None)
    said = [ends + (f", then {rival} with {courses[rival].end:.2f} %." if rival else ".")]
    families = dict.fromkeys(figures.family(row) for row in courses)
    return said + [
        _verdict(own, {row: courses[row] for row in courses if figures.family(row) == own}, chance) for own in families
    ]


def _verdict(family: str, courses: dict[str, Course], chance: float) -> str:
    chosen = max(course.chosen for course in courses.values())
    if all(course.at_chance(chance) for course in courses.values()):
        return f"{family}: no better than a random guess ({chance:.2f} %), at most {chosen:.2f} %{_of(courses)}."
    fallen = [row for row, course in courses.items() if course.collapses]
    if not fallen:
        ends = ", ".join(f"{course.highest:.2f} → {course.end:.2f} %" for course in courses.values())
        return f"{family}: does not collapse{_of(courses)}; highest → last {WINDOW} epochs: {ends}."
    falls = "; ".join(f"{row}: {courses[row].top:.2f} → {courses[row].bottom:.2f} %" for row in fallen)
    return f"{family}: {len(fallen)} of {len(courses)} variants collapse ({falls})."


def _of(courses: dict[str, Course]) -> str:
    return f", all {len(courses)} variants" if len(courses) > 1 else ""


def _table(courses: dict[str, Course]) -> Table:
    rows = [
        (
            row,
            f"{course.chosen:.2f} ({course.chosen_epoch})",
            f"{course.highest:.2f} ({course.highest_epoch})",
            f"{course.lowest:.2f}",
            f"{course.end:.2f}",
            "none" if course.top is None else f"{course.top:.2f} → {course.bottom:.2f}",
            f"{100 * course.lost:.0f} %" + (", collapses" if course.collapses else ""),
            str(course.epochs),
        )
        for row, course in courses.items()
    ]
    header = (
        "",
        "at the best validation epoch (epoch)",
        "highest (epoch)",
        "lowest after it",
        f"mean of the last {WINDOW} epochs",
        f"worst fall, to the mean of {WINDOW} epochs",
        "of the gain it lost",
        "epochs",
    )
    return Table("Test F1-micro (%) of one run; C&S: after both phases, its curve is that of its base", header, rows)
