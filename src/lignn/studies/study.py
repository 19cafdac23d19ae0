"""Studies: the runs of a figure or table, read from a TOML file.

A study has these tables:

- `text`: a paragraph of the report.
- `[base]`: settings of all runs.
- `[dataset.NAME]`: settings of one dataset; `runs` if it has fewer than the others.
- `[shared.NAME]`: settings that several cases use.
- `[[case]]`: settings of one row of the report, or of several.

A case has these keys besides its settings:

- `row`: name of the row; `{method.mask_rate}` is replaced by that setting.
- `against`: row that it is compared with, with settings in it too.
- `use`: names of `[shared.NAME]`.
- `datasets`: its datasets; by default the keys of `on`, or else all of the study.
- `vary`: lists of values by dotted name; all their combinations are run.
- `on.NAME`: settings of one dataset, also allowed in `[shared.NAME]`.

Nested tables are merged. Later ones override earlier ones in this order: base, dataset, shared, case, `vary`.
"""

from __future__ import annotations

import itertools
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import reduce
from importlib import resources
from pathlib import Path
from typing import Any

from lignn.errors import ConfigError, InputError, did_you_mean
from lignn.studies.case import StudyCase

_REQUIRED_KEYS: dict[str, type] = {"title": str, "report": str, "runs": int, "datasets": list, "case": list}
_OPTIONAL_KEYS: dict[str, type] = {"base": dict, "dataset": dict, "shared": dict, "text": str}
"""Keys of a study in the order of the attributes of `Study`."""
_CASE_KEYS: dict[str, type] = {"row": str, "against": str, "use": list, "datasets": list, "on": dict, "vary": dict}
_DEFINITIONS = resources.files("lignn.studies") / "definitions"
_IN_WORDS = {str: "a text", int: "a whole number", list: "a list", dict: "a table"}


@dataclass(frozen=True)
class Study:
    """A figure or table of the paper as data.

    Attributes:
        name: name of the study and of its file of records.
        title: title in the report.
        report: name of the view that `lignn report` shows it with.
        runs: default number of runs of each case.
        datasets: names of the datasets, in the order of the report.
        cases: the cases, as in the file.
        base: settings of all runs.
        changes: settings of single datasets.
        shared: settings that cases use by name.
        text: what the report says of it.
    """

    name: str
    title: str
    report: str
    runs: int
    datasets: Sequence[str]
    cases: Sequence[Mapping[str, Any]] = field(repr=False)
    base: Mapping[str, Any] = field(repr=False)
    changes: Mapping[str, Any] = field(repr=False)
    shared: Mapping[str, Any] = field(repr=False)
    text: str = field(default="", repr=False)

    def plan(self, runs: int | None = None, only: Sequence[str] = ()) -> list[StudyCase]:
        """Return all runs, ordered by run number, so that the cells of an unfinished study have about as many runs.

        Args:
            runs: number of runs of each case; by default that of the study.
            only: patterns `ROW/DATASET`, `ROW` or `DATASET` with wildcards; runs that match none are left out.
        """
        numbers = range(self.runs if runs is None else runs)
        planned = [run for number in numbers for case in self.cases for run in self._expand(case, number)]
        unique = {run.id: run for run in planned}.values()
        return [run for run in unique if not only or any(_matches(run, pattern) for pattern in only)]

    def rows(self) -> list[str]:
        """Return the names of the rows in the order of the study."""
        return list(dict.fromkeys(run.row for case in self.cases for run in self._expand(case, 0)))

    def _expand(self, case: Mapping[str, Any], number: int) -> Iterator[StudyCase]:
        tables = [*(self.shared[name] for name in case.get("use", [])), case]
        vary = case.get("vary", {})
        for dataset in case.get("datasets", list(case.get("on", {})) or self.datasets):
            own = dict(self.changes.get(dataset, {}))
            if own.pop("runs", self.runs) <= number < self.runs:
                continue
            parts = [self.base, own]
            for table in tables:
                settings = {key: table[key] for key in table if key not in _CASE_KEYS}
                parts += [settings, table.get("on", {}).get(dataset, {})]
            for values in itertools.product(*vary.values()):
                varied = [_nested(name, value) for name, value in zip(vary, values, strict=True)]
                settings = reduce(merged, [*parts, *varied], {"dataset": dataset})
                if settings.get("task", "train") != "label_transitions":
                    first = settings.get("split", {}).get("first", 0)
                    settings = merged(settings, {"seed": number, "split": {"number": first + number}})
                row, against = _filled(case["row"], settings), _filled(case.get("against", ""), settings) or None
                place = {"study": self.name, "row": row, "against": against}
                yield StudyCase.of(settings, f"{self.name}, {row}, {dataset}", **place)


def _nested(name: str, value: Any) -> dict[str, Any]:
    """Return `{"a": {"b": value}}` for the name `a.b`."""
    return reduce(lambda inner, key: {key: inner}, reversed(name.split(".")), value)


def merged(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two nested tables; `second` overrides `first`."""
    result = dict(first)
    for key, value in second.items():
        both_tables = isinstance(value, Mapping) and isinstance(result.get(key), Mapping)
        result[key] = merged(result[key], value) if both_tables else value
    return result


def _filled(template: str, settings: Mapping[str, Any]) -> str:
    """Replace `{a.b}` in the template by the setting of that name."""

    def setting(match: re.Match[str]) -> str:
        try:
            return str(reduce(lambda table, key: table[key], match[1].split("."), settings))
        except (KeyError, TypeError):
            raise ConfigError(f"row {template!r}: there is no setting {match[1]!r}") from None

    return re.sub(r"\{([^}]+)\}", setting, template)


def _matches(run: StudyCase, pattern: str) -> bool:
    row, dataset = (part.lower() for part in run.cell)
    wanted_row, slash, wanted_dataset = pattern.lower().partition("/")
    if slash:
        return fnmatchcase(row, wanted_row or "*") and fnmatchcase(dataset, wanted_dataset or "*")
    return fnmatchcase(row, wanted_row) or fnmatchcase(dataset, wanted_row)


def names() -> list[str]:
    """Return the names of the studies that come with the package."""
    return sorted(Path(file.name).stem for file in _DEFINITIONS.iterdir() if file.name.endswith(".toml"))


def load(name: str) -> Study:
    """Return the study with this name, or the one in this `.toml` file."""
    if name.endswith(".toml"):
        try:
            return parse(Path(name).stem, Path(name).read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(f"{name}: cannot be read: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise InputError(f"{name}: not a text file in UTF-8: {error.reason} at byte {error.start}") from error
    if name not in names():
        raise InputError(f"unknown study {name!r}; {did_you_mean(name, names())}")
    return parse(name, (_DEFINITIONS / f"{name}.toml").read_text(encoding="utf-8"))


def _check_types(where: str, values: Mapping[str, Any], types: Mapping[str, type]) -> None:
    for key, value in values.items():
        if key not in types:
            raise ConfigError(f"{where}: {key!r} is unknown")
        if not isinstance(value, types[key]):
            raise ConfigError(f"{where}: {key} must be {_IN_WORDS[types[key]]}, got {value!r}")


def parse(name: str, text: str) -> Study:
    """Return the study that is described by the text of a file."""
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"study {name}: not a TOML file: {error}") from error
    _check_types(f"study {name}", values, _REQUIRED_KEYS | _OPTIONAL_KEYS)
    if missing := set(_REQUIRED_KEYS) - set(values):
        raise ConfigError(f"study {name}: {min(missing)!r} is missing")
    for number, case in enumerate(values["case"]):
        where = f"study {name}, case {number}"
        if not isinstance(case, dict) or "row" not in case:
            raise ConfigError(f"{where}: it has no row; add a line `row = ...`")
        _check_types(where, {key: case[key] for key in case if key in _CASE_KEYS}, _CASE_KEYS)
        _check_types(f"{where}, vary", case.get("vary", {}), dict.fromkeys(case.get("vary", {}), list))
        if absent := set(case.get("use", [])) - set(values.get("shared", {})):
            raise ConfigError(f"study {name}: case {case['row']!r} uses {min(absent)!r}, which is not in [shared]")
    return Study(
        name,
        *(values[key] for key in _REQUIRED_KEYS),
        *(values.get(key, kind()) for key, kind in _OPTIONAL_KEYS.items()),
    )
