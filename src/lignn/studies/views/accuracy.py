"""Scores beside the published ones, paired gains beside the published gains, and what the runs cost."""

from __future__ import annotations

from collections.abc import Hashable
from statistics import mean

from lignn.evaluation.page import Block, Picture, Table
from lignn.evaluation.summary import Difference, mean_and_deviation, paired
from lignn.studies import figures, published
from lignn.studies.found import Found
from lignn.studies.records import scores

Cells = dict[tuple[str, str], dict[Hashable, float]]
"""Scores by row and dataset, there by seed."""


def view(found: Found) -> list[Block]:
    """Tables and pictures of scores and gains; which published gains the records show."""
    cells = scores(found.records)
    panels = {}
    for dataset in found.datasets:
        panel = {row: list(cells.get((row, dataset), {}).values()) for row in found.rows}
        if any(panel.values()):
            rows = [row for row in found.rows if panel[row] or published.reading_of(row) == row]
            known = {row: (panel[row], _paper(found, row, dataset)) for row in rows}
            panels[dataset] = {row: both for row, both in known.items() if any(both)}
    blocks: list[Block] = [_score_table(found, cells)]
    if panels:
        drawn = [row for row in found.rows if any(row in panel for panel in panels.values())]
        caption = "Test F1-micro, mean and standard deviation over runs, beside the paper's"
        blocks.append(Picture(found.study, caption, figures.accuracy(drawn, panels)))
    gains = _gains(found, cells)
    blocks += [*_best(found, cells, gains), *_verdicts(gains), _gain_table(found, gains)]
    if shown := _drawn(found, gains):
        caption = "Paired gains over the backbone, mean and 95 % interval, beside the paper's gain"
        blocks.append(Picture(f"{found.study}_gains", caption, figures.differences(shown)))
    return [*blocks, _cost_table(found)]


def _paper(found: Found, row: str, dataset: str) -> tuple[float, float] | None:
    return published.accuracy(found.study, published.reading_of(row), dataset)


def _whose(row: str) -> str:
    """A row that reads a published method in another way stands beside that method's number."""
    return "paper" if published.reading_of(row) == row else f"paper's {published.reading_of(row)}:"


def _score_table(found: Found, cells: Cells) -> Table:
    def cell(row: str, dataset: str) -> str:
        values = cells.get((row, dataset))
        absence = found.absence(row, dataset)
        known = _paper(found, row, dataset) if values or absence else None
        paper = "" if known is None else f"\n{_whose(row)} {known[0]:.2f} ± {known[1]:.2f}"
        if not values:
            return absence + paper
        outside = known is not None and abs(mean(values.values()) - known[0]) > known[1]
        return f"{mean_and_deviation(values.values())} ({len(values)}){' †' if outside else ''}{paper}"

    caption = (
        "Test F1-micro (%) at the best validation epoch: mean ± sample standard deviation (runs). "
        "†: further from the paper's mean than its standard deviation"
    )
    rows = [(row, *(cell(row, dataset) for dataset in found.datasets)) for row in found.rows]
    return Table(caption, ("", *found.datasets), rows)


Gains = dict[tuple[str, str], tuple[str, Difference | None, float | None]]
"""By row and dataset: over which row, the paired gain, and the paper's."""


def _gains(found: Found, cells: Cells) -> Gains:
    bases = {record["row"]: record["against"] for record in found.records if record.get("against")}
    gains: Gains = {}
    for row, base in ((row, bases[row]) for row in found.rows if row in bases):
        for dataset in found.datasets:
            ours, theirs = (_paper(found, name, dataset) for name in (row, base))
            gain = paired(cells.get((row, dataset), {}), cells.get((base, dataset), {}))
            paper = None if ours is None or theirs is None else ours[0] - theirs[0]
            if gain is not None or found.absence(row, dataset):
                gains[row, dataset] = (base, gain, paper)
    return gains


def _gain_table(found: Found, gains: Gains) -> Table:
    def cell(row: str, dataset: str) -> str:
        _, gain, paper = gains.get((row, dataset), ("", None, None))
        outside = gain is not None and paper is not None and gain.excludes(paper)
        lines = [] if gain is None else [f"{gain} ({gain.count}){' ‡' if outside else ''}"]
        lines += [] if paper is None else [f"{_whose(row)} {paper:+.2f}"]
        return "\n".join(lines)

    bases = {row: base for (row, _), (base, _, _) in gains.items()}
    rows = [
        (f"{row} − {bases[row]}", *(cell(row, dataset) for dataset in found.datasets))
        for row in found.rows
        if row in bases
    ]
    caption = (
        "Gains in points of F1-micro over the same splits and seeds: mean [95 % interval], paired t-test (pairs). "
        "‡: the paper's gain lies outside the interval"
    )
    return Table(caption, ("", *found.datasets), rows)


def _best(found: Found, cells: Cells, gains: Gains) -> list[Block]:
    """How often LI-GNN has the highest mean of all rows on one backbone, here and in the paper."""
    groups: dict[tuple[str, str], list[str]] = {}
    for (row, dataset), (base, _, paper) in gains.items():
        if published.reading_of(row) == row and paper is not None:
            groups.setdefault((base, dataset), []).append(row)
    here: list[str] = []
    whole = there = 0
    for (base, dataset), rows in groups.items():
        seeds = set.intersection(*(set(cells.get((row, dataset), {})) for row in rows))
        if len(rows) == 1 or len(seeds) < 2:  # one run says nothing of a mean
            continue
        means = {row: mean(cells[row, dataset][seed] for seed in seeds) for row in rows}
        theirs = {row: (_paper(found, row, dataset) or (0.0,))[0] for row in rows}
        whole += 1
        here += [f"{base} on {dataset}"] if max(means, key=means.__getitem__).startswith("LI-") else []
        there += max(theirs, key=theirs.__getitem__).startswith("LI-")
    if not whole:
        return []
    named = f" ({', '.join(here)})" if here else ""
    return [
        f"Of {whole} pairs of backbone and graph, LI-GNN has the highest mean of all label methods, over the runs that "
        f"all have, in {len(here)}{named}; in the paper in {there} of the same."
    ]


def _verdicts(gains: Gains) -> list[Block]:
    """Which of the published gains the records show; rows of another reading are not the paper's."""
    groups: dict[str, list[str]] = {
        "Published gains that these records show (the interval lies above 0)": [],
        "Published gains that these records do not show (the paper's lies above the interval, which reaches 0)": [],
        "Published gains that these records leave open (the interval has both 0 and the paper's gain)": [],
    }
    shown, missed, left_open = groups.values()
    for (row, dataset), (_, gain, paper) in gains.items():
        if gain is None or gain.low is None or gain.high is None or paper is None or paper <= 0:
            continue
        if published.reading_of(row) == row:
            group = shown if gain.low > 0 else missed if gain.high < paper else left_open
            group.append(f"{row} on {dataset} ({gain.mean:+.2f}, paper {paper:+.2f})")
    return [f"{title}: {', '.join(cells)}." for title, cells in groups.items() if cells]


def _drawn(found: Found, gains: Gains) -> dict[str, list[figures.Bar]]:
    panels = {
        dataset: [
            figures.Bar(row, base, gain, paper)
            for (row, there), (base, gain, paper) in gains.items()
            if there == dataset and gain is not None
        ]
        for dataset in found.datasets
    }
    return {dataset: bars for dataset, bars in panels.items() if bars}


def _cost_table(found: Found) -> Table:
    def cell(row: str, dataset: str) -> str:
        own = [record for record in found.good if (record["row"], record["dataset"]) == (row, dataset)]
        if not own:
            return ""
        # Wall time is not shown: it is stretched by whatever else the machine did.
        seconds = [record["processor_seconds"] for record in own if "processor_seconds" in record]
        epochs = f"{mean(record['epochs'] for record in own):.0f} epochs"
        return f"{mean(seconds):.1f} s\n{epochs}" if seconds else epochs

    there = {record["row"] for record in found.good}
    rows = [(row, *(cell(row, dataset) for dataset in found.datasets)) for row in found.rows if row in there]
    return Table("Mean epochs of a run, and its processor time where it was recorded", ("", *found.datasets), rows)
