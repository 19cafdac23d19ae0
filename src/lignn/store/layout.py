"""The files of a store: raw arrays that are memory-mapped, and `store.json`, the manifest with their checksums.

Nodes are sorted by part. A matrix is named by its direction (`in`: rows are targets, columns sources; `out`: the
transpose, for directed graphs only) and, if edges have types, by the number of the type: `in.0`. In each part it has
two CSR matrices with the same rows: `local`, whose columns are the part's own nodes, and `halo`, whose columns are
numbers in the part's list of other nodes, `halo_nodes`.

| array | content |
|---|---|
| `in_local_indptr`, `in_halo_indptr` | rows + 1 row pointers per part, starting at 0 in each |
| `in_local_indices`, `in_halo_indices` | columns, ascending within a row |
| `in_local_values`, `in_halo_values` | weights; missing if all are 1 |
| `in_halo_nodes` | positions of the other nodes, ascending within a part |
| `in_degree`, `in_loop` | sum of a row, and whether it has an entry on the diagonal |
| `number` | number of each node in the source |
| `y`, `train`, `val`, `test` | labels, and masks with one column per split |
| `time`, `group` | times and groups of the nodes, if they have them |
| `x`, or `x_data`, `x_indices`, `x_indptr` | features: dense, or CSR |
| `id_offsets`, `id_bytes` | ids of the nodes as UTF-8, if they are not the numbers |
| `preparation.0.scaler.mean_`, … | what was learned of the columns that the features were made of |
"""

from __future__ import annotations

import hashlib
import json
from os.path import isfile
from pathlib import Path
from typing import Any

import numpy as np

from lignn.errors import InputError

MANIFEST = "store.json"
FORMAT = 1


def is_store(path: str | Path) -> bool:
    """Return whether there is a store in this folder."""
    return isfile(Path(path) / MANIFEST)  # unlike Path.is_file, it takes a name that is too long


def matrix_name(direction: str, kind: int | None) -> str:
    """Return the name of a matrix; `kind` is the number of a type of edges, None for edges without types."""
    return direction if kind is None else f"{direction}.{kind}"


class Writer:
    """A file of one array, appended to; its checksum is computed on the way."""

    def __init__(self, folder: Path, name: str, dtype: Any, columns: tuple[int, ...] = ()) -> None:
        self.name, self.dtype, self.columns, self.rows = name, np.dtype(dtype), columns, 0
        self._digest = hashlib.sha256()
        self._path = folder / f"{name}.bin"
        self._path.write_bytes(b"")

    def append(self, array: np.ndarray) -> None:
        """Append rows."""
        block = np.ascontiguousarray(array, self.dtype)
        self._digest.update(block.data)
        with self._path.open("ab") as file:
            file.write(block.data)  # tells of a full disk, unlike `tofile`
        self.rows += len(block)

    def entry(self) -> dict[str, Any]:
        """Return the entry of the file in the manifest."""
        shape = [self.rows, *self.columns]
        return {"dtype": self.dtype.str, "shape": shape, "sha256": self._digest.hexdigest()}


def write_array(folder: Path, name: str, array: np.ndarray) -> dict[str, Any]:
    """Write a whole array and return its entry in the manifest."""
    writer = Writer(folder, name, array.dtype, array.shape[1:])
    writer.append(array)
    return writer.entry()


def write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    """Write the manifest with its own checksum; a store without one is not complete."""
    text = json.dumps(manifest | {"checksum": _checksum(manifest)}, indent=1, ensure_ascii=False)
    (folder / MANIFEST).write_text(text + "\n", encoding="utf-8")


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest of a store, and check that it is whole and that all files have the right size."""
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        if manifest["format"] != FORMAT:
            raise InputError(
                f"{path}: a store of format {manifest['format']}, this lignn reads {FORMAT}; build it again"
            )
        intact = manifest.pop("checksum") == _checksum(manifest)
        sizes = {name: _size(entry) for name, entry in manifest["arrays"].items()} if intact else {}
    except OSError as error:
        raise InputError(f"{folder}: no store here ({path.name}: {error.strerror}); see lignn store build") from error
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}: is damaged ({error}); build the store again") from error
    if not intact:
        raise InputError(f"{path}: was changed after the store was built; build the store again")
    for name, size in sizes.items():
        file = folder / f"{name}.bin"
        if not file.is_file() or file.stat().st_size != size:
            raise InputError(f"{file}: is missing or cut short; copy or build the store again")
    return manifest


def describe(folder: Path) -> dict[str, Any]:
    """Return the facts about a store, for people and machines."""
    manifest = read_manifest(folder)
    parts = [part for name, each in manifest["parts"].items() if name.startswith("in") for part in each]
    shown = ("name", "nodes", "edges", "features", "classes", "edge_types", "undirected", "partition", "cut")
    return {name: manifest[name] for name in shown} | {
        "weighted": bool(manifest["weighted"]),
        "splits": manifest["arrays"]["train"]["shape"][1],
        "parts": len(manifest["sizes"]),
        "largest_part": max(manifest["sizes"]),
        "halo_rows": sum(part["nodes"] for part in parts),
        "bytes": sum(_size(entry) for entry in manifest["arrays"].values()),
    }


def verify(folder: Path) -> None:
    """Read all arrays of a store and raise if one is not what was written."""
    for name, entry in read_manifest(folder)["arrays"].items():
        file = folder / f"{name}.bin"
        with file.open("rb") as content:
            if hashlib.file_digest(content, "sha256").hexdigest() != entry["sha256"]:
                raise InputError(f"{file}: is not what was written (damaged or changed); copy or build the store again")


def map_array(folder: Path, name: str, entry: dict[str, Any]) -> np.ndarray:
    """Return a memory-mapped array; what is written to it changes this process's copy only."""
    shape = tuple(entry["shape"])
    if not np.prod(shape):  # an empty file cannot be mapped
        return np.zeros(shape, entry["dtype"])
    return np.memmap(folder / f"{name}.bin", entry["dtype"], "c", shape=shape)


def _size(entry: dict[str, Any]) -> int:
    dtype = np.dtype(entry["dtype"])
    if dtype.kind not in "biuf" or not all(isinstance(length, int) and length >= 0 for length in entry["shape"]):
        raise ValueError("an array of unknown type or shape")
    return int(dtype.itemsize * np.prod(entry["shape"], dtype=np.int64))


def _checksum(manifest: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
