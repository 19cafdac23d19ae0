"""Numbers, tables and pictures of documents, filled from records.

A place in a Markdown document is `<!-- KIND ARGUMENTS -->…<!-- end -->`, with arguments separated by ` / `. What stands
between the two comments is replaced by what the records under `results/` say:

| place | becomes |
|---|---|
| `score STUDY / ROW / DATASET` | mean ± standard deviation of the test score in percent |
| `mean STUDY / ROW / DATASET` | the mean with one decimal |
| `mean STUDY / ROW / DATASET / BASE` | the same, bold if the interval of the paired difference to BASE is above 0 |
| `gain STUDY / ROW / BASE / DATASET` | paired difference of the test scores with its 95 % interval |
| `gain STUDY / ROW / BASE` | the mean of these differences over the datasets that both have |
| `value STUDY / ROW / DATASET / NAME` | the mean of a recorded number, with three decimals |
| `time SUITE / CASE / SIDE` | median time of a benchmark |
| `ratio SUITE / CASE / SIDE` | how many times longer than the first side |
| `memory SUITE / CASE / SIDE` | peak memory |
| `cell REPORT / TABLE / ROW / COLUMN` | a cell of a report, in a table whose caption begins with TABLE |
| `bench SUITE` | all tables of a suite |
| `report STUDY` | sentences and pictures of a study |
| `scores STUDY` | table of the test scores of a study |
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import mean

from lignn.atomic import whole_file
from lignn.bench import timing as bench
from lignn.bench.timing import Record as Measured
from lignn.errors import InputError
from lignn.evaluation import page
from lignn.evaluation.page import Picture, Table
from lignn.evaluation.summary import Difference, mean_and_deviation, paired
from lignn.runs import records
from lignn.studies import published, study
from lignn.studies.report import view
from lignn.studies.results import Results

_PLACE = re.compile(r"<!-- (\w+) ([^\n>]+) -->(.*?)<!-- end -->", re.DOTALL)


@dataclass(frozen=True)
class Records:
    """What commands of this project have recorded, read on first use.

    Attributes:
        folder: what `lignn reproduce` wrote.
        bench: what `lignn bench` wrote.
    """

    folder: Path
    bench: Path

    @classmethod
    def of(cls, folder: Path) -> Records:
        """Return the records in a folder such as `results`, with those of speed in its folder `bench`."""
        return cls(folder, folder / "bench")

    @cached_property
    def suites(self) -> dict[str, list[Measured]]:
        """The records of speed by suite."""
        return bench.read(self.bench)

    @cached_property
    def _studies(self) -> dict[str, Results]:
        return {}

    def study(self, name: str) -> Results:
        """Return the records of a study that it still plans."""
        if name not in self._studies:
            found = records.read(self.folder / f"{name}.jsonl")
            self._studies[name] = Results.of(name, found, study.load(name) if name in study.names() else None)
        return self._studies[name]

    def found(self, name: str, row: str, dataset: str) -> list[records.Record]:
        """Return the records of a cell."""
        found = self.study(name).good_by_cell.get((row, dataset))
        if not found:
            raise InputError(f"{self.folder}: there is no record of {row} on {dataset} in the study {name}")
        return found

    def scores(self, name: str, row: str, dataset: str) -> dict[int, float]:
        """Return the test scores of a cell in percent by run."""
        return {record["seed"]: 100 * record["scores"]["test"] for record in self.found(name, row, dataset)}

    def measured(self, suite: str, case: str, side: str) -> Measured:
        """Return the record of one side of a benchmark."""
        for record in self.suites.get(suite, []):
            if (record.get("case"), record.get("side")) == (case, side):
                return record
        raise InputError(f"{self.bench}: there is no record of {side} on {case} in the suite {suite}")


@dataclass(frozen=True)
class Source:
    """The records, and the document that is filled from them; paths to pictures are relative to it."""

    records: Records
    document: Path


def _score(source: Source, name: str, row: str, dataset: str) -> str:
    return mean_and_deviation(source.records.scores(name, row, dataset).values())


def _mean(source: Source, name: str, row: str, dataset: str, base: str | None = None) -> str:
    value = f"{mean(source.records.scores(name, row, dataset).values()):.1f}"
    return f"**{value}**" if base is not None and _difference(source, name, row, base, dataset).sign == 1 else value


def _gain(source: Source, name: str, row: str, base: str, dataset: str | None = None) -> str:
    if dataset is not None:
        return _difference(source, name, row, base, dataset).with_interval
    cells = source.records.study(name).good_by_cell
    common = [each for own, each in cells if own == row and (base, each) in cells]
    return f"{mean(_difference(source, name, row, base, each).mean for each in common):+.2f}"


def _value(source: Source, name: str, row: str, dataset: str, value: str) -> str:
    return f"{mean(record[value] for record in source.records.found(name, row, dataset)):.3f}"


def _difference(source: Source, name: str, row: str, base: str, dataset: str) -> Difference:
    found = paired(source.records.scores(name, row, dataset), source.records.scores(name, base, dataset))
    if found is None:
        raise InputError(f"{source.records.folder}: {row} and {base} have no common run on {dataset} in {name}")
    return found


def _time(source: Source, suite: str, case: str, side: str) -> str:
    return bench.duration(source.records.measured(suite, case, side)["median"])


def _ratio(source: Source, suite: str, case: str, side: str) -> str:
    return bench.three_digits(source.records.measured(suite, case, side)["ratio"])


def _memory(source: Source, suite: str, case: str, side: str) -> str:
    return bench.FIGURES["peak_mib"](source.records.measured(suite, case, side)["peak_mib"])


def _cell(source: Source, report: str, table: str, row: str, column: str) -> str:
    file = source.records.folder / report
    for caption, rows in _tables(file.read_text(encoding="utf-8")):
        if caption.startswith(table):
            header, *body = rows
            for cells in body:
                if cells[0] == row and column in header:
                    return cells[header.index(column)].split("<br>")[0]
    raise InputError(f"{file}: there is no cell {column!r} in the row {row!r} of a table {table!r}")


def _tables(text: str) -> Iterator[tuple[str, list[list[str]]]]:
    """Yield the caption and the rows of each table of a report."""
    for caption, lines in re.findall(r"\*\*(.*?)\*\*\n\n((?:\|.*\n)+)", text):
        rows = [[cell.strip() for cell in line.strip("|\n").split(" | ")] for line in lines.splitlines()]
        yield caption, [rows[0], *rows[2:]]


def _bench(source: Source, suite: str) -> str | None:
    found = source.records.suites.get(suite)
    return None if found is None else bench.markdown(found)


def _report(source: Source, name: str) -> str:
    own, plan = source.records.study(name), study.load(name)
    claim = published.claim(name)
    parts = [] if claim is None else [f"The paper: {claim}"]
    lines = [page.plain(text) for text in parts]
    for block in view(plan.report)(own):
        if isinstance(block, Picture):
            file = os.path.relpath(source.records.folder / "figures" / f"{block.name}.svg", source.document.parent)
            lines.append(f"![{block.caption}]({file})")
        elif not isinstance(block, Table):
            lines.append(page.plain(block))
    return "\n\n".join(lines)


def _scores_table(source: Source, name: str) -> str:
    own = source.records.study(name)
    datasets = [dataset for dataset in own.datasets if any(cell[1] == dataset for cell in own.good_by_cell)]
    header = ["", *([f"test {own.metric} (%)"] if len(datasets) == 1 else datasets)]
    rows = [
        [row, *(_score(source, name, row, one) if (row, one) in own.good_by_cell else "" for one in datasets)]
        for row in own.rows
        if any((row, one) in own.good_by_cell for one in datasets)
    ]
    return page.markdown_rows(header, rows)


_INLINE: dict[str, Callable[..., str]] = {
    "score": _score,
    "mean": _mean,
    "gain": _gain,
    "value": _value,
    "time": _time,
    "ratio": _ratio,
    "memory": _memory,
    "cell": _cell,
}
_BLOCKS: dict[str, Callable[..., str | None]] = {
    "bench": _bench,
    "report": _report,
    "scores": _scores_table,
}


def filled(text: str, source: Source) -> str:
    """Return the text of a document with all places filled; a suite without records keeps what is there."""

    def put(place: re.Match[str]) -> str:
        kind, arguments = place[1], place[2].split(" / ")
        if kind in _INLINE:
            return f"<!-- {kind} {place[2]} -->{_INLINE[kind](source, *arguments)}<!-- end -->"
        if kind in _BLOCKS:
            content = _BLOCKS[kind](source, *arguments)
            return place[0] if content is None else f"<!-- {kind} {place[2]} -->\n{content}\n<!-- end -->"
        known = ", ".join([*_INLINE, *_BLOCKS])
        raise InputError(f"{source.document}: there is no place of the kind {kind!r}; known are {known}")

    return _PLACE.sub(put, text)


def fill(document: Path, there: Records) -> list[str]:
    """Fill all places of a document from records, and return the places."""
    if not document.is_file():
        raise InputError(f"{document}: there is no such document")
    text = document.read_text(encoding="utf-8")
    new = filled(text, Source(there, document))
    if new != text:
        with whole_file(document) as temporary:
            temporary.write_text(new, encoding="utf-8")
    return [f"{place[1]} {place[2]}" for place in _PLACE.finditer(text)]


def documents(paths: list[Path]) -> list[Path]:
    """Return the files among `paths`, and the Markdown files in its folders."""
    return [file for path in paths for file in (sorted(path.rglob("*.md")) if path.is_dir() else [path])]
