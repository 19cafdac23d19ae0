"""Arrays from files: whatever the bytes, they are read or refused, and never crash compiled code."""

import contextlib
import os
import re
import tempfile
from pathlib import Path
from zipfile import ZIP_BZIP2, ZIP_DEFLATED, ZIP_LZMA, ZIP_STORED, ZipFile

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from lignn import Graph
from lignn.errors import TableError
from lignn.graph import files

MATRIX = np.array([[0, 1.5, 0, 0], [2, 0, 0, 0], [0, 0, 0, 3], [0, 0, 0, 4]])
KINDS = ("csr", "csc", "bsr", "coo", "dia")


def save(path: Path, kind: str, **changes: object) -> Path:
    """Write `MATRIX` as `scipy.sparse.save_npz` does, with some arrays changed."""
    sp.save_npz(path, getattr(sp, f"{kind}_array")(MATRIX))
    with np.load(path) as file:
        arrays = dict(file) | {key: np.asarray(value) for key, value in changes.items()}
    np.savez(path, **arrays)
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_every_sparse_format_is_read(tmp_path, kind):
    matrix = files.read_features(save(tmp_path / "x.npz", kind), 4)
    assert isinstance(matrix, sp.csr_array)
    assert np.array_equal(matrix.toarray(), MATRIX)


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        ("csc", {"indices": [1, 10**9, 2, 3]}, "entry 1 of indices is 1000000000, it must be between 0 and 3"),
        ("csc", {"indptr": [0, -7, 1, 1, 4]}, "entry 1 of indptr is -7, it must be between 0 and 4"),
        ("csr", {"indices": [1, 0, 3, -1]}, "entry 3 of indices is -1"),
        ("csr", {"indptr": [0, 3, 2, 3, 4]}, "indptr must rise from 0"),
        ("csr", {"indptr": [0, 4, 4, 4, 0]}, "indptr must rise from 0"),
        ("csr", {"indptr": [0, 2**63 - 1, 0, 0, 0]}, "entry 1 of indptr"),
        ("csr", {"indptr": [1, 1, 2, 3, 4]}, "indptr must rise from 0"),
        ("csr", {"indptr": [0, 1, 4]}, "indptr must be 5 integers, got int64 of shape"),
        ("csr", {"indices": [1, 0, 3, 2.5]}, "indices must be 4 integers, got float64"),
        ("csr", {"data": [1, 2, 3]}, "indices must be 3 integers, got int32 of shape"),
        ("csr", {"data": ["a", "b", "c", "d"]}, "numbers are needed, data holds <U1"),
        ("csr", {"data": [[1, 2], [3, 4]]}, "data has 2 dimensions"),
        ("csr", {"format": "abc"}, "its format 'abc' is unknown"),
        ("bsr", {"indices": [10**9] * 4}, "entry 0 of indices is 1000000000"),
        ("bsr", {"data": np.ones((4, 0, 1))}, "division|modulo"),
        ("coo", {"row": [0, 1, 2, 10**9]}, "entry 3 of row is 1000000000"),
        ("coo", {"col": np.array([0, 1, 2, 2**64 - 1], np.uint64)}, "entry 3 of col is 18446744073709551615"),
        ("dia", {"offsets": [-1, 0, 10**9]}, "entry 2 of offsets is 1000000000"),
    ],
)
def test_bad_indices_never_reach_compiled_code(tmp_path, kind, changes, message):
    path = save(tmp_path / "x.npz", kind, **changes)
    with pytest.raises(TableError, match=message) as caught:
        files.read_features(path, 4)
    assert str(caught.value).startswith(f"{path}: not a whole sparse .npz file (")


@pytest.mark.parametrize("kind", KINDS)
@given(st.data())
def test_any_index_is_read_or_refused(kind, data):
    with tempfile.TemporaryDirectory() as folder:
        path = save(Path(folder) / "x.npz", kind)
        with np.load(path) as file:
            arrays = dict(file)
        key = data.draw(st.sampled_from([key for key in arrays if arrays[key].dtype.kind in "iu" and key != "shape"]))
        arrays[key].flat[data.draw(st.integers(0, arrays[key].size - 1))] = data.draw(st.integers(-(2**31), 2**31 - 1))
        np.savez(path, **arrays)
        with contextlib.suppress(TableError):
            assert files.read_features(path, 4).toarray().shape == MATRIX.shape


def test_numbers_of_any_type_become_floats():
    assert files.as_floats(np.arange(3)).dtype == np.float32
    assert files.as_floats(np.array([1.5], ">f8")).dtype == np.dtype("=f8")
    assert files.as_floats(np.array([1.5], np.float16)).dtype == np.float32
    assert files.as_floats(np.array(["1e4000"]).astype(np.longdouble)).dtype == np.float64


HEADER = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), }"


def npy(header: str = HEADER, data: bytes = b"") -> bytes:
    """Return the bytes of an `.npy` file with any header."""
    return b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header.encode() + data


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (HEADER.replace("}", ""), "not a whole"),
        (HEADER.replace("(2, 2)", "(2, 2"), "not a whole"),
        (HEADER.replace("(2, 2)", "(" * 300), "not a whole"),
        (
            HEADER.replace("(2, 2)", f"({10**30}, 2)"),
            f"is cut off: its header says {16 * 10**30} bytes, the file has 0",
        ),
        (HEADER.replace("(2, 2)", f"({2**40}, 2)"), f"is cut off: its header says {2**44} bytes, the file has 0"),
        (HEADER.replace("(2, 2)", "(-1, 2)"), "is cut off"),
        (HEADER.replace("<f8", "<U0"), "holds <U0; store plain numbers or texts"),
        (HEADER.replace("<f8", "<M8[s]"), r"holds datetime64\[s\]; store plain numbers or texts"),
        (HEADER.replace("<f8", "|O"), "holds Python objects, which are never read"),
        (HEADER.replace("<f8", "nonsense"), "not a whole"),
    ],
)
def test_damaged_headers(tmp_path, header, message):
    (tmp_path / "x.npy").write_bytes(npy(header))
    with pytest.raises(TableError, match=rf"x\.npy: {message}"):
        files.read_npy(tmp_path / "x.npy")
    with ZipFile(tmp_path / "x.npz", "w") as members:
        members.writestr("x.npy", npy(header))
    with pytest.raises(TableError, match=rf"x\.npz: (the array 'x' )?{message}"):
        files.read_npz(tmp_path / "x.npz")


@pytest.mark.parametrize("method", [ZIP_STORED, ZIP_DEFLATED, ZIP_BZIP2, ZIP_LZMA])
@given(st.data())
def test_damaged_archives_are_read_or_refused(method, data):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.npz"
        with ZipFile(path, "w", method) as members:
            members.writestr("x.npy", npy(data=np.arange(4.0).tobytes()))
        raw = bytearray(path.read_bytes())
        for at in data.draw(st.lists(st.integers(0, len(raw) - 1), min_size=1, max_size=4)):
            raw[at] = data.draw(st.integers(0, 255))
        path.write_bytes(raw)
        with contextlib.suppress(TableError):
            files.read_npz(path)


def test_an_array_that_does_not_fit_into_memory(tmp_path, monkeypatch):
    np.save(tmp_path / "x.npy", np.ones(3))

    def fails(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(files.npy, "read_array", fails)
    with pytest.raises(TableError, match=r"x\.npy: has 0 GiB, which do not fit into memory"):
        files.read_npy(tmp_path / "x.npy")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
@pytest.mark.parametrize("name", ["nodes.csv", "edges.parquet", "features.npy", "features.npz", "graph.json", "g.npz"])
def test_a_pipe_is_refused_and_not_waited_for(folder, name):
    if name == "edges.parquet":
        (folder / "edges.csv").unlink()
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    message = f"{folder / name}: is a pipe, socket or device; save its content to a regular file"
    with pytest.raises(TableError, match=re.escape(message)):
        Graph.read(folder / name if name == "g.npz" else folder)


def test_values_that_a_type_cannot_have(tmp_path):
    np.save(tmp_path / "mask.npy", np.array([True, False]))
    raw = (tmp_path / "mask.npy").read_bytes()
    (tmp_path / "mask.npy").write_bytes(raw[:-1] + b"\7")
    with pytest.raises(TableError, match=r"mask\.npy: not a whole \.npy file \(a truth value is neither 0 nor 1\)"):
        files.read_npy(tmp_path / "mask.npy")
    for code in (0x110000, 0xD800):
        np.save(tmp_path / "text.npy", np.array([code], np.uint32).view("U1"))
        with pytest.raises(TableError, match="a text has characters that do not exist"):
            files.read_npy(tmp_path / "text.npy")
