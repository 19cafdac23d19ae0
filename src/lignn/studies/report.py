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
from lignn.studies.study import Study


def report(folder: Path, out: Path | None = None) -> list[Path]:
    """Write the report of all records in `folder` into `out`, by default the same folder, and return its files."""
    files = {file.stem: records.read(file) for file in sorted(folder.glob("*.jsonl"))}
    there = {name: found for name, found in files.items() if found}
    if not there:
        raise InputError(f"{folder}: there are no records of a study (*.jsonl); `lignn reproduce` writes them")
    absent = unavailable([record for own in there.values() for record in own])
    known = {name: study.load(name) for name in study.names()}
    results = {
        name: Results.of(name, there.get(name, []), known.get(name), absent) for name in dict.fromkeys([*known, *there])
    }
    parts = [overview(results)]
    for name, own in results.items():
        if own.records:
            parts.append(section(own, known.get(name)))
    return page.write(out or folder, "The paper's experiments, and further studies", parts)


def unavailable(everything: Sequence[Record]) -> set[str]:
    """Return the datasets that were unavailable to some study and available to none."""
    absent, there = ({r["dataset"] for r in everything if r["status"] == status} for status in (UNAVAILABLE, OK))
    return absent - there


def view(name: str) -> Callable[[Results], list[Block]]:
    """Return the function that shows a study, by the name in its file."""
    return import_module(f"lignn.studies.views.{name}").view


def section(results: Results, of: Study | None) -> Section:
    """Return the section of a study; None for one that does not come with the package."""
    claim = published.claim(results.study)
    blocks: list[Block] = [] if claim is None else [f"The paper: {claim}"]
    blocks += [of.text] if of is not None and of.text else []
    title, shown_by = (results.study, "changes") if of is None else (of.title, of.report)
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
        hours = sum(map(_seconds, own.good)) / 3600
        rows.append((name, _progress(own), _cells(own), str(len(own.left_out)), str(failed), f"{hours:.2f} h"))
    everything = [record for own in results.values() for record in own.good]
    sources = {"Commits": _commit, "Versions": _versions, "Machines": _machine}
    made = [f"{title}: {'; '.join(dict.fromkeys(map(of, everything))) or 'none'}." for title, of in sources.items()]
    header = ("study", "runs done", "rows × datasets", "with other settings, left out", "failed", "time in all")
    table = Table("Runs recorded, of those planned", header, rows)
    return Section("What is here", [f"Published numbers: {published.citation()}.", table, *made])


def _seconds(record: Record) -> float:
    """Return the time of a run; some old records have only that of the processor, or none."""
    return next((record[name] for name in ("seconds", "processor_seconds") if name in record), 0.0)


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
