"""The records of one study, matched with the runs that it plans, or with older records of the same runs.

A change of rounding, such as a faster kernel, moves single scores either way. It must not move their mean.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

from lignn.declarations import DEFAULT_METRIC, METRICS
from lignn.evaluation.summary import paired
from lignn.runs import records
from lignn.runs.records import OK, UNAVAILABLE, Record
from lignn.studies.case import StudyCase
from lignn.studies.study import Study

NOT_RUN = "not run"
NO_DATA = "not run: data not available here"


@dataclass(frozen=True)
class Results:
    """Results of one study: its records, and the rows and datasets in the order of the study.

    Attributes:
        study: name of the study.
        records: the records that are shown.
        left_out: records of runs that the study does not plan, such as those with settings of an earlier version.
        planned: the planned runs by identity; empty for a study that does not come with the package.
        rows: all rows, also planned ones without records.
        datasets: all datasets, also planned ones without records.
        absent: datasets that were not available.
    """

    study: str
    records: Sequence[Record]
    left_out: Sequence[Record]
    planned: Mapping[str, StudyCase]
    rows: Sequence[str]
    datasets: Sequence[str]
    absent: Collection[str]

    @classmethod
    def of(cls, name: str, records: Sequence[Record], study: Study | None, absent: Collection[str] = ()) -> Results:
        """Match the records of a study with its plan.

        A study that comes with the package shows the records of runs that it plans; the number of runs may be larger
        than planned. A study of the user (`study` is None) shows all records.
        """
        runs = [record for record in records if record["status"] != UNAVAILABLE]
        if study is None:
            rows, datasets = ([record[key] for record in runs] for key in ("row", "dataset"))
            return cls(name, runs, [], {}, list(dict.fromkeys(rows)), list(dict.fromkeys(datasets)), absent)
        most = max([study.runs, *(record["seed"] + 1 for record in runs)])
        known = {run.id: run for run in study.plan(most)}
        # The row may have been renamed since the run was recorded.
        matched = [(record, known.get(record["id"])) for record in runs]
        used = [record | {"row": run.row, "against": run.against} for record, run in matched if run]
        left_out = [record for record, run in matched if not run]
        planned = {identity: run for identity, run in known.items() if run.seed < study.runs}
        return cls(name, used, left_out, planned, study.rows(), study.datasets, absent)

    @property
    def good(self) -> list[Record]:
        """Records of runs that succeeded."""
        return [record for record in self.records if record["status"] == OK]

    @property
    def good_by_cell(self) -> dict[tuple[str, str], list[Record]]:
        """Records of runs that succeeded, by row and dataset."""
        groups: dict[tuple[str, str], list[Record]] = {}
        for record in self.good:
            groups.setdefault((record["row"], record["dataset"]), []).append(record)
        return groups

    @property
    def cells(self) -> dict[tuple[str, str], tuple[int, int]]:
        """Number of runs done and of runs planned, by row and dataset."""
        planned = Counter(run.cell for run in self.planned.values())
        done = Counter(self.planned[record["id"]].cell for record in self.good if record["id"] in self.planned)
        return {cell: (done[cell], count) for cell, count in planned.items()}

    @property
    def metric(self) -> str:
        """Title of the metric of the records."""
        configs = [record.get("config", {}) for record in self.records]
        return METRICS[configs[0].get("metric", DEFAULT_METRIC) if configs else DEFAULT_METRIC].title

    def absence(self, row: str, dataset: str) -> str:
        """Return why a cell has no record; an empty text if the study does not have the cell."""
        if all(run.cell != (row, dataset) for run in self.planned.values()):
            return ""
        return NO_DATA if dataset in self.absent else NOT_RUN


def compared(new: Sequence[Record], old: Sequence[Record]) -> list[dict[str, Any]]:
    """Return one row for each cell, and one for all: how many runs both have, how many are equal, and the difference.

    Args:
        new: records of the runs that were done again.
        old: records of any runs; those of the same config are compared.
    """
    wanted = {record["id"] for record in new}
    ours, base = records.scores(new), records.scores(record for record in old if record["id"] in wanted)
    flat = [{(cell, seed): score for cell in cells for seed, score in cells[cell].items()} for cells in (ours, base)]
    rows = [_row(" / ".join(cell), ours[cell], base.get(cell, {})) for cell in ours]
    return [*rows, _row("all", *flat)] if len(rows) > 1 else rows


def _row(name: str, new: dict[Any, float], old: dict[Any, float]) -> dict[str, Any]:
    both = [(new[key], old[key]) for key in new if key in old]
    row: dict[str, Any] = {"cell": name, "runs": len(both), "equal": sum(ours == theirs for ours, theirs in both)}
    difference = paired(new, old)
    if difference is None:
        return row
    means = {"new": mean(ours for ours, _ in both), "old": mean(theirs for _, theirs in both)}
    return row | means | {"difference": difference.mean, "low": difference.low, "high": difference.high}
