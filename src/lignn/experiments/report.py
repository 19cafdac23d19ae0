"""Reports: the paper's tables and figures from a folder of records, beside the published numbers."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from lignn.errors import InputError
from lignn.experiments import page, published, records, sections, study
from lignn.experiments.page import Section, Table
from lignn.experiments.records import FAILED, OK, Record
from lignn.experiments.sections import Found


def report(folder: Path, out: Path | None = None) -> list[Path]:
    """Write Markdown, HTML and pictures for all records in `folder` (to `out`, default there); the files."""
    found = {file.stem: records.read(file) for file in sorted(folder.glob("*.jsonl"))}
    found = {name: there for name, there in found.items() if there and "study" in there[0]}
    if not found:
        raise InputError(f"{folder}: there are no records of a study (*.jsonl); `lignn reproduce` writes them")
    parts = [overview(found)]
    for name, there in found.items():
        known = study.load(name) if name in study.names() else None
        title, kind = (name, "accuracy") if known is None else (known.title, known.report)
        parts.append(sections.section(title, kind, Found.of(name, there, known)))
    return page.write(out or folder, "Reproduction of the paper's experiments", parts)


def overview(found: dict[str, list[Record]]) -> Section:
    """What there is and what was cut, and with which code and machine it was made."""
    rows = []
    for name, there in found.items():
        good, failed = ([r for r in there if r["status"] == status] for status in (OK, FAILED))
        hours = sum(record["seconds"] for record in good) / 3600
        rows.append((name, _progress(name, good), str(len(failed)), f"{hours:.2f} h"))
    everything = [record for there in found.values() for record in there if record["status"] == OK]
    made = [
        f"Commits: {_distinct(_commit(record) for record in everything)}.",
        f"Versions: {_distinct(_versions(record) for record in everything)}.",
        f"Machines: {_distinct(_machine(record) for record in everything)}.",
    ]
    table = Table("Runs recorded", ("study", "runs done, of those planned", "failed", "time in all"), rows)
    return Section("What is here", [f"Published numbers: {published.citation()}.", table, *made])


def _progress(name: str, good: list[Record]) -> str:
    if name not in study.names():
        return str(len(good))
    planned = {run.config.identity for run in study.load(name).plan()}
    done = sum(record["id"] in planned for record in good)
    others = len(good) - done
    return f"{done} of {len(planned)}" + (f", {others} with other settings or runs" if others else "")


def _distinct(values: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(values)) or "none"


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
