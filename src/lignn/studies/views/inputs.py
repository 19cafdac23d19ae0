"""Rows that differ in one setting: scores by the metric of each dataset, gains over another row and over the first."""

from __future__ import annotations

from lignn.declarations import DEFAULT_METRIC, METRICS
from lignn.evaluation.page import Block, Table
from lignn.evaluation.summary import mean_and_deviation, paired
from lignn.studies.records import Record
from lignn.studies.results import NOT_RUN, Results

HEADER = ("", "dataset", "runs", "metric", "score", "gain", "gain over the first row", "s a run")
CAPTION = (
    "Test score (%), mean ± sample standard deviation; gains over the same splits and seeds: mean [95 % interval], "
    "paired t-test. The first row is that of the same classifier. Processor seconds: mean"
)
_RANKS = ("roc_auc", "average_precision")


def view(results: Results) -> list[Block]:
    """Return a table of scores and gains for each dataset."""
    cells = results.good_by_cell
    lines = []
    for dataset in results.datasets:
        rows = [row for row in results.rows if (row, dataset) in cells]
        for row in rows:
            own = cells[row, dataset]
            base = own[0]["config"]["method"].get("base")
            first = next(each for each in rows if cells[each, dataset][0]["config"]["method"].get("base") == base)
            for metric in metrics_of(own[0]):
                ours = scores(own, metric)
                others = [scores(cells.get((name, dataset), []), metric) for name in (own[0]["against"], first)]
                gains = [paired(ours, each) for each in others]
                told = ["" if gain is None else str(gain) for gain in gains]
                shown = f"{told[0]}\nover {own[0]['against']}" if told[0] else ""
                first_gain = "" if first == row else told[1]
                seconds = sum(record["processor_seconds"] for record in own) / len(own)
                score, title = mean_and_deviation(ours.values()), METRICS[metric].title
                lines.append((row, dataset, str(len(ours)), title, score, shown, first_gain, f"{seconds:.1f}"))
    return [Table(CAPTION, HEADER, lines)] if lines else [NOT_RUN]


def metrics_of(record: Record) -> tuple[str, ...]:
    """Return the metrics that are shown: ranks where the run was chosen by one."""
    chosen = record["config"]["training"].get("metric", DEFAULT_METRIC)
    return _RANKS if chosen in _RANKS else (chosen,)


def scores(records: list[Record], metric: str) -> dict[int, float]:
    """Return scores in percent by seed."""
    return {record["seed"]: 100 * record["scores"][metric] for record in records}
