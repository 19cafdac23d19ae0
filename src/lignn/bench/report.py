"""Records for reading: tables on the terminal, and those of docs/performance.md."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lignn.atomic import whole_file
from lignn.bench.timing import Record
from lignn.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

_PLACE = re.compile(r"(<!-- bench (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
"""Where the tables of a suite stand in a document."""


def duration(seconds: float) -> str:
    """Three digits in a fitting unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{_three_digits(seconds / size)} {unit}"
    return f"{_three_digits(seconds * 1e6)} µs"


def _three_digits(value: float) -> str:
    """As `3.14`, `31.4` or `314`."""
    size = abs(value)
    return f"{value:.0f}" if size >= 100 else f"{value:.1f}" if size >= 10 else f"{value:.2f}"


def _megabytes(mib: float) -> str:
    return f"{mib / 1024:.2f} GiB" if mib >= 1024 else f"{_three_digits(mib)} MiB"


_FIGURES: dict[str, Callable[[float], str]] = {
    "p99": lambda value: f"99 %: {duration(value)}",
    "peak_mib": _megabytes,
    "epochs": lambda value: f"{value:.0f} epochs",
    "score": lambda value: f"{100 * value:.1f} % right",
    "gigabytes_per_second": lambda value: f"{_three_digits(value)} GB/s",
    "gathered_per_second": lambda value: f"{_three_digits(value)} GB/s gathered",
    "share": lambda value: f"{100 * value:.0f} %",
}
"""What a record may hold beside a time, and how it is written."""


def cell(record: Record, reference: bool) -> str:
    """All figures of a record; the ratio unless it is the side that others are compared with."""
    parts = []
    if "median" in record:
        spread = f" ± {50 * record['spread']:.0f} %" if record["spread"] else ""
        parts.append(duration(record["median"]) + spread)
        if not reference:
            parts.append(f"{_three_digits(record['ratio'])}×")
    parts += [write(record[key]) for key, write in _FIGURES.items() if record.get(key) is not None]
    return ", ".join(parts)


def grid(records: Sequence[Record]) -> tuple[list[str], list[list[str]]]:
    """Header and rows: a row a case, a column a side, in order of appearance."""
    measured = [record for record in records if "case" in record]
    sides = list(dict.fromkeys(record["side"] for record in measured))
    rows: dict[str, dict[str, str]] = {}
    for record in measured:
        row = rows.setdefault(record["case"], {})
        row[record["side"]] = cell(record, reference=not row)
    return ["case", *sides], [[case, *(row.get(side, "") for side in sides)] for case, row in rows.items()]


def goals(records: Sequence[Record]) -> tuple[list[str], list[list[str]]]:
    """Header and rows: what was to be reached, and whether it was."""
    rows = [
        [
            record["goal"],
            _three_digits(record["reached"]),
            f"{record['sense']} {record['wanted']:g}",
            "yes" if record["met"] else "no",
        ]
        for record in records
        if "goal" in record
    ]
    return ["goal", "reached", "wanted", "met"], rows


def tables(records: Sequence[Record]) -> list[Table]:
    """Both tables for a terminal; the second only if there are goals."""
    from rich.table import Table
    from rich.text import Text

    result = []
    for header, rows in (grid(records), goals(records)):
        if rows:
            table = Table(header[0], *header[1:], box=None, header_style="bold")
            for row in rows:
                table.add_row(*map(Text, row))
            result.append(table)
    return result


def markdown(records: Sequence[Record]) -> str:
    """Both tables, and where and with what they were measured."""
    parts = []
    for header, rows in (grid(records), goals(records)):
        if rows:
            parts.append("\n".join(_line(row) for row in (header, ["---"] * len(header), *rows)))
    versions = next(record["versions"] for record in records if "versions" in record)
    machine = f"{versions['processor']}, {versions['threads']} of {versions['cores']} cores"
    libraries = ", ".join(f"{name} {versions[name]}" for name in ("torch", "torch_geometric", "numba", "lignn"))
    return "\n\n".join([*parts, f"Measured on {machine}, with {libraries}."])


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(text.replace("|", "\\|") for text in cells) + " |"


def write(records: Sequence[Record], file: Path) -> None:
    """One JSON document, or a line a record if the file is called `.jsonl`."""
    lines = [json.dumps(record, ensure_ascii=False, allow_nan=False) for record in records]
    text = "\n".join(lines) if file.suffix == ".jsonl" else "[\n" + ",\n".join(lines) + "\n]"
    with whole_file(file) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")


def read(folder: Path) -> dict[str, list[Record]]:
    """The records of all `.jsonl` files in a folder by suite, those of quick runs left out."""
    by_suite: dict[str, list[Record]] = {}
    for file in sorted(folder.glob("*.jsonl")):
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            try:
                record = json.loads(line)
                if not record["quick"]:
                    by_suite.setdefault(record["suite"], []).append(record)
            except (ValueError, KeyError, TypeError) as error:
                raise InputError(f"{file}, line {number}: not a record of lignn bench; remove the line") from error
    if not by_suite:
        raise InputError(f"{folder}: no records there; measure with `lignn bench SUITE --json {folder}/SUITE.jsonl`")
    return by_suite


def fill(document: Path, folder: Path) -> list[str]:
    """Put the tables of all recorded suites into the places a document has for them; their names."""
    by_suite, filled = read(folder), []
    if not document.is_file():
        raise InputError(f"{document}: there is no such document; it needs `<!-- bench SUITE -->` and `<!-- end -->`")

    def put(place: re.Match[str]) -> str:
        suite = place[2]
        if suite not in by_suite:
            return place[0]
        filled.append(suite)
        return f"{place[1]}{markdown(by_suite[suite])}\n{place[3]}"

    text = _PLACE.sub(put, document.read_text(encoding="utf-8"))
    with whole_file(document) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return filled
