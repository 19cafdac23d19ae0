"""Atomic writes: files and folders are written completely or not at all, and never replace those of somebody else."""

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
    """Raise if nothing can be written at `path`; called before a long computation starts."""
    folder = Path(path).absolute().parent
    if not folder.is_dir():
        raise InputError(f"{path}: there is no folder {Path(path).parent}; create it first")
    if not os.access(folder, os.W_OK):
        raise InputError(f"{path}: cannot be written there: {os.strerror(errno.EACCES)}")


def check_file(path: str | PathLike[str], *inputs: str | PathLike[str]) -> None:
    """Raise if no file can be written at `path`, or if it would overwrite an input or be put into an input folder."""
    _refuse_folder(path)
    check_place(path)
    target = Path(path).resolve()
    for source in inputs:
        if Path(source).resolve() in (target, target.parent):
            raise InputError(f"{path}: {source} is an input, nothing is written there; choose another place")


def _refuse_folder(path: str | PathLike[str]) -> None:
    if Path(path).is_dir():
        raise InputError(f"{path}: is a folder, a file is to be written there; choose another name")


@contextmanager
def whole_file(path: str | PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path in the same folder, which replaces `path` when the body succeeds.

    The temporary path has the same ending as `path`.
    """
    _refuse_folder(path)
    target = Path(path).resolve()
    temporary = _sibling(target)
    with _clear_errors(path):
        try:
            yield temporary
            _sync(temporary)
            os.replace(temporary, target)
            _sync(target.parent)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def whole_folder(path: str | PathLike[str], marker: str, ours: Collection[str]) -> Iterator[Path]:
    """Yield a temporary folder beside `path`, which replaces `path` when the body succeeds.

    A folder at `path` is replaced only if it is empty or was written by lignn: it has the file `marker`, and all other
    entries are named in `ours`. A crash between the two renames leaves the complete old folder beside `path`.
    """
    target = Path(path).resolve()
    with _clear_errors(path):
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
    """Raise if `whole_folder` would not replace what is at `path`."""
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
    """Return a hidden path in the same folder, to be renamed; it keeps the ending, which some writers look at."""
    return target.with_name(f".{secrets.token_hex(4)}.{target.name}")


def _sync(path: Path) -> None:
    """Flush a file or folder to the disk; for folders only POSIX can do this."""
    if path.is_dir() and os.name != "posix":
        return
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _clear_errors(path: str | PathLike[str]) -> Iterator[None]:
    """Turn errors of the file system into one sentence; a wrong path is bad input, a full disk is not."""
    try:
        yield
    except (PermissionError, FileNotFoundError, NotADirectoryError) as error:
        raise InputError(f"{path}: cannot be written there: {_reason(error)}") from error
    except OSError as error:
        raise LignnError(f"{path}: could not be written: {_reason(error)}; nothing was changed") from error


def _reason(error: OSError) -> str:
    """Return the system's message for the error code; PyArrow's own message names the temporary file."""
    return str(error) if error.errno is None else os.strerror(error.errno)
