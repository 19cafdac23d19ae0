"""Files of stored datasets: the folders in which they are looked for, and the download of those that are missing.

Finding a file imports neither torch nor a dataset's library.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from lignn.errors import DatasetError

if TYPE_CHECKING:
    from lignn.datasets.catalogue import Entry
    from lignn.graph import Graph

VARIABLE = "LIGNN_DATA"
"""Environment variable that names a folder of dataset files."""


def cache_folder() -> Path:
    """Return the user's cache folder for datasets: in `$XDG_CACHE_HOME` if set, else in the platform's cache folder."""
    xdg = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if xdg.is_absolute():  # the XDG specification ignores relative paths
        base = xdg
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path.home() / ".cache"
    return base / "lignn" / "datasets"


def folders(root: str | PathLike[str] | None = None) -> list[Path]:
    """Return the folders to search, in order: `root`, `$LIGNN_DATA`, the cache folder.

    The first two are left out if they are not given; if given, they must exist.
    """
    given = {"root": os.fspath(root) if root is not None else "", f"${VARIABLE}": os.environ.get(VARIABLE, "")}
    for where, folder in given.items():
        if folder and not Path(folder).is_dir():
            raise DatasetError(f"{where}: there is no folder {folder}; create it or name another")
    return [*(Path(folder) for folder in given.values() if folder), cache_folder()]


def find(name: str, root: str | PathLike[str] | None = None) -> Path | None:
    """Return the file of the dataset `name` in the first folder that has it, or None if no folder has it."""
    files = (folder / f"{name}.npz" for folder in folders(root))
    return next((file for file in files if file.is_file()), None)


def read(entry: Entry, root: str | PathLike[str] | None) -> Graph:
    """Return a stored dataset unchanged, as its source provides it; download it if no folder has its file."""
    from lignn.graph import Graph

    path = find(entry.name, root) or _download(entry, root)
    return Graph.read(path).replace(name=entry.name)


def _download(entry: Entry, root: str | PathLike[str] | None) -> Path:
    """Download a dataset to a temporary folder, write it to the cache folder as `<name>.npz`, and return that path."""
    cache = cache_folder()
    try:
        cache.mkdir(parents=True, exist_ok=True)
        temporary = tempfile.TemporaryDirectory(prefix=f".{entry.name}-", dir=cache)
    except OSError as error:
        raise DatasetError(
            f"{entry.name} cannot be downloaded into the cache folder {cache}: {error.strerror}; "
            "set XDG_CACHE_HOME to another folder"
        ) from error
    file = cache / f"{entry.name}.npz"
    with temporary as folder:
        _fetch(entry, Path(folder), root).write(file)
    return file


def _fetch(entry: Entry, folder: Path, root: str | PathLike[str] | None) -> Graph:
    """Return the dataset from its source; the source's raw files are written to `folder`."""
    try:
        with contextlib.redirect_stdout(sys.stderr):  # OGB prints to stdout, which belongs to our caller
            return entry.downloader()(entry.name, folder)
    except DatasetError:
        raise
    except Exception as error:  # PyG, OGB and the network raise many types; what the user can do is always the same
        searched = " or ".join(str(place) for place in folders(root))
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise DatasetError(
            f"{entry.name}: there is no {entry.name}.npz in {searched}, and the download through {entry.source} failed "
            f"({reason}); put {entry.name}.npz into one of these folders, or try again online"
        ) from error
