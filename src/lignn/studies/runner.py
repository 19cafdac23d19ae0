"""The runner: what of a study is still to do, done and recorded."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from lignn.errors import DatasetError
from lignn.evaluation import workers
from lignn.studies import records
from lignn.studies.records import FAILED, OK, UNAVAILABLE, Record
from lignn.studies.study import Run, Study

Task = TypeVar("Task")

Report = Callable[[Record], None]
"""Called with each new record."""


@dataclass(frozen=True)
class Agenda:
    """A study's runs against the records that are there.

    Attributes:
        file: of the records.
        todo: runs without a record.
        done: records of planned runs, failed ones included.
    """

    file: Path
    todo: list[Run]
    done: list[Record]


def agenda(
    study: Study, folder: Path, runs: int | None = None, only: Sequence[str] = (), retry: bool = False
) -> Agenda:
    """What is done and what is to do; `retry` counts failed runs as to do."""
    planned = study.plan(runs, only)
    file = records.file_of(folder, study.name)
    there = {record["id"]: record for record in records.read(file)}
    if retry:
        there = {identity: record for identity, record in there.items() if record["status"] != FAILED}
    todo = [run for run in planned if run.config.identity not in there]
    return Agenda(file, todo, [there[run.config.identity] for run in planned if run.config.identity in there])


def execute(work: Agenda, jobs: int = 1, report: Report = lambda _: None) -> list[Record]:
    """Do what is to do in `jobs` processes and append a record for each run; the new records.

    Every run is a function of its config alone, so neither the order nor the number of processes shows in the results.
    While it lasts no other process can add to the file.
    """
    if not work.todo:
        return []
    new: list[Record] = []

    def tell(record: Record) -> None:
        new.append(record)
        report(record)

    with records.appending(work.file) as there:
        todo = [run for run in work.todo if there.get(run.config.identity) != OK]  # another process may have been here
        absent = unavailable(run.config.dataset for run in todo)
        for dataset in absent:
            record = _unavailable(todo[0].study, dataset)
            if record["id"] not in there:
                records.append(work.file, record)
            tell(record)
        present = [run for run in todo if run.config.dataset not in absent]
        record_each(work.file, _perform, present, jobs, _description, tell)
    return new


def record_each(
    file: Path,
    function: Callable[[Task], dict[str, Any]],
    tasks: Sequence[Task],
    jobs: int,
    describe: Callable[[Task], Record],
    report: Report = lambda _: None,
) -> None:
    """Call `function` with every task in `jobs` processes, and append a record of each result or failure to `file`.

    Args:
        file: locked by the caller, see `records.appending`.
        function: returns the named results of a task.
        tasks: what to do.
        jobs: number of processes.
        describe: returns what the record says of a task besides its result.
        report: called with each new record.
    """
    common = records.provenance()
    with closing(workers.each(function, tasks, jobs)) as results:
        for task, result in results:
            record = describe(task) | _outcome(result) | common
            records.append(file, record)
            report(record)


def here(dataset: str) -> bool:
    """Whether a dataset can be had without a download; that its file can be read is for the run to find out."""
    from lignn.datasets import catalogue, places

    entry = catalogue.find(dataset)
    return not entry.is_stored or places.find(entry.name) is not None


def unavailable(names: Iterable[str]) -> list[str]:
    """Those of the datasets that are neither here nor to be downloaded, which is tried."""
    from lignn import datasets

    absent = []
    for name in dict.fromkeys(names):
        if here(name):
            continue
        try:
            datasets.load(name)
        except DatasetError:
            absent.append(name)
    return absent


def _perform(run: Run) -> dict[str, Any]:
    from lignn.studies.run import perform  # in the worker, so that a plan needs no torch

    return perform(run.config)


def _unavailable(study: str, dataset: str) -> Record:
    return {"id": f"{study}/{dataset}", "study": study, "dataset": dataset, "status": UNAVAILABLE}


def _description(run: Run) -> Record:
    config = run.config
    return {
        "id": config.identity,
        "study": run.study,
        "row": run.row,
        "against": run.against,
        "dataset": config.dataset,
        "method": config.method.get("name"),
        "backbone": config.backbone.get("name"),
        "split": config.split.get("number"),
        "seed": config.seed,
        "config": config.plain(),
    }


def _outcome(result: dict[str, Any] | workers.Failure) -> Record:
    if isinstance(result, workers.Failure):
        return {"status": FAILED, "reason": str(result)}
    for name, value in result.items():
        try:
            json.dumps(value, allow_nan=False)
        except (ValueError, TypeError) as error:
            return {"status": FAILED, "reason": f"{name} cannot be recorded: {error}"}
    return {"status": OK, **result}
