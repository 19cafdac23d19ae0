"""The paper's Table 2: scores and paired gains beside the published ones, and the cost of the runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import mean

from lignn.evaluation.page import Block, Picture, Table
from lignn.evaluation.summary import Difference, mean_and_deviation, paired
from lignn.runs.records import Cells, scores
from lignn.studies import figures, published
from lignn.studies.results import Results


def view(results: Results) -> list[Block]:
    """Return tables and pictures of scores and gains, and which published gains the records show."""
    cells = scores(results.records)
    panels = {}
    for dataset in results.datasets:
        panel = {row: list(cells.get((row, dataset), {}).values()) for row in results.rows}
        if any(panel.values()):
            rows = [row for row in results.rows if panel[row] or published.reading_of(row) == row]
            known = {row: (panel[row], _paper(results, row, dataset)) for row in rows}
            panels[dataset] = {row: both for row, both in known.items() if any(both)}
    blocks: list[Block] = [_score_table(results, cells)]
    if panels:
        drawn = [row for row in results.rows if any(row in panel for panel in panels.values())]
        caption = "Test F1-micro, mean and standard deviation over runs, beside the paper's"
        blocks.append(Picture(results.study, caption, figures.accuracy(drawn, panels)))
    gains = _gains(results, cells)
    blocks += [*_best(results, cells, gains), *_verdicts(gains), _gain_table(results, gains)]
    if shown := _drawn(results, gains):
        caption = "Paired gains over the backbone, mean and 95 % interval, beside the paper's gain"
        blocks.append(Picture(f"{results.study}_gains", caption, figures.differences(shown)))
    return [*blocks, _cost_table(results)]


def _paper(results: Results, row: str, dataset: str) -> tuple[float, float] | None:
    return published.accuracy(results.study, published.reading_of(row), dataset)


def _whose(row: str) -> str:
    """Return the name of the published number; another reading of a method has the number of that method."""
    return "paper" if published.reading_of(row) == row else f"paper's {published.reading_of(row)}:"


def _by_dataset(results: Results, caption: str, rows: Mapping[str, str], cell: Callable[[str, str], str]) -> Table:
    """Return a table with one column for each dataset; `rows` has the titles of the rows."""
    lines = [(title, *(cell(row, dataset) for dataset in results.datasets)) for row, title in rows.items()]
    return Table(caption, ("", *results.datasets), lines)


def _score_table(results: Results, cells: Cells) -> Table:
    def cell(row: str, dataset: str) -> str:
        values = cells.get((row, dataset))
        absence = results.absence(row, dataset)
        known = _paper(results, row, dataset) if values or absence else None
        paper = "" if known is None else f"\n{_whose(row)} {known[0]:.2f} ± {known[1]:.2f}"
        if not values:
            return absence + paper
        outside = known is not None and abs(mean(values.values()) - known[0]) > known[1]
        return f"{mean_and_deviation(values.values())} ({len(values)}){' †' if outside else ''}{paper}"

    caption = (
        "Test F1-micro (%) at the best validation epoch: mean ± sample standard deviation (runs). "
        "†: further from the paper's mean than its standard deviation"
    )
    return _by_dataset(results, caption, {row: row for row in results.rows}, cell)


Gains = dict[tuple[str, str], tuple[str, Difference | None, float | None]]
"""By row and dataset: the row compared with, the paired gain, and the gain in the paper."""


def _gains(results: Results, cells: Cells) -> Gains:
    bases = {record["row"]: record["against"] for record in results.records if record.get("against")}
    gains: Gains = {}
    for row, base in ((row, bases[row]) for row in results.rows if row in bases):
        for dataset in results.datasets:
            ours, theirs = (_paper(results, name, dataset) for name in (row, base))
            gain = paired(cells.get((row, dataset), {}), cells.get((base, dataset), {}))
            paper = None if ours is None or theirs is None else ours[0] - theirs[0]
            if gain is not None or results.absence(row, dataset):
                gains[row, dataset] = (base, gain, paper)
    return gains


def _gain_table(results: Results, gains: Gains) -> Table:
    def cell(row: str, dataset: str) -> str:
        _, gain, paper = gains.get((row, dataset), ("", None, None))
        outside = gain is not None and paper is not None and gain.excludes(paper)
        lines = [] if gain is None else [f"{gain} ({gain.count}){' ‡' if outside else ''}"]
        lines += [] if paper is None else [f"{_whose(row)} {paper:+.2f}"]
        return "\n".join(lines)

    caption = (
        "Gains in points of F1-micro over the same splits and seeds: mean [95 % interval], paired t-test (pairs). "
        "‡: the paper's gain lies outside the interval"
    )
    return _by_dataset(results, caption, {row: f"{row} − {base}" for (row, _), (base, _, _) in gains.items()}, cell)


def _best(results: Results, cells: Cells, gains: Gains) -> list[Block]:
    """Count how often LI-GNN has the highest mean of all rows on one backbone, here and in the paper."""
    groups: dict[tuple[str, str], list[str]] = {}
    for (row, dataset), (base, _, paper) in gains.items():
        if published.reading_of(row) == row and paper is not None:
            groups.setdefault((base, dataset), []).append(row)
    here: list[str] = []
    whole = there = 0
    for (base, dataset), rows in groups.items():
        seeds = set.intersection(*(set(cells.get((row, dataset), {})) for row in rows))
        if len(rows) == 1 or len(seeds) < 2:  # a mean of one run says little
            continue
        best = max(rows, key=lambda row: mean(cells[row, dataset][seed] for seed in seeds))
        theirs = max(rows, key=lambda row: (_paper(results, row, dataset) or (0.0,))[0])
        whole += 1
        here += [f"{base} on {dataset}"] if best.startswith("LI-") else []
        there += theirs.startswith("LI-")
    if not whole:
        return []
    named = f" ({', '.join(here)})" if here else ""
    return [
        f"Of {whole} pairs of backbone and graph, LI-GNN has the highest mean of all label methods, over the runs that "
        f"all have, in {len(here)}{named}; in the paper in {there} of the same."
    ]


def _verdicts(gains: Gains) -> list[Block]:
    """Sort the published gains by whether the records show them; rows of another reading are not published."""
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


def _drawn(results: Results, gains: Gains) -> dict[str, list[figures.Bar]]:
    panels: dict[str, list[figures.Bar]] = {dataset: [] for dataset in results.datasets}
    for (row, dataset), (base, gain, paper) in gains.items():
        if gain is not None:
            panels[dataset].append(figures.Bar(row, base, gain, paper))
    return {dataset: bars for dataset, bars in panels.items() if bars}


def _cost_table(results: Results) -> Table:
    runs = results.good_by_cell

    def cell(row: str, dataset: str) -> str:
        own = runs.get((row, dataset), [])
        if not own:
            return ""
        # Wall time is not shown because it depends on what else the machine did.
        seconds = [record["processor_seconds"] for record in own if "processor_seconds" in record]
        epochs = f"{mean(record['epochs'] for record in own):.0f} epochs"
        return f"{mean(seconds):.1f} s\n{epochs}" if seconds else epochs

    there = {row for row, _ in runs}
    caption = "Mean epochs of a run, and its processor time where it was recorded"
    return _by_dataset(results, caption, {row: row for row in results.rows if row in there}, cell)
