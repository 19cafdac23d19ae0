"""Atomic writes: files and folders are written completely or not at all, and never replace those of somebody else.

A killed process may leave hidden files and folders behind. The next write to the same place removes them; a lock makes
sure that they are not those of a process that is still writing.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import secrets
import shutil
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path

from lignn.errors import InputError, LignnError

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None  # type: ignore[assignment]

TEMPORARY = r"\.[0-9a-f]{8}\."
"""Start of the name of a temporary file or folder; the name that it will get follows."""


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
def locked(file: Path, busy: str | None = None, keep: bool = False) -> Iterator[bool]:
    """Hold a lock that only one process or thread has at a time; yield whether the system has such locks.

    The system releases the lock when the process ends, also when it is killed.

    Args:
        file: the file to lock; it is created.
        busy: message of the error if another process has the lock; without it, wait for that process.
        keep: whether the file stays at the end.
    """
    descriptor = None if fcntl is None else _lock(file, busy, keep)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            if not keep:
                remove(file)
            os.close(descriptor)


def _lock(file: Path, busy: str | None, keep: bool) -> int | None:
    """Return a descriptor of the locked file; None if the file system has no locks."""
    while True:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
        mine = False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if busy is None else fcntl.LOCK_NB))
            mine = _is_at(descriptor, file)  # otherwise the process that had the lock has removed the file
            if mine:
                return descriptor
        except BlockingIOError as error:
            raise InputError(busy) from error
        except OSError:
            if not keep:
                remove(file)
            return None
        finally:
            if not mine:
                os.close(descriptor)


def _is_at(descriptor: int, file: Path) -> bool:
    """Return whether the opened file is still the one at this path."""
    try:
        return os.path.samestat(os.fstat(descriptor), file.stat())
    except FileNotFoundError:
        return False


@contextmanager
def alone(path: str | PathLike[str]) -> Iterator[bool]:
    """Let no other process write to `path` meanwhile; yield whether this is certain, see `locked`.

    In the end, what killed processes left beside `path` is removed. This is not done at the beginning, because a folder
    that was left may be the only complete one. Errors of the file system become one sentence.
    """
    target = Path(path).resolve()
    with _clear_errors(path), locked(target.with_name(f".{target.name}.lock")) as certain:
        yield certain
        if certain:
            left_over = re.compile(TEMPORARY + re.escape(target.name))
            for name in filter(left_over.fullmatch, os.listdir(target.parent)):
                remove(target.with_name(name))


def remove(path: Path) -> None:
    """Remove a file or folder if possible; if not, a later write tries again."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


@contextmanager
def whole_file(path: str | PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path in the same folder, which replaces `path` when the body succeeds.

    The temporary path has the same ending as `path`.
    """
    _refuse_folder(path)
    target = Path(path).resolve()
    temporary = _sibling(target)
    with alone(path):
        try:
            yield temporary
            _sync(temporary)
            os.replace(temporary, target)
        finally:
            remove(temporary)
        _confirm(path, target.parent)


@contextmanager
def whole_folder(path: str | PathLike[str], marker: str, ours: Collection[str]) -> Iterator[Path]:
    """Yield a temporary folder beside `path`, which replaces `path` when the body succeeds.

    A folder at `path` is replaced only if it is empty or was written by lignn: it has the file `marker`, and all other
    entries are named in `ours`. Where the system cannot exchange two folders, a crash between two renames leaves the
    complete old folder beside `path`.
    """
    with alone(path):
        check_folder(path, marker, ours)
        with replacement(path) as temporary:
            yield temporary


@contextmanager
def replacement(path: str | PathLike[str]) -> Iterator[Path]:
    """Yield a temporary folder, which replaces `path`, whatever that is, when the body succeeds."""
    temporary = _sibling(Path(path).resolve())
    try:
        temporary.mkdir()
        yield temporary
        install(temporary, path)
    finally:
        remove(temporary)


def install(folder: Path, path: str | PathLike[str]) -> None:
    """Put a complete folder, which is beside `path`, in the place of `path`; what was there is removed."""
    target = Path(path).resolve()
    old = _sibling(target)
    sync_all(folder)
    if not _exchange(folder, target):
        _rename_both(folder, target, old)
    remove(folder)
    remove(old)
    _confirm(path, target.parent)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two folders in one step; return whether the system can do this."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None) if sys.platform == "linux" else None
    here, exchange = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux
    return rename is not None and rename(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0


def _rename_both(new: Path, target: Path, old: Path) -> None:
    """Rename `target`, if it exists, to `old`, and `new` to `target`; if the latter fails, undo the former."""
    if target.exists():
        os.replace(target, old)
    try:
        os.replace(new, target)
    except OSError as error:
        if old.exists():
            try:
                os.replace(old, target)
            except OSError:
                raise LignnError(f"{target}: could not be written: {_reason(error)}; it is now at {old}") from error
        raise


def check_folder(path: str | PathLike[str], marker: str, ours: Collection[str]) -> None:
    """Raise if `whole_folder` would not replace what is at `path`."""
    present = entries(path)
    if present and marker not in present:
        raise InputError(f"{path}: is a folder with other content (no {marker}); choose a new or empty folder")
    refuse_others(path, present.difference({marker, *ours}))


def entries(path: str | PathLike[str]) -> set[str]:
    """Return the names of all entries of a folder; none if there is no folder."""
    target = Path(path).resolve()
    if not target.exists():
        return set()
    if not target.is_dir():
        raise InputError(f"{path}: is a file, a folder is to be written there; choose another name")
    return set(os.listdir(target))


def refuse_others(path: str | PathLike[str], others: Collection[str]) -> None:
    """Raise if a folder that would be replaced has entries that lignn did not write."""
    if others:
        raise InputError(
            f"{path}: would be replaced, but {min(others)!r} in it was not written by lignn; move it away first"
        )


def _sibling(target: Path) -> Path:
    """Return a hidden path in the same folder, to be renamed; it keeps the ending, which some writers look at."""
    return target.with_name(f".{secrets.token_hex(4)}.{target.name}")


def sync_all(folder: Path) -> None:
    """Flush a folder and its entries to the disk."""
    for entry in folder.iterdir():
        _sync(entry)
    _sync(folder)


def _sync(path: Path) -> None:
    """Flush a file or folder to the disk; for folders only POSIX can do this."""
    if path.is_dir() and os.name != "posix":
        return
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _confirm(path: str | PathLike[str], folder: Path) -> None:
    """Flush the folder in which `path` was replaced; an error does not mean that nothing was changed."""
    try:
        _sync(folder)
    except OSError as error:
        raise LignnError(f"{path}: was written, but may not be safe on the disk: {_reason(error)}") from error


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
