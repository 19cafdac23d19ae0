"""Records: one JSON line for each run, which is appended and never changed."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import lignn
from lignn import atomic
from lignn.declarations import METHODS, PRESETS
from lignn.errors import InputError, LignnError
from lignn.runs.workers import Failure

Record = dict[str, Any]
Cells = dict[tuple[str, str], dict[Hashable, float]]
"""Scores by row and dataset, and for each of these by seed, which is the number of the run."""

OK, FAILED, UNAVAILABLE = "ok", "failed", "unavailable"
"""Status of a run; `unavailable`: its dataset is not stored here and cannot be downloaded."""


def identity_of(values: Any) -> str:
    """Return a short hash of plain values."""
    return hashlib.sha256(json.dumps(values, sort_keys=True, default=dict).encode()).hexdigest()[:16]


def identity_of_presets() -> str:
    """Return a hash of the values of all presets, which change from version to version."""
    return identity_of({"all": PRESETS, **{name: method.presets for name, method in METHODS.items()}})


def file_of(folder: Path, study: str) -> Path:
    """Return the file with the records of a study."""
    return folder / f"{study}.jsonl"


def read(file: Path) -> list[Record]:
    """Return the last record of each identity; no records if there is no file.

    A last line without a newline, which a killed process leaves behind, is ignored.
    """
    if not file.exists():
        return []
    records: dict[str, Record] = {}
    *lines, _ = file.read_bytes().split(b"\n")  # After the last newline, there is nothing or an incomplete line.
    for number, line in enumerate(lines, 1):
        try:
            record = json.loads(line)
            records[record["id"]] = record
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{file}, line {number}: not a record ({error}); remove the line") from error
    return list(records.values())


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Lock the file, so that no other process appends to it; its folder is created. Reading needs no lock."""
    busy = f"{file}: another process is adding records; wait until it is done, or choose another folder"
    with _open(file), atomic.locked(file, busy, keep=True):
        yield


@contextmanager
def appending(file: Path) -> Iterator[dict[str, str]]:
    """Lock and repair a file; the context's value is the status of each record by identity."""
    with locked(file):
        repair(file)
        yield {record["id"]: record["status"] for record in read(file)}


def repair(file: Path) -> None:
    """Remove an incomplete last line from the file; its folder is created."""
    with _open(file) as opened:
        opened.seek(0)
        content = opened.read()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            opened.truncate(whole)


def _open(file: Path) -> BinaryIO:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        return file.open("a+b")
    except OSError as error:
        raise InputError(f"{file}: records cannot be written there: {error.strerror}") from error


def append(file: Path, record: Record) -> None:
    """Append one line by a single write, and flush it to the disk."""
    line = json.dumps(record, ensure_ascii=False, allow_nan=False).encode() + b"\n"
    try:
        with file.open("ab", buffering=0) as opened:
            written = opened.write(line)
            os.fsync(opened.fileno())
    except OSError as error:
        raise LignnError(f"{file}: a record could not be written: {error.strerror}") from error
    if written != len(line):
        raise LignnError(
            f"{file}: only a part of a record could be written, the disk may be full; free some space and start again"
        )


class Described(Protocol):
    """A case whose result is recorded."""

    @property
    def id(self) -> str:
        """What tells the case from all others."""

    @property
    def description(self) -> Record:
        """What a record says about the case besides its result, its id among it."""


class Recording:
    """A file of records as the store of results of a runner; the caller has locked the file, see `appending`.

    Attributes:
        file: the file.
        there: status of each record in the file by id.
        new: the records that were added.
    """

    def __init__(self, file: Path, there: dict[str, str]) -> None:
        self.file = file
        self.there = there
        self.new: list[Record] = []
        self._common = provenance()

    def has(self, case: Described) -> bool:
        """Return whether the case has a record of success."""
        return self.there.get(case.id) == OK

    def add(self, case: Described, result: Any) -> None:
        """Append a record of a result, or of a failure."""
        record = case.description | _outcome(result) | self._common
        append(self.file, record)
        self.new.append(record)


def _outcome(result: Mapping[str, Any] | Failure) -> Record:
    if isinstance(result, Failure):
        return {"status": FAILED, "reason": str(result)}
    for name, value in result.items():
        try:
            json.dumps(value, allow_nan=False)
        except (ValueError, TypeError) as error:
            return {"status": FAILED, "reason": f"{name} cannot be recorded: {error}"}
    return {"status": OK, **result}


def scores(records: Iterable[Record]) -> Cells:
    """Return the test scores in percent of the runs that succeeded."""
    cells: Cells = {}
    for record in records:
        if record["status"] == OK and "scores" in record:
            cell = cells.setdefault((record["row"], record["dataset"]), {})
            cell[record["seed"]] = 100 * record["scores"]["test"]
    return cells


def provenance() -> dict[str, Any]:
    """Return versions, machine, and the commit if the code runs from a checkout."""
    versions = {name: version(name) for name in ("torch", "numpy", "scipy", "numba", "scikit-learn", "lightgbm")}
    return {
        "versions": {"lignn": lignn.__version__, "python": platform.python_version()} | versions,
        "commit": _commit(Path(lignn.__file__).parent),
        "machine": {"system": platform.platform(), "processor": platform.machine(), "cpus": os.cpu_count()},
    }


def _commit(folder: Path) -> Mapping[str, Any] | None:
    """Return the commit of the repository that tracks `folder`, and whether the code differs; None without one."""

    def git(*arguments: str) -> str:
        """Return what git prints; nothing if it fails."""
        options: Any = {"cwd": folder, "capture_output": True, "text": True, "timeout": 20, "check": True}
        try:
            return subprocess.run(["git", *arguments], **options).stdout.strip()
        except (OSError, subprocess.SubprocessError):
            return ""

    head = git("rev-parse", "HEAD") if git("ls-files", "--", "__init__.py") else ""
    return {"hash": head, "dirty": bool(git("status", "--porcelain", "--", "."))} if head else None
