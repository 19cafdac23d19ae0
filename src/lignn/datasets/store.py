"""Stored datasets: read from a file that is there, or downloaded once into the cache folder."""

from __future__ import annotations

import contextlib
import sys
import tempfile
from os import PathLike
from pathlib import Path

from lignn.datasets import places
from lignn.datasets.catalogue import Entry
from lignn.errors import DatasetError
from lignn.graph import Graph


def read(entry: Entry, root: str | PathLike[str] | None) -> Graph:
    """The graph as its source has it, from the first place that has its file."""
    path = places.find(entry.name, root) or _download(entry, root)
    return Graph.read(path).replace(name=entry.name)


def _download(entry: Entry, root: str | PathLike[str] | None) -> Path:
    """Fetch the dataset in a temporary folder inside the cache folder and keep the result there as `<name>.npz`."""
    cache = places.cache_folder()
    try:
        cache.mkdir(parents=True, exist_ok=True)
        temporary = tempfile.TemporaryDirectory(prefix=f".{entry.name}-", dir=cache)
    except OSError as error:
        raise DatasetError(
            f"{entry.name} cannot be downloaded into the cache folder {cache}: {error.strerror}; "
            "set XDG_CACHE_HOME to another folder"
        ) from error
    final = cache / f"{entry.name}.npz"
    with temporary as folder:
        _fetch(entry, Path(folder), root).write(final)
    return final


def _fetch(entry: Entry, folder: Path, root: str | PathLike[str] | None) -> Graph:
    """The graph from its source, by way of files in `folder`."""
    try:
        with contextlib.redirect_stdout(sys.stderr):  # OGB talks on stdout, which belongs to our caller
            return entry.downloader()(entry.name, folder)
    except DatasetError:
        raise
    except Exception as error:  # whatever PyG, OGB and the network raise, the user's way out is the same
        looked = " or ".join(str(place) for place in places.folders(root))
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise DatasetError(
            f"{entry.name}: there is no {entry.name}.npz in {looked}, and the download through {entry.source} failed "
            f"({reason}); put {entry.name}.npz into one of these folders, or try again online"
        ) from error
