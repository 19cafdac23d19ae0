"""The records of one study, matched with what it plans."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from lignn.studies.records import OK, UNAVAILABLE, Record
from lignn.studies.study import Run, Study

NOT_RUN = "not run"
NO_DATA = "not run: data not available here"


@dataclass(frozen=True)
class Found:
    """The records of one study, and the order in which to show them.

    Attributes:
        study: its name.
        records: those that are used.
        left_out: records of runs that the study no longer plans, such as with settings that it had before.
        planned: the study's runs by their identity; none for a study that is not shipped.
        rows: in the study's order, planned ones without records included.
        datasets: likewise.
        absent: datasets that could not be had.
    """

    study: str
    records: Sequence[Record]
    left_out: Sequence[Record]
    planned: Mapping[str, Run]
    rows: Sequence[str]
    datasets: Sequence[str]
    absent: Collection[str]

    @classmethod
    def of(cls, name: str, records: Sequence[Record], study: Study | None, absent: Collection[str] = ()) -> Found:
        """A shipped study's records are those of runs that it plans, however many; one's own study has all of its."""
        runs = [record for record in records if record["status"] != UNAVAILABLE]
        if study is None:
            rows, datasets = ([record[key] for record in runs] for key in ("row", "dataset"))
            return cls(name, runs, [], {}, list(dict.fromkeys(rows)), list(dict.fromkeys(datasets)), absent)
        most = max([study.runs, *(record["seed"] + 1 for record in runs)])
        known = {run.config.identity: run for run in study.plan(most)}
        # a row may have been renamed since: the run is the same
        used = [
            record | {"row": known[record["id"]].row, "against": known[record["id"]].against}
            for record in runs
            if record["id"] in known
        ]
        left_out = [record for record in runs if record["id"] not in known]
        planned = {identity: run for identity, run in known.items() if run.config.seed < study.runs}
        return cls(name, used, left_out, planned, study.rows(), study.datasets, absent)

    @property
    def good(self) -> list[Record]:
        """Records of runs that succeeded."""
        return [record for record in self.records if record["status"] == OK]

    @property
    def cells(self) -> dict[tuple[str, str], tuple[int, int]]:
        """Runs done and runs planned of every planned row and dataset."""
        done = {record["id"] for record in self.good}
        counts: dict[tuple[str, str], tuple[int, int]] = {}
        for identity, run in self.planned.items():
            there, planned = counts.get(run.cell, (0, 0))
            counts[run.cell] = (there + (identity in done), planned + 1)
        return counts

    def absence(self, row: str, dataset: str) -> str:
        """Why a cell is empty; nothing for a cell that the study does not have."""
        if all(run.cell != (row, dataset) for run in self.planned.values()):
            return ""
        return NO_DATA if dataset in self.absent else NOT_RUN
