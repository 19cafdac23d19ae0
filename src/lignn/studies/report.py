"""The report of all studies: the paper's tables and figures from records, beside the published numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path

from lignn.errors import InputError
from lignn.evaluation import page
from lignn.evaluation.page import Block, Section, Table
from lignn.runs import records
from lignn.runs.records import FAILED, OK, UNAVAILABLE, Record
from lignn.studies import published, study
from lignn.studies.results import NO_DATA, NOT_RUN, Results


def report(folder: Path, out: Path | None = None) -> list[Path]:
    """Write the report of all records in `folder` into `out`, by default the same folder, and return its files."""
    there = {file.stem: records.read(file) for file in sorted(folder.glob("*.jsonl"))}
    there = {name: own for name, own in there.items() if own and all(map(_of_a_study, own))}
    if not there:
        raise InputError(f"{folder}: there are no records of a study (*.jsonl); `lignn reproduce` writes them")
    absent = unavailable([record for own in there.values() for record in own])
    known = {name: study.load(name) for name in study.names()}
    results = {
        name: Results.of(name, there.get(name, []), known.get(name), absent) for name in dict.fromkeys([*known, *there])
    }
    parts = [overview(results)]
    for name, own in results.items():
        title, shown_by = (known[name].title, known[name].report) if name in known else (name, "changes")
        if own.records:
            parts.append(section(title, shown_by, own))
    return page.write(out or folder, "Reproduction of the paper's experiments", parts)


def _of_a_study(record: Record) -> bool:
    """Return whether the report shows this record; the study of added labels has its own report."""
    return "row" in record or record.get("status") == UNAVAILABLE


def unavailable(everything: Sequence[Record]) -> set[str]:
    """Return the datasets that were unavailable to some study and available to none."""
    absent, there = ({r["dataset"] for r in everything if r["status"] == status} for status in (UNAVAILABLE, OK))
    return absent - there


def view(name: str) -> Callable[[Results], list[Block]]:
    """Return the function that shows a study, by the name in its file."""
    return import_module(f"lignn.studies.views.{name}").view


def section(title: str, shown_by: str, results: Results) -> Section:
    """Return the section of a study."""
    claim = published.claim(results.study)
    blocks: list[Block] = [] if claim is None else [f"The paper: {claim}"]
    return Section(title, [*blocks, *view(shown_by)(results), *failures(results)])


def failures(results: Results) -> list[Block]:
    """Return a table of the runs that failed; nothing if none did."""
    failed = [record for record in results.records if record["status"] == FAILED]
    rows = [(record["row"], record["dataset"], str(record["seed"]), record["reason"]) for record in failed]
    return [Table("Runs that failed", ("", "dataset", "run", "reason"), rows)] if rows else []


def overview(results: Mapping[str, Results]) -> Section:
    """Return the section that tells which runs there are, with which code, versions and machines."""
    rows = []
    for name, own in results.items():
        failed = sum(record["status"] == FAILED for record in own.records)
        hours = sum(record["seconds"] for record in own.good) / 3600
        rows.append((name, _progress(own), _cells(own), str(len(own.left_out)), str(failed), f"{hours:.2f} h"))
    everything = [record for own in results.values() for record in own.good]
    sources = {"Commits": _commit, "Versions": _versions, "Machines": _machine}
    made = [f"{title}: {'; '.join(dict.fromkeys(map(of, everything))) or 'none'}." for title, of in sources.items()]
    header = ("study", "runs done", "rows × datasets", "with other settings, left out", "failed", "time in all")
    table = Table("Runs recorded, of those planned", header, rows)
    return Section("What is here", [f"Published numbers: {published.citation()}.", table, *made])


def _progress(own: Results) -> str:
    if not own.planned:
        return str(len(own.good))
    done = sum(there for there, _ in own.cells.values())
    more = len(own.good) - done
    return f"{done} of {len(own.planned)} runs" + (f", and {more} more than planned" if more else "")


def _cells(own: Results) -> str:
    """Return how many cells have all, some or none of their runs."""
    counts = Counter(
        "whole" if done == planned else "in part" if done else NO_DATA if dataset in own.absent else NOT_RUN
        for (_, dataset), (done, planned) in own.cells.items()
    )
    missing = ", ".join(dataset for dataset in own.datasets if dataset in own.absent)
    named = {"whole": "whole", "in part": "in part", NOT_RUN: NOT_RUN, NO_DATA: f"{NO_DATA} ({missing})"}
    return ", ".join(f"{counts[state]} {name}" for state, name in named.items() if counts[state])


def _commit(record: Record) -> str:
    commit = record["commit"]
    if commit is None:
        return "unknown"
    return commit["hash"][:12] + (" with changes" if commit["dirty"] else "")


def _versions(record: Record) -> str:
    return ", ".join(f"{name} {number}" for name, number in record["versions"].items())


def _machine(record: Record) -> str:
    machine = record["machine"]
    return f"{machine['system']}, {machine['cpus']} processors, {record['threads']} thread a run"
