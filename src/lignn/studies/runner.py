"""The runner of studies: it runs what has no record yet, and records it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lignn.errors import DatasetError
from lignn.runs import experiment, records
from lignn.runs.records import FAILED, OK, UNAVAILABLE, Record
from lignn.studies.case import StudyCase
from lignn.studies.study import Study

Report = Callable[[Record], None]
"""Called with each new record."""


@dataclass(frozen=True)
class Agenda:
    """The runs of a study, by whether they have a record.

    Attributes:
        file: the file of the records.
        todo: runs without a record.
        done: records of planned runs, also of those that failed.
    """

    file: Path
    todo: list[StudyCase]
    done: list[Record]


def agenda(
    study: Study, folder: Path, runs: int | None = None, only: Sequence[str] = (), retry: bool = False
) -> Agenda:
    """Return what is done and what is to do; with `retry`, failed runs are done again."""
    planned = study.plan(runs, only)
    file = records.file_of(folder, study.name)
    there = {record["id"]: record for record in records.read(file) if not (retry and record["status"] == FAILED)}
    todo = [run for run in planned if run.id not in there]
    return Agenda(file, todo, [there[run.id] for run in planned if run.id in there])


def execute(work: Agenda, jobs: int = 1, report: Report = lambda _: None, on: str | None = None) -> list[Record]:
    """Run what is to do, append a record for each run, and return the new records.

    Meanwhile no other process can append to the file.

    Args:
        work: what is to do.
        jobs: number of processes.
        report: called with each new record.
        on: address of the Ray cluster to run on; None: this machine.
    """
    if not work.todo:
        return []
    new: list[Record] = []

    def tell(record: Record) -> None:
        new.append(record)
        report(record)

    with records.appending(work.file) as there:
        todo = [run for run in work.todo if there.get(run.id) != OK]  # another process may have run it
        missing = unavailable(run.graph for run in todo)
        absent = list(dict.fromkeys(run.dataset for run in todo if run.graph in missing))
        for dataset in absent:
            study = todo[0].study
            record = {"id": f"{study}/{dataset}", "study": study, "dataset": dataset, "status": UNAVAILABLE}
            if record["id"] not in there:
                records.append(work.file, record)
            tell(record)
        present = [run for run in todo if run.dataset not in absent]
        kept = records.Recording(work.file, there)
        with closing(experiment.run(_perform, [present], kept, jobs, on=on, isolated=True)) as done:
            for _ in done:
                tell(kept.new[-1])
    return new


def is_here(dataset: str) -> bool:
    """Return whether a dataset needs no download; its file is not read."""
    from lignn.datasets import catalogue, places
    from lignn.studies import graphs

    if dataset in graphs.OWN:
        return graphs.is_here(dataset)
    entry = catalogue.find(dataset)
    return not entry.is_stored or places.find(entry.name) is not None


def unavailable(names: Iterable[str]) -> list[str]:
    """Try to download the datasets that are not here, and return those for which this fails."""
    from lignn.studies import graphs

    absent = []
    for name in dict.fromkeys(names):
        if is_here(name):
            continue
        try:
            graphs.load(name)
        except DatasetError:
            absent.append(name)
    return absent


def _perform(case: StudyCase) -> dict[str, Any]:
    from lignn.studies.run import perform  # here, because a plan needs no torch

    return perform(case)
