"""Files and folders that are written whole or not at all, and that never take the place of somebody else's."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

from lignn.errors import InputError, LignnError


def check_place(path: str | PathLike[str]) -> None:
    """Refuse a path at which nothing can be written, before the work for it begins."""
    folder = Path(path).absolute().parent
    if not folder.is_dir():
        raise InputError(f"{path}: there is no folder {Path(path).parent}; create it first")
    if not os.access(folder, os.W_OK):
        raise InputError(f"{path}: cannot be written there: {os.strerror(errno.EACCES)}")


def check_file(path: str | PathLike[str], *inputs: str | PathLike[str]) -> None:
    """Refuse a path at which no file can be written, or that is one of the files and folders that are read."""
    _refuse_folder(path)
    check_place(path)
    target = Path(path).resolve()
    for source in inputs:
        if Path(source).resolve() in (target, target.parent):
            raise InputError(f"{path}: {source} is read, nothing is written there; choose another place")


def _refuse_folder(path: str | PathLike[str]) -> None:
    if Path(path).is_dir():
        raise InputError(f"{path}: is a folder, a file is to be written there; choose another name")


@contextmanager
def whole_file(path: str | PathLike[str]) -> Iterator[Path]:
    """A temporary path beside `path` (same ending) for the body to write; it becomes `path` when the body succeeds."""
    _refuse_folder(path)
    target = Path(path).resolve()
    temporary = _sibling(target)
    with _explained(path):
        try:
            yield temporary
            _sync(temporary)
            os.replace(temporary, target)
            _sync(target.parent)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def whole_folder(path: str | PathLike[str], marker: str, ours: Collection[str]) -> Iterator[Path]:
    """A temporary folder beside `path` for the body to fill; it becomes `path` when the body succeeds.

    What is at `path` gives way only if it is an empty folder, or one that we wrote: it has the file `marker` and no
    entry but those named in `ours`. Between the two renames neither is at `path`; the old one is whole beside it.
    """
    target = Path(path).resolve()
    with _explained(path):
        check_folder(path, marker, ours)
        temporary, old = _sibling(target), _sibling(target)
        try:
            temporary.mkdir()
            yield temporary
            for entry in temporary.iterdir():
                _sync(entry)
            _sync(temporary)
            if target.exists():
                os.replace(target, old)
            try:
                os.replace(temporary, target)
            except OSError:
                if old.exists():
                    os.replace(old, target)
                raise
            _sync(target.parent)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def check_folder(path: str | PathLike[str], marker: str, ours: Collection[str]) -> None:
    """Refuse a path that `whole_folder` would not replace."""
    target = Path(path).resolve()
    if not target.exists():
        return
    if not target.is_dir():
        raise InputError(f"{path}: is a file, a folder is to be written there; choose another name")
    present = {entry.name for entry in target.iterdir()}
    if present and marker not in present:
        raise InputError(f"{path}: is a folder with other content (no {marker}); choose a new or empty folder")
    if others := sorted(present.difference({marker, *ours})):
        raise InputError(
            f"{path}: would be replaced, but {others[0]!r} in it was not written by lignn; move it away first"
        )


def _sibling(target: Path) -> Path:
    """A hidden path in the same folder, so that a rename suffices; the ending stays, as some writers look at it."""
    return target.with_name(f".{secrets.token_hex(4)}.{target.name}")


def _sync(path: Path) -> None:
    """Have the content on the disk before the name points to it; only POSIX can do this for folders."""
    if path.is_dir() and os.name != "posix":
        return
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _explained(path: str | PathLike[str]) -> Iterator[None]:
    """Failures of the file system as one sentence: a wrong place is bad input, a full disk is not."""
    try:
        yield
    except (PermissionError, FileNotFoundError, NotADirectoryError) as error:
        raise InputError(f"{path}: cannot be written there: {_reason(error)}") from error
    except OSError as error:
        raise LignnError(f"{path}: could not be written: {_reason(error)}; nothing was changed") from error


def _reason(error: OSError) -> str:
    """The system's own words; those of PyArrow tell of our temporary file."""
    return str(error) if error.errno is None else os.strerror(error.errno)
