"""Timing of several sides in one process, the records of benchmarks, and their tables.

The sides take turns in every round, so that whatever slows the machine down slows all of them.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

from rich.table import Table
from rich.text import Text

from lignn.atomic import whole_file
from lignn.errors import InputError

Record = dict[str, Any]
Side = Callable[[], object]


@dataclass(frozen=True)
class Timing:
    """Seconds that one side took in each round."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """Median over the rounds."""
        return statistics.median(self.seconds)

    @property
    def spread(self) -> float:
        """Interquartile range relative to the median."""
        lower, _, upper = statistics.quantiles(self.seconds, n=4, method="inclusive")
        return (upper - lower) / self.median

    def ratio(self, other: Timing) -> float:
        """Return how many times longer this side took: the median of the ratios of each round."""
        return statistics.median(mine / theirs for mine, theirs in zip(self.seconds, other.seconds, strict=True))

    def figures(self, reference: Timing) -> Record:
        """Return median, spread, and the ratio to the time of `reference`."""
        return {"median": self.median, "spread": self.spread, "ratio": self.ratio(reference)}


def interleaved(sides: Mapping[str, Side], rounds: int, clock: Callable[[], float] = perf_counter) -> dict[str, Timing]:
    """Time each side once a round, after one call of each that is not timed; each round starts with another side."""
    if rounds < 2:
        raise ValueError(f"a spread needs at least 2 rounds, not {rounds}")
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    names = list(sides)
    for side in sides.values():
        side()
    for turn in range(rounds):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            start = clock()
            sides[name]()
            seconds[name].append(clock() - start)
    return {name: Timing(tuple(values)) for name, values in seconds.items()}


def timed(side: Side, rounds: int) -> Timing:
    """Time one side by itself, after one call that is not timed."""
    return interleaved({"side": side}, rounds)["side"]


def compare(case: str, sides: Mapping[str, Side], rounds: int, config: Mapping[str, Any]) -> list[Record]:
    """Time all sides and return one record for each; its `ratio` is relative to the first side."""
    timings = interleaved(sides, rounds)
    reference = next(iter(timings.values()))
    config = {**config, "rounds": rounds}
    return [record(case, side, config, **timing.figures(reference)) for side, timing in timings.items()]


def record(case: str, side: str, config: Mapping[str, Any], **figures: Any) -> Record:
    """Return the record of one side in one case, with the versions it was measured with."""
    return {"case": case, "side": side, **figures, "config": config, "versions": versions()}


def versions() -> dict[str, Any]:
    """Return what the times depend on besides the code: libraries, processor and threads."""
    import torch

    libraries: Record = {name: version(name) for name in ("lignn", "torch", "torch_geometric", "numba", "scipy")}
    return libraries | {
        "python": platform.python_version(),
        "processor": f"{_processor()} ({torch.backends.cpu.get_cpu_capability()})",
        "cores": os.cpu_count() or 1,
        "threads": torch.get_num_threads(),
    }


def _processor() -> str:
    """Return the name of the processor on Linux, and its architecture on other systems."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = (line.partition(": ")[2] for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def duration(seconds: float) -> str:
    """Return a duration with three digits, in s, ms or µs."""
    unit, scale = ("s", 1.0) if seconds >= 1 else ("ms", 1e3) if seconds >= 1e-3 else ("µs", 1e6)
    return f"{three_digits(seconds * scale)} {unit}"


def three_digits(value: float) -> str:
    """Return `3.14`, `31.4` or `314`."""
    size = abs(value)
    return f"{value:.0f}" if size >= 100 else f"{value:.1f}" if size >= 10 else f"{value:.2f}"


def memory(mib: float) -> str:
    """Return MiB or GiB."""
    return f"{mib / 1024:.2f} GiB" if mib >= 1024 else f"{three_digits(mib)} MiB"


FIGURES: dict[str, Callable[[Any], str]] = {
    "p99": lambda value: f"99 %: {duration(value)}",
    "calls": lambda value: f"{value:.0f} calls",
    "kills": lambda value: f"{value:.0f} times",
    "answered": lambda value: f"{value:.0f} labels answered",
    "failures": lambda value: f"{value:.0f} failures told",
    "requests_per_second": lambda value: f"{value:.0f} a second",
    "peak_mib": memory,
    "planned_mib": lambda value: f"{memory(value)} planned",
    "epochs": lambda value: f"{value:.0f} epochs",
    "score": lambda value: f"{100 * value:.1f} % right",
    "seconds_to_score": lambda value: f"close to the best after {duration(value)}",
    "gradient_error": lambda value: f"gradient off by {100 * value:.2g} %",
    "prediction_error": lambda value: f"probabilities by {value:.1g}",
    "gigabytes_per_second": lambda value: f"{three_digits(value)} GB/s",
    "gathered_per_second": lambda value: f"{three_digits(value)} GB/s gathered",
    "bytes": lambda value: f"{value / 1e6:.3g} MB exchanged",
    "halo_rows": lambda value: f"{value:.0f} halo rows",
    "share": lambda value: f"{100 * value:.0f} %",
    "slope": lambda value: f"grows as edges^{value:.2f}",
    "apart": lambda value: f"numbers apart by {value:.1g}",
    "errors": lambda value: f"{len(value)} errors",
    "growth": lambda value: f"memory grows by {100 * value:.1g} % in the second half",
}
"""How the other figures of a record are written."""


def cell(record: Record, reference: bool) -> str:
    """Return all figures of a record; the side that others are compared with has no ratio."""
    parts = []
    if "median" in record:
        spread = f" ± {50 * record['spread']:.0f} %" if record["spread"] else ""
        parts.append(duration(record["median"]) + spread)
        if not reference:
            parts.append(f"{three_digits(record['ratio'])}×")
    parts += [write(record[key]) for key, write in FIGURES.items() if record.get(key) is not None]
    return ", ".join(parts)


def grid(records: Sequence[Record]) -> tuple[list[str], list[list[str]]]:
    """Return header and rows of a table with one row for each case and one column for each side."""
    sides = list(dict.fromkeys(record["side"] for record in records))
    rows: dict[str, dict[str, str]] = {}
    for record in records:
        row = rows.setdefault(record["case"], {})
        row[record["side"]] = cell(record, reference=not row)
    return ["case", *sides], [[case, *(row.get(side, "") for side in sides)] for case, row in rows.items()]


def table(records: Sequence[Record]) -> Table:
    """Return the table of cases for a terminal."""
    header, rows = grid(records)
    result = Table(*header, box=None, header_style="bold")
    for row in rows:
        result.add_row(*map(Text, row))
    return result


def markdown(records: Sequence[Record]) -> str:
    """Return the table of cases as Markdown, with machine and versions."""
    header, rows = grid(records)
    shown = "\n".join(map(_line, (header, ["---"] * len(header), *rows)))
    versions = records[0]["versions"]
    machine = f"{versions['processor']}, {versions['threads']} of {versions['cores']} cores"
    libraries = ", ".join(f"{name} {versions[name]}" for name in ("torch", "torch_geometric", "numba", "lignn"))
    return f"{shown}\n\nMeasured on {machine}, with {libraries}."


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(text.replace("|", "\\|") for text in cells) + " |"


def write(records: Sequence[Record], file: Path) -> None:
    """Write one JSON document, or one line for each record if the name of the file ends in `.jsonl`."""
    lines = [json.dumps(record, ensure_ascii=False, allow_nan=False) for record in records]
    text = "\n".join(lines) if file.suffix == ".jsonl" else "[\n" + ",\n".join(lines) + "\n]"
    with whole_file(file) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")


def read(folder: Path) -> dict[str, list[Record]]:
    """Return the records of all `.jsonl` files in a folder by suite, without those of quick runs."""
    by_suite: dict[str, list[Record]] = {}
    for file in sorted(folder.glob("*.jsonl")):
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            try:
                record = json.loads(line)
                quick, suite, *_ = (record[key] for key in ("quick", "suite", "case", "side"))
                if not quick:
                    by_suite.setdefault(suite, []).append(record)
            except (ValueError, KeyError, TypeError) as error:
                raise InputError(f"{file}, line {number}: not a record of lignn bench; remove the line") from error
    if not by_suite:
        raise InputError(f"{folder}: no records there; measure with `lignn bench SUITE --json {folder}/SUITE.jsonl`")
    return by_suite
