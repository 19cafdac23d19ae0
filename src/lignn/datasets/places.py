"""Where the files of stored datasets are looked for and kept."""

from __future__ import annotations

import os
import sys
from os import PathLike
from pathlib import Path

from lignn.errors import DatasetError

VARIABLE = "LIGNN_DATA"
"""Environment variable that names a folder of dataset files."""


def cache_folder() -> Path:
    """The user's cache folder for datasets: below `$XDG_CACHE_HOME` if set, else where the platform keeps caches."""
    told = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if told.is_absolute():  # the XDG specification ignores relative paths
        base = told
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path.home() / ".cache"
    return base / "lignn" / "datasets"


def folders(root: str | PathLike[str] | None = None) -> list[Path]:
    """The folders to look in, in order: `root`, `$LIGNN_DATA`, the cache folder. The first two must exist if given."""
    given = {"root": os.fspath(root) if root is not None else "", f"${VARIABLE}": os.environ.get(VARIABLE, "")}
    for where, folder in given.items():
        if folder and not Path(folder).is_dir():
            raise DatasetError(f"{where}: there is no folder {folder}; create it or name another")
    return [*(Path(folder) for folder in given.values() if folder), cache_folder()]


def find(name: str, root: str | PathLike[str] | None = None) -> Path | None:
    """The file of the dataset `name` in the first folder that has it, None if no folder has."""
    files = (folder / f"{name}.npz" for folder in folders(root))
    return next((file for file in files if file.is_file()), None)
