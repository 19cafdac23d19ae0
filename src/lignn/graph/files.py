"""Opening of files, and the arrays in them: every array is checked here before compiled code sees it.

SciPy and torch trust indices and types, so a crafted or damaged file could otherwise crash the process.
"""

from __future__ import annotations

import io
import json
import lzma
import math
import os
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from tokenize import TokenError
from typing import IO, Any
from zipfile import BadZipFile, ZipFile

import numpy as np
import scipy.sparse as sp
from numpy.lib import format as npy

from lignn.errors import TableError

_DAMAGE = (
    *(ValueError, TypeError, KeyError, ArithmeticError, SyntaxError, TokenError, RecursionError),
    *(OSError, EOFError, RuntimeError, BadZipFile, zlib.error, lzma.LZMAError),
)
"""Errors that NumPy, SciPy and zipfile raise for damaged, unsupported or encrypted files."""

watcher: ContextVar[Callable[[int], None] | None] = ContextVar("watcher", default=None)
"""A function that is told how many bytes were read, whenever some were; None: nobody is."""

_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


@contextmanager
def open_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading; raise if there is none, or if it is not a regular file, such as a pipe."""
    try:
        mode = path.stat().st_mode
        if S_ISDIR(mode):
            raise TableError(f"{path}: is a folder, a file is needed")
        if not S_ISREG(mode):
            raise TableError(f"{path}: is a pipe, socket or device; save its content to a regular file")
        tell = watcher.get()
        if tell is None:
            with path.open("rb") as file:
                yield file
        else:
            with path.open("rb", buffering=0) as raw, io.BufferedReader(_Watched(raw, tell), 2**20) as watched:
                yield watched
    except OSError as error:
        raise TableError(f"{path}: cannot be read: {error.strerror or error}") from error


class _Watched(io.RawIOBase):
    """A file whose reading is watched."""

    def __init__(self, file: io.FileIO, tell: Callable[[int], None]) -> None:
        self._file, self._tell = file, tell

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._file.readinto(buffer)
        self._tell(count)
        return count

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._file.seek(offset, whence)


def valid_text(name: str) -> str:
    """Return the name of a file as valid Unicode; Python escapes what the locale cannot decode by lone surrogates."""
    return os.fsencode(name).decode("utf-8", "replace")


def read_npy(path: Path) -> np.ndarray:
    """Return the array in an `.npy` file."""
    with open_file(path) as file, _clear_errors(path, ".npy"):
        return _read_array(file, path.stat().st_size, f"{path}:")


def read_npz(path: Path, keys: Collection[str] | None = None) -> dict[str, np.ndarray]:
    """Return the arrays in an `.npz` file by key; all of them, or only those in `keys`."""
    arrays: dict[str, np.ndarray] = {}
    with open_file(path) as file, _clear_errors(path, ".npz"), ZipFile(file) as members:
        for member in members.infolist():
            key = member.filename.removesuffix(".npy")
            if key in arrays:
                raise ValueError(f"two arrays are named {key!r}")
            if keys is None or key in keys:
                with members.open(member) as stream:
                    arrays[key] = _read_array(stream, member.file_size, f"{path}: the array {key!r}")
    return arrays


def read_features(path: Path, num_nodes: int) -> np.ndarray | sp.csr_array:
    """Return the features in an `.npy` file, or in an `.npz` file written by `scipy.sparse.save_npz`."""
    if path.suffix == ".npy":
        x = read_npy(path)
        if x.dtype.kind not in "biuf":
            raise TableError(f"{path}: numbers are needed, it holds {x.dtype}")
        _check_shape(path, x.shape, num_nodes)
        return as_floats(x)
    arrays = read_npz(path)
    with _clear_errors(path, "sparse .npz"):
        kind, shape = arrays["format"].astype(np.str_).item(), arrays["shape"].tolist()
        _check_shape(path, shape, num_nodes)
        return sparse_matrix(kind, arrays, shape)


def _check_shape(path: Path, shape: Sequence[int], num_nodes: int) -> None:
    if len(shape) != 2:
        raise TableError(f"{path}: a matrix is needed, it has shape {tuple(shape)}")
    if shape[0] != num_nodes:
        raise TableError(f"{path}: has {shape[0]} rows, but there are {num_nodes} nodes")


def sparse_matrix(kind: str, arrays: Mapping[str, np.ndarray], shape: Sequence[int]) -> sp.csr_array:
    """Return a sparse matrix as CSR; raise a `ValueError` if its arrays contradict each other.

    SciPy's own check is not enough: it accepts an `indptr` that rises and falls back to zero.

    Args:
        kind: SciPy's name of the format, such as "csr".
        arrays: the arrays of the format by SciPy's names, such as `data`, `indices`, `indptr`.
        shape: number of rows and columns.
    """
    if kind not in ("csr", "csc", "bsr", "coo", "dia"):
        raise ValueError(f"its format {kind!r} is unknown")
    if len(shape) != 2:
        raise ValueError(f"a matrix is needed, it has shape {tuple(shape)}")
    data = arrays["data"]
    if data.dtype.kind not in "biuf":
        raise ValueError(f"numbers are needed, data holds {data.dtype}")
    if data.ndim != {"bsr": 3, "dia": 2}.get(kind, 1):
        raise ValueError(f"data has {data.ndim} dimensions")
    data = as_floats(data)
    if kind == "coo":
        row, column = (
            _indices(arrays, key, 0, size, len(data)) for key, size in zip(("row", "col"), shape, strict=True)
        )
        return sp.csr_array(sp.coo_array((data, (row, column)), shape=shape))
    if kind == "dia":
        offsets = _indices(arrays, "offsets", -shape[0], shape[1], len(data))
        return sp.csr_array(sp.dia_array((data, offsets), shape=shape))
    outer, inner = shape[::-1] if kind == "csc" else shape
    if kind == "bsr":
        outer, inner = outer // data.shape[1], inner // data.shape[2]
    indices = _indices(arrays, "indices", 0, inner, len(data))
    indptr = _indices(arrays, "indptr", 0, len(data) + 1, outer + 1)
    if indptr[0] or (indptr[1:] < indptr[:-1]).any():
        raise ValueError("indptr must rise from 0")
    return sp.csr_array(getattr(sp, f"{kind}_array")((data, indices, indptr), shape=shape))


def _indices(arrays: Mapping[str, np.ndarray], key: str, low: int, high: int, length: int) -> np.ndarray:
    """Return an array of `length` integers that are at least `low` and below `high`."""
    array = arrays[key]
    if array.dtype.kind not in "iu" or array.shape != (length,):
        raise ValueError(f"{key} must be {length} integers, got {array.dtype} of shape {array.shape}")
    wrong = np.flatnonzero((array < low) | (array >= high))
    if len(wrong):
        raise ValueError(f"entry {wrong[0]} of {key} is {array[wrong[0]]}, it must be between {low} and {high - 1}")
    return array.astype(np.int64)


def as_floats(array: np.ndarray) -> np.ndarray:
    """Return numbers as float32, or float64 for double precision, in this machine's byte order, as torch needs them."""
    double = array.dtype.kind == "f" and array.dtype.itemsize >= 8
    with np.errstate(over="ignore"):  # the checks of a graph name an infinite number by its place
        return array.astype(np.float64 if double else np.float32, copy=False)


def _read_array(file: IO[bytes], size: int, where: str) -> np.ndarray:
    """Return the array in an open file of `size` bytes; messages begin with `where`."""
    version = npy.read_magic(file)
    if version not in _HEADERS:
        raise ValueError(f"version {version[0]}.{version[1]} of the format is not supported")
    shape, _, dtype = _HEADERS[version](file)
    if dtype.hasobject:
        raise TableError(f"{where} holds Python objects, which are never read; store plain numbers or texts")
    count: int = math.prod(shape)
    if dtype.kind not in "biufcSU" or (count and not dtype.itemsize):
        raise TableError(f"{where} holds {dtype}; store plain numbers or texts")
    announced, there = count * dtype.itemsize, size - file.tell()
    if min(shape, default=0) < 0 or announced > there:
        raise TableError(
            f"{where} is cut off: its header says {announced} bytes, the file has {there}; write or download it again"
        )
    file.seek(0)
    try:
        array = npy.read_array(file, allow_pickle=False)
    except MemoryError as error:
        raise TableError(f"{where} has {announced / 2**30:.0f} GiB, which do not fit into memory") from error
    if array.dtype.kind == "b" and array.size and array.view(np.uint8).max() > 1:
        raise ValueError("a truth value is neither 0 nor 1")
    if array.dtype.kind == "U" and array.size:
        codes = np.ascontiguousarray(array).view(f"{array.dtype.byteorder}u4")
        if codes.max() > 0x10FFFF or ((codes >= 0xD800) & (codes < 0xE000)).any():
            raise ValueError("a text has characters that do not exist")
    return array


@contextmanager
def _clear_errors(path: Path, kind: str) -> Iterator[None]:
    """Turn the many errors of a damaged file into a `TableError`."""
    try:
        yield
    except TableError:
        raise
    except _DAMAGE as error:
        raise TableError(f"{path}: not a whole {kind} file ({error}); write or download it again") from error


def read_lists(path: Path, ids: Sequence[str]) -> list[str | None]:
    """Return the lists of features of a JSON object, one list per node by its id, as texts; None for a node without."""
    with open_file(path) as file:
        try:
            lists = json.loads(file.read().decode("utf-8-sig"))
        except (ValueError, RecursionError) as error:
            raise TableError(f"{path}: is not JSON ({error})") from error
    if not isinstance(lists, dict) or not all(isinstance(each, list) for each in lists.values()):
        raise TableError(f'{path}: must be a JSON object of lists by the ids of nodes, such as {{"17": [3, 5]}}')
    if unknown := sorted(lists.keys() - set(ids)):
        raise TableError(f"{path}: {unknown[0]!r} is not the id of a node ({len(unknown)} such ids)")
    return [" ".join(f"f{each}" for each in lists[name]) if name in lists else None for name in ids]
